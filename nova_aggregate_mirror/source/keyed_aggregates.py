# SPDX-License-Identifier: Apache-2.0
"""Host aggregates with their metadata, as the scheduler uses them."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import uuids

_BY_ID = 'ID '
"""Beginning of the key of an aggregate without a UUID."""
Since = float | None
"""Seconds since the epoch; None if nova does not tell."""


@dataclasses.dataclass(frozen=True)
class Aggregates:
    """Every host aggregate, by ``key_of``."""

    names: abc.Mapping[str, str]
    metadata: abc.Mapping[str, abc.Mapping[str, str]]
    members: abc.Mapping[str, abc.Mapping[str, Since]]
    """Host to its aggregates, each with the time when it was added."""
    changed: abc.Mapping[tuple[str, str], Since] = dataclasses.field(
        default_factory=dict)
    """Aggregate and metadata key to the time when the value was set."""

    def of_host(self, host: str) -> frozenset[str]:
        return frozenset(self.members.get(host, ()))


@dataclasses.dataclass(frozen=True)
class Keys:
    """Metadata keys of aggregates, by name and by prefix."""

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __or__(self, other: 'Keys') -> 'Keys':
        return Keys(self.names | other.names, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.names or self.prefixes)

    def __contains__(self, key: str) -> bool:
        return key in self.names or key.startswith(tuple(self.prefixes))


def key_of(id: int, uuid: str | None) -> str:
    """Return the UUID of an aggregate, or a key that is none, but unique."""
    return uuid if uuid and uuids.is_uuid(uuid) else '%s%d' % (_BY_ID, id)


def has_uuid(key: str) -> bool:
    """Check whether an aggregate has a UUID, by its key."""
    return not key.startswith(_BY_ID)
