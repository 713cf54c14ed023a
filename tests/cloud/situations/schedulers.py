# SPDX-License-Identifier: Apache-2.0
"""Configurations of nova-scheduler, and the change from one to another."""

from collections import abc

from tests.cloud import cloud
from tests.cloud import processes

_DEFAULT = (
    'ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,'
    'ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter')
STOCK, OURS = 'stock', 'ours'
FEW, FEW_OURS, SHORT = 'few', 'few-ours', 'short'

_STOCK_FILTERS = '''\
[filter_scheduler]
enabled_filters = %s,NUMATopologyFilter,PciPassthroughFilter,\
DifferentHostFilter,SameHostFilter,JsonFilter,\
AggregateInstanceExtraSpecsFilter,AggregateImagePropertiesIsolation,\
AggregateMultiTenancyIsolation,AggregateTypeAffinityFilter
''' % _DEFAULT
_OUR_FILTERS = '''\
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
enabled_filters = %s,AggregateMembershipFilter,SegmentAddressesFilter

[aggregate_mirror]
request_filters = flavor_extra_specs,tenant_isolation,image_properties,\
type_affinity,default_availability_zone,segment_addresses
''' % _DEFAULT
_FEW = '''\
[scheduler]
max_placement_results = 1
'''
OPTIONS = {
    STOCK: _STOCK_FILTERS + '''
[scheduler]
limit_tenants_to_placement_aggregate = True
enable_isolated_aggregate_filtering = True
''',
    OURS: _OUR_FILTERS,
    FEW: _STOCK_FILTERS + _FEW,
    FEW_OURS: _OUR_FILTERS + _FEW,
    SHORT: _OUR_FILTERS + 'max_member_of_bytes = 0\n' + _FEW}
"""Name to the options besides nova.conf; '' is the cloud's own."""


# The log line of a service whose queues exist. What is sent before that is
# lost, such as an aggregate that has changed since it was read.
READY = 'Join ServiceGroup membership for this service scheduler'
_LOG = '''\
[DEFAULT]
default_log_levels = nova.service=DEBUG
'''


class Schedulers:
    """The cloud's nova-scheduler, restarted with other options."""

    def __init__(self, running: cloud.Cloud) -> None:
        self._cloud = running
        path = running.state.directory / 'situations-log.conf'
        path.write_text(_LOG)
        scheduler = running.process('scheduler')
        # The same command line if an earlier run has added the file.
        if str(path) not in scheduler.argv:
            scheduler.argv += ['--config-file', str(path)]
        self._plain = list(scheduler.argv)
        self.current = ''

    @property
    def options(self) -> abc.Sequence[str]:
        """The configuration files besides nova.conf."""
        if not self.current:
            return []
        return [str(self._cloud.state.directory / (
            'situations-%s.conf' % self.current))]

    def use(self, name: str) -> None:
        """Restart nova-scheduler with a configuration, unless it has it."""
        if name == self.current:
            return
        self.current = name
        argv = list(self._plain)
        for path in self.options:
            with open(path, 'w') as output:
                output.write(OPTIONS[name])
            argv += ['--config-file', path]
        self.restart(argv)

    def restart(self, argv: abc.Sequence[str] = ()) -> None:
        """Restart nova-scheduler, which reads all aggregates again."""
        scheduler = self._cloud.process('scheduler')
        scheduler.kill()
        if argv:
            scheduler.argv[:] = argv
        lines = processes.NewLines(scheduler.log)
        self._cloud.start('scheduler')
        # It serves its queue from then on.
        scheduler.wait(lambda: READY in lines.read(), 'did not start')
