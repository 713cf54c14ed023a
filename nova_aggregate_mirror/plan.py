# SPDX-License-Identifier: Apache-2.0
"""What must change in placement for it to mirror nova: pure, no I/O."""

import dataclasses

from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """What one provider's aggregates lack and have too much."""

    provider: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [sign + uuid for sign, uuids in (('+', self.add),
                                                 ('-', self.remove))
                 for uuid in uuids]
        return '%s: %s' % (self.provider, ' '.join(parts) or 'no change')

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def apply(self, aggregates: frozenset[str]) -> frozenset[str]:
        """The aggregates of the provider after this change."""
        return aggregates - frozenset(self.remove) | frozenset(self.add)


def change(provider: str, desired: frozenset[str], current: frozenset[str],
           owned: frozenset[str]) -> Change:
    """What turns ``current`` into ``desired`` for one provider.

    An aggregate outside ``owned`` was put there by someone else and stays.
    """
    return Change(provider,
                  add=tuple(sorted(desired - current)),
                  remove=tuple(sorted((current & owned) - desired)))


def compute(desired: source.Memberships, current: source.Memberships,
            owned: frozenset[str]) -> list[Change]:
    """List the changes that turn ``current`` into ``desired``.

    A provider that is not in ``desired`` is no compute node's and stays as it
    is; one that is not in ``current`` does not exist yet. Changes come in
    provider order, so that two runs log and apply alike.

    :param desired: compute node UUID to the aggregates nova wants it in
    :param current: provider UUID to its aggregates in placement
    :param owned: aggregates that are, or once were, nova host aggregates
    """
    changes = (change(provider, desired[provider], current[provider], owned)
               for provider in sorted(desired.keys() & current.keys()))
    return [wanted for wanted in changes if wanted]


def pending(desired: source.Memberships,
            current: source.Memberships) -> list[str]:
    """Compute nodes with aggregates whose provider does not exist yet."""
    return sorted(node for node, aggregates in desired.items()
                  if aggregates and node not in current)
