# SPDX-License-Identifier: Apache-2.0
"""A nova-scheduler with this package's guard and request filters."""

import fixtures

from tests.cloud import cloud

OPTIONS = '''\
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
enabled_filters = ComputeFilter,AggregateInstanceExtraSpecsFilter,\
AggregateMembershipFilter,SegmentAddressesFilter

[aggregate_mirror]
request_filters = %s
'''
# The log line that shows the request filters in place.
NARROWS = 'Requests are narrowed to host aggregates'


class Narrowed(fixtures.Fixture):
    """The guard and a request filter, enabled until the test ends.

    :param name: of the request filter
    """

    def __init__(self, running: cloud.Cloud,
                 name: str = 'flavor_extra_specs') -> None:
        super().__init__()
        self._cloud = running
        self._name = name

    def _setUp(self) -> None:
        scheduler = self._cloud.process('scheduler')
        path = self._cloud.state.directory / 'narrowed.conf'
        path.write_text(OPTIONS % self._name)
        before = list(scheduler.argv)
        self.addCleanup(self._restart, before)
        self._restart([*before, '--config-file', str(path)])
        scheduler.wait(self._narrows, 'the request filters are in place')

    def _restart(self, argv: list[str]) -> None:
        scheduler = self._cloud.process('scheduler')
        scheduler.kill()
        scheduler.argv[:] = argv
        with open(scheduler.log) as log:
            self._read = log.seek(0, 2)
        self._cloud.start('scheduler')

    def _narrows(self) -> bool:
        with open(self._cloud.process('scheduler').log) as log:
            log.seek(self._read)
            return NARROWS in log.read()
