# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts, and the migrations that brought them there."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedServer:
    """A server that is on a host."""

    uuid: str
    name: str
    host: str
    project: str
    state: str
    """Nova's ``vm_state``."""
    arrived: float | None = None
    """When it arrived on its host, in seconds since the epoch, if known."""
    moved: str = ''
    """Type of the migration to its host; empty if none is recorded."""


MOVED = ('finished', 'confirmed', 'completed', 'done')
"""Statuses of a migration after which the server is on its new host."""

MOVING = ('resize_prep', 'resize_migrating', 'resize_migrated',
          'resize_finish', 'resize_reverting')
"""Task states in which host and flavor of a server may not belong together."""

LIVE = 'live-migration'

LAUNCH_DELAY = 60.0
"""Seconds from a finished resize to the launch that nova records for it: its
migration is saved first, in a call that may take rpc_response_timeout."""


def with_move(server: PlacedServer, kind: str | None,
              changed_at: float | None) -> PlacedServer:
    """Add the last migration of a server to its host.

    :param kind: type of the migration; None if there is none
    :param changed_at: when it was last changed, which may be days after the
        server has moved, except for a live migration
    """
    if kind is None or (changed_at or 0.0) + LAUNCH_DELAY < (
            server.arrived or 0.0):
        # It was launched afterwards, for example unshelved.
        return server
    return dataclasses.replace(
        server, moved=kind,
        arrived=changed_at if kind == LIVE else server.arrived or changed_at)
