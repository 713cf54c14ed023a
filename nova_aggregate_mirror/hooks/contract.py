# SPDX-License-Identifier: Apache-2.0
"""What a hook around nova's aggregate operations is, and what it must not do.

A hook is an object of an entry point in ``nova_aggregate_mirror.hooks``, made
once with nova's configuration when nova-api starts. It must not touch the
network, a database or a thread then: the process may still fork.
"""

import dataclasses
from typing import Any
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class Operation:
    """One call of a wrapped method of nova's ``AggregateAPI``."""

    method: str
    aggregate_id: int | str
    host: str
    """Empty when an aggregate is deleted."""
    request_id: str
    """The global request id if the caller sent one, else nova's own."""


class Hook(Protocol):
    """What may run around an aggregate operation.

    ``before`` runs in the request's thread before nova's method and may keep
    something for ``after``, which follows nova's method whatever that returned
    or raised. What either of them raises is logged and never reaches the user,
    whose answer is nova's alone.
    """

    replaces_mirroring: bool
    """Whether nova's own calls to placement are left out meanwhile."""

    def before(self, operation: Operation) -> Any:
        """Prepare; the result is handed to ``after``."""

    def after(self, operation: Operation, kept: Any) -> None:
        """Follow up; ``kept`` is what ``before`` returned."""
