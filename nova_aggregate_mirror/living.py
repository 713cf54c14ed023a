# SPDX-License-Identifier: Apache-2.0
"""The ledger of those who have no journal: only what nova has now is ours."""

from collections.abc import Iterable


class LivingOnly:
    """Remembers nothing, so that a deleted aggregate is nobody's.

    It takes the place of a ``Journal`` where a sync is all that is done.
    """

    def ledger(self) -> frozenset[str]:
        return frozenset()

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def remember(self, aggregates: Iterable[str]) -> None:
        pass

    def emptied(self, empty: Iterable[str], others: Iterable[str]) -> int:
        return 0
