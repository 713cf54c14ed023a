# SPDX-License-Identifier: Apache-2.0
"""The contract of hooks around nova's aggregate operations.

A hook is loaded from an entry point in ``nova_aggregate_mirror.hooks`` and
instantiated once, with nova's configuration, when nova-api starts. It must not
use the network, a database or a thread then, because the process may fork.
"""

import dataclasses
import typing
from typing import Any


@dataclasses.dataclass(frozen=True)
class Operation:
    """A call of a wrapped method of nova's ``AggregateAPI``."""

    method: str
    aggregate_id: int | str
    host: str
    """Empty for ``delete_aggregate``."""
    request_id: str
    """The global request ID if the caller sent it, otherwise nova's own."""
    nova_request_id: str = ''
    """Equal for all operations of one API request: the deletion of a service
    has one for each aggregate of its host."""
    raised: str = ''
    """Class of the exception that nova's method raised, for ``after``; nova
    may have changed its database nevertheless."""

    def __str__(self) -> str:
        host = ', host %s' % self.host if self.host else ''
        return 'Aggregate %s%s (request %s)' % (
            self.aggregate_id, host, self.request_id)


@typing.runtime_checkable
class Hook(typing.Protocol):
    """A hook around an aggregate operation, in the thread of the request.

    What it raises is logged and never changes nova's answer to the user.
    """

    replaces_mirroring: bool
    """Whether nova's own calls to placement are muted during the operation;
    with ``[aggregate_mirror] mode = observe`` they never are."""

    def before(self, operation: Operation) -> Any:
        """Prepare, before nova's method; return the state for ``after``."""

    def after(self, operation: Operation, state: Any) -> None:
        """Complete the work, whether nova's method returned or raised."""
