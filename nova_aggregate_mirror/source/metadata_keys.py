# SPDX-License-Identifier: Apache-2.0
"""Metadata keys of aggregates, by name and by prefix: pure, no I/O."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Keys:
    """Metadata keys, by name and by prefix."""

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()

    def __or__(self, other: 'Keys') -> 'Keys':
        return Keys(self.names | other.names, self.prefixes | other.prefixes)

    def __bool__(self) -> bool:
        return bool(self.names or self.prefixes)

    def __contains__(self, key: str) -> bool:
        return key in self.names or key.startswith(tuple(self.prefixes))
