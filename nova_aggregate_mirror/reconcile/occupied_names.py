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

LOOKED_UP = 20
"""Missing providers whose names are looked up: a request each."""
DELETE = ('when it has no allocations any more, run "openstack resource '
          'provider delete %s", then restart nova-compute on that host')


def find(context: context.Context, missing: abc.Iterable[str],
         compute_nodes: abc.Collection[str]
         ) -> dict[str, exceptions.Contradiction]:
    """Map missing providers, whose names are occupied, to the conflict."""
    nodes = sorted(missing)[:LOOKED_UP]
    conflicts: dict[str, exceptions.Contradiction] = {}
    try:
        names = context.nova.node_names(nodes) if nodes else {}
        for node, name in sorted(names.items()):
            for other in sorted(context.placement.named(name) - {node}):
                is_used = other in compute_nodes
                conflicts[node] = exceptions.Contradiction(
                    'its nova-compute cannot create the resource provider, '
                    'because %s has the name %s' % (
                        'that of another compute node, %s,' % other if is_used
                        else 'another one', name),
                    step='' if is_used else DELETE % other)
    except exceptions.MirrorError as exc:
        # Only what is said about them depends on it.
        LOG.debug('Names of resource providers could not be read: %s', exc)
    return conflicts
