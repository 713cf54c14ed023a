# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts that contradict their requests: what an audit finds."""

import dataclasses
import shlex

from nova_aggregate_mirror.scheduler import moving

FORCED, MOVED, CHANGED = 'forced', 'moved', 'aggregate_changed'
DRIFT, UNKNOWN, REQUESTED = 'drift', 'unknown', 'requested'
"""Kinds of causes."""
ZONE, DEFAULT_ZONE = 'zone', 'default_zone'
"""Rules about the zone that a server is pinned to."""
ARRIVED = ('finished', 'confirmed', 'completed', 'done')
"""Statuses of a migration after which the server is on its new host."""
MOVING = ('resize_prep', 'resize_migrating', 'resize_migrated',
          'resize_finish', 'resize_reverting')
"""Task states in which host and flavor of a server may not belong together."""
LIVE = 'live-migration'
LAUNCH_DELAY = 60.0
"""Seconds from a finished resize to the launch that nova records for it: its
migration is saved first, in a call that may take rpc_response_timeout."""
_COMMANDS = {
    moving.LIVE: 'openstack server migrate --live-migration %s',
    moving.COLD: 'openstack server migrate --wait %s && openstack server '
                 'migration confirm %s',
    'resized': 'run "openstack server resize confirm %s", then audit again',
    # The client offloads no server that is shelved already.
    'shelved': 'run "openstack server unshelve --wait %s", then audit again'}
_PIN = ('openstack --os-compute-api-version %s server set '
        '--pinned-availability-zone %%s %%s' % moving.UNPIN_VERSION)


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedServer:
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


def with_move(server: PlacedServer, kind: str, changed_at: float | None
              ) -> PlacedServer:
    """Add the last migration of a server to its host.

    :param changed_at: may be days after the move, except for a live one
    """
    if (changed_at or 0.0) + LAUNCH_DELAY < (server.arrived or 0.0):
        # It was launched afterwards, for example unshelved.
        return server
    if kind == LIVE or not server.arrived:
        server = dataclasses.replace(server, arrived=changed_at)
    return dataclasses.replace(server, moved=kind)


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """The cause of a misplacement."""

    kind: str
    text: str
    since: float | None = None
    """Seconds since the epoch; None if it cannot be known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Misplacement:
    """A rule that the host of a server does not pass."""

    server: PlacedServer
    rule: str
    """One of ``rules.NAMES``, or the name of a plugin."""
    requested: str
    """What the request requires, such as ``zone az-1``."""
    actual: str
    """What the host has instead."""
    cause: Event
    can_unpin: bool = False
    """Whether the compute API can change the zone of a server on a host."""
    zone: str = ''
    """Of the host; empty if it is in none."""

    @property
    def step(self) -> str:
        """Command that moves or unpins the server; a sentence if none does."""
        uuid, state = self.server.uuid, self.server.state
        if self.rule == DEFAULT_ZONE:
            return moving.unpin(uuid, state, self.can_unpin) or (
                'no command unpins a server in state %s' % state)
        command = _COMMANDS.get(moving.of_state(state) or state, '')
        return command.replace('%s', uuid) or (
            'no command moves a server in state %s' % state)

    @property
    def keep_step(self) -> str:
        """Command that pins the server to the zone of its host, if any."""
        if self.rule != ZONE or not self.can_unpin:
            return ''
        uuid = self.server.uuid
        # Nova refuses to change the zone of a pinned server.
        unpin = moving.unpin(uuid, self.server.state, True)
        pin = ' && ' + _PIN % (shlex.quote(self.zone), uuid)
        return unpin + pin if self.zone else unpin
