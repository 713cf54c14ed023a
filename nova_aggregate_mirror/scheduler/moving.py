# SPDX-License-Identifier: Apache-2.0
"""What moves or unpins a server, by its state: pure."""

LIVE, COLD, EVACUATION = 'live-migrate', 'migrate', 'evacuate'
STATES = {LIVE: ('active', 'paused'), COLD: ('active', 'stopped'),
          EVACUATION: ('active', 'stopped', 'error')}
"""Move to the ``vm_state`` of the servers that nova-api takes it for:
``API.live_migrate``, ``API.resize`` and ``API.evacuate``."""
UNPIN_VERSION = '2.104'
"""The first compute API version that changes a server's zone (nova 34)."""
_UNPIN = ('openstack --os-compute-api-version %s server unset '
          '--pinned-availability-zone %%s' % UNPIN_VERSION)
# Before, nova could unpin a server only while it had no host.
_UNSHELVE = ('openstack --os-compute-api-version 2.91 server unshelve '
             '--no-availability-zone --wait %s')
_OFFLOAD = 'openstack server shelve --offload --wait %s && ' + _UNSHELVE
_OFFLOADABLE = ('active', 'stopped', 'paused', 'suspended')


def of_state(state: str) -> str:
    """Return the move for a server in a state; empty if nova takes none."""
    return next((move for move in (LIVE, COLD) if state in STATES[move]), '')


def unpin(server: str, state: str, can_unpin: bool) -> str:
    """Return the command that unpins a server; empty if none does.

    :param state: nova's ``vm_state``
    :param can_unpin: whether the compute API has ``UNPIN_VERSION``
    """
    if can_unpin:
        return _UNPIN % server
    if state == 'shelved_offloaded':
        return _UNSHELVE % server
    return _OFFLOAD % (server, server) if state in _OFFLOADABLE else ''
