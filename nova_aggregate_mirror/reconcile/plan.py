# SPDX-License-Identifier: Apache-2.0
"""Changes that placement needs in order to mirror nova: pure, no I/O."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import source


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """Aggregates to add to, and to remove from, one provider."""

    provider: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def apply(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return the aggregates of the provider after this change."""
        return (aggregates - frozenset(self.remove)) | frozenset(self.add)

    def describe(self, names: abc.Mapping[str, str]) -> str:
        """Return the change as text, for a log.

        :param names: aggregates, UUID to name; a deleted aggregate has none
        :returns: "added zone-a (UUID), rack-b (UUID); removed UUID"
        """
        def text(uuid: str) -> str:
            return '%s (%s)' % (names[uuid], uuid) if uuid in names else uuid

        texts = []
        for verb, uuids in ('added', self.add), ('removed', self.remove):
            if uuids:
                texts.append(verb + ' ' + ', '.join(map(text, uuids)))
        return '; '.join(texts)


def change(nova: source.Nova, provider: str, current: frozenset[str],
           owned: frozenset[str], only: frozenset[str] = frozenset()
           ) -> Change:
    """Compute what turns ``current`` into what nova has for a provider.

    An aggregate outside ``owned``, or of only some hosts of the compute node,
    is foreign and is kept. Nothing is removed from a provider whose host is in
    an aggregate without a UUID: what nova lacks may be that aggregate.

    :param only: aggregates that may be changed; empty means all
    """
    desired = nova.wanted(provider)
    add = desired - current
    remove = (current & owned) - desired - nova.disputed(provider)
    if nova.may_lack(provider):
        remove = frozenset()
    if only:
        add, remove = add & only, remove & only
    return Change(provider, tuple(sorted(add)), tuple(sorted(remove)))
