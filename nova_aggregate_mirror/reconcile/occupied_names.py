# SPDX-License-Identifier: Apache-2.0
"""Other providers that have the names of missing ones.

Nova-compute of a host that was reinstalled cannot create its provider while
another one has its name: https://launchpad.net/bugs/1817833.
"""

from collections import abc

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import context

LOG = logging.getLogger(__name__)

REPEATS = 60
"""Syncs without a look-up, while the same providers are missing."""
LOOKED_UP = 20
"""Missing providers whose names are looked up: a request each."""


class OccupiedNames:
    """Look-ups of the syncs of one process."""

    def __init__(self) -> None:
        self._free: frozenset[str] = frozenset()
        """The missing providers, if no other provider has a name of theirs."""
        self._repeats = 0
        """How often that was taken for granted."""

    def find(self, context: context.Context, missing: abc.Iterable[str],
             compute_nodes: abc.Collection[str]
             ) -> dict[str, exceptions.Contradiction]:
        """Map missing providers, whose names are occupied, to the conflict.

        Without any, it asks again when others are missing.
        """
        nodes = frozenset(sorted(missing)[:LOOKED_UP])
        conflicts: dict[str, exceptions.Contradiction] = {}
        if nodes == self._free and self._repeats < REPEATS:
            self._repeats += 1
            return conflicts
        self._free, self._repeats = frozenset(), 0
        if not nodes:
            return conflicts
        try:
            names = context.nova.node_names(nodes)
            for node, name in sorted(names.items()):
                for other in sorted(context.placement.named(name) - {node}):
                    conflicts[node] = _conflict(
                        name, other, other in compute_nodes)
        except exceptions.MirrorError as exc:
            # Only what is said about them depends on it.
            LOG.debug('Names of resource providers could not be read: %s', exc)
        else:
            if not conflicts and names.keys() == nodes:
                self._free = nodes
        return conflicts


def _conflict(name: str, other: str, is_used: bool
              ) -> exceptions.Contradiction:
    """Describe that another provider has a name.

    :param is_used: whether it is that of a compute node
    """
    return exceptions.Contradiction(
        'its nova-compute cannot create the resource provider, because %s has '
        'the name %s' % ('that of another compute node, %s,' % other
                         if is_used else 'another one', name),
        step='' if is_used else 'when it has no allocations any more, run '
        '"openstack resource provider delete %s", then restart nova-compute '
        'on that host' % other)
