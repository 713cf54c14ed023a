# SPDX-License-Identifier: Apache-2.0
"""Servers on hosts that contradict their requests: what an audit finds."""

import dataclasses

from nova_aggregate_mirror import source

FORCED, MOVED, CHANGED = 'forced', 'moved', 'aggregate_changed'
DRIFT, UNKNOWN = 'drift', 'unknown'
"""Kinds of causes."""

_LIVE = 'openstack server migrate --live-migration %s'
_COLD = ('openstack server migrate --wait %s && openstack server migration '
         'confirm %s')
_COMMANDS = {
    'active': _LIVE, 'paused': _LIVE, 'stopped': _COLD,
    'resized': 'openstack server resize confirm %s, then audit it again',
    # The client offloads no server that is shelved already.
    'shelved': 'openstack server unshelve --wait %s, then audit it again'}


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a misplacement."""

    kind: str
    text: str
    since: float | None = None
    """Seconds since the epoch; None if it cannot be known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Misplacement:
    """A rule that the host of a server does not pass."""

    server: source.PlacedServer
    rule: str
    """One of ``rules.NAMES``, or the name of a plugin."""
    requirement: str
    """What the request requires, such as ``zone az-1``."""
    contradiction: str
    """What the host has instead."""
    cause: Cause

    @property
    def command(self) -> str:
        """The command that moves the server to a suitable host."""
        uuid = self.server.uuid
        command = _COMMANDS.get(self.server.state)
        if command is None:
            return 'no command moves a server in state %s' % self.server.state
        return command.replace('%s', uuid)
