# SPDX-License-Identifier: Apache-2.0
"""Nova's own host filters, run separately on a host."""

from collections import abc

from nova import objects
from nova.scheduler import filters
from nova.scheduler.filters import utils
from nova.scheduler import host_manager

from nova_aggregate_mirror.scheduler import filter_table
from tests.scheduling import worlds


class DefaultZone(filters.BaseHostFilter):
    """Nova's AvailabilityZoneFilter, which was removed in 28."""

    def host_passes(self, host_state: host_manager.HostState,
                    spec_obj: objects.RequestSpec) -> bool:
        if spec_obj.availability_zone != worlds.DEFAULT_ZONE:
            return True
        zones = utils.aggregate_metadata_get_by_host(
            host_state, key='availability_zone').get('availability_zone')
        return not zones or worlds.DEFAULT_ZONE in zones


_CLASSES = {cls.__name__: cls for cls in filters.all_filters()}
FILTERS: abc.Mapping[str, filters.BaseHostFilter] = {
    **{name: _CLASSES[host_filter]()
       for name, host_filter in filter_table.HOST_FILTERS.items()},
    filter_table.DEFAULT_ZONE: DefaultZone()}


def passing(names: frozenset[str] | set[str], world: worlds.World,
            spec: objects.RequestSpec
            ) -> tuple[frozenset[str], frozenset[str]]:
    """Return the hosts that pass nova's filters, and where a filter raises.

    A filter that compares text with a number raises, unless it first found a
    matching value of the same host: then the host has no verdict.
    """
    passed, broken = set(), set()
    for host in world.host_states():
        try:
            if all(FILTERS[name].host_passes(host, spec)
                   for name in sorted(names)):
                passed.add(host.host)
        except (ValueError, IndexError):
            broken.add(host.host)
    return frozenset(passed), frozenset(broken)
