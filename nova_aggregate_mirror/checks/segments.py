# SPDX-License-Identifier: Apache-2.0
"""Check of the segments of routed networks that nova-scheduler can see."""

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror.checks import scheduler
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import networks
from nova_aggregate_mirror.limits import deadline

# Segments of a request, whose length is limited.
BATCH = 100


def are_scheduled(deployment: inputs.Deployment) -> bool:
    """Check whether nova-scheduler uses the segments of networks."""
    return bool(deployment.conf.scheduler
                .query_placement_for_routed_network_aggregates)


def visible(deployment: inputs.Deployment) -> checks.Findings:
    """Check that neutron shows subnets of all segments with aggregates.

    Neutron omits the subnets of other projects from its answer to a user
    without the role ``admin``. Nova takes that for a network without segments.
    """
    conf = deployment.conf
    prefix = scheduler.SEGMENT % ''
    segments = sorted(name.removeprefix(prefix)
                      for name in deployment.aggregates.names.values()
                      if name.startswith(prefix))
    reader, hidden = networks.Networks(conf), set(segments)
    try:
        for start in range(0, len(segments), BATCH):
            with deadline.within(conf.aggregate_mirror.inline_timeout):
                hidden -= {subnet.segment for subnet in reader.subnets(
                    segment_id=segments[start:start + BATCH])}
    except exceptions.MirrorError as exc:
        return [checks.failure('%s. Run:' % exc, 'openstack subnet list')]
    if not segments:
        return [checks.skipped('no segment has an aggregate in nova')]
    if not hidden:
        return []
    user, project, _domain = placement.account(conf, 'neutron')
    return [checks.warning(
        'Neutron shows the user of [neutron] no subnet of %d of the %d '
        'segments that have an aggregate in nova: %s. Nova-scheduler does not '
        'confine servers of their networks to the hosts that reach them. '
        'Neutron shows the subnets of other projects to administrators only. '
        'Run:' % (len(hidden), len(segments), checks.some(hidden)),
        'openstack role add --project %s --user %s %s' % (
            project, user, placement.ROLES['neutron']))]
