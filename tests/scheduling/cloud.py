# SPDX-License-Identifier: Apache-2.0
"""A complete nova and placement in this process, on nova's own fixtures."""

from collections import abc
import sys
from typing import Any

import fixtures as base_fixtures
from futurist import _thread
from nova.conf import CONF
from nova.db.api import api as api_db
from nova.scheduler import request_filter
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import integrated_helpers

from nova_aggregate_mirror import conf
from tests import fixtures
from tests import patience

AVAILABLE = ['nova.scheduler.filters.all_filters',
             'nova_aggregate_mirror.scheduler.filters.all_filters',
             'tests.scheduling.oracle.DefaultZone']
GUARD = 'AggregateMembershipFilter'
PATIENCE = patience.seconds(300)
"""How often a server is polled; the machine may be busy."""
SSD = {'aggregate_instance_extra_specs:ssd': 'true'}


class CloudTest(integrated_helpers.ProviderUsageBaseTestCase):
    """All of nova with a nova-compute per host; nova itself mirrors."""

    TIMEOUT_SCALING_FACTOR = patience.FACTOR
    compute_driver = 'fake.MediumFakeDriver'
    hosts: tuple[str, ...] = ()
    """In the order of their weights, the heaviest host first."""
    cells: abc.Mapping[str, str] = {}
    """Host to the name of its cell if it is not cell1."""
    request_filters: tuple[str, ...] = ()
    host_filters: tuple[str, ...] = ()
    """In addition to nova's defaults."""

    def setUp(self) -> None:
        self.addCleanup(_stop_threads)
        conf.register_opts(CONF)
        self.flags(api_paste_config=sys.prefix + '/etc/nova/api-paste.ini',
                   group='wsgi')
        self.flags(request_filters=list(self.request_filters),
                   group='aggregate_mirror')
        self.flags(available_filters=AVAILABLE, enabled_filters=[
            *CONF.filter_scheduler.enabled_filters, *self.host_filters],
            group='filter_scheduler')
        # Fixtures set up before nova's test case cannot be its own.
        nova = base_fixtures.MonkeyPatch(
            'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
            list(request_filter.ALL_REQUEST_FILTERS))
        nova.setUp()
        self.addCleanup(nova.cleanUp)
        weights = nova_fixtures.HostNameWeigherFixture({
            host: -position for position, host in enumerate(self.hosts)})
        weights.setUp()
        self.addCleanup(weights.cleanUp)
        # Nova's fixture of the cells holds a read lock while a cell is
        # targeted, also during a call to another service or in a transaction
        # that another thread waits for. Both need it, too: with a writer that
        # waits between them this was a deadlock.
        lock = base_fixtures.MonkeyPatch(
            'nova.tests.fixtures.ReaderWriterLock.has_pending_writers', False)
        lock.setUp()
        self.addCleanup(lock.cleanUp)
        super().setUp()
        # Idle threads wake up less often than with nova's value of 0.01.
        _thread.ThreadWorker.MAX_IDLE_FOR = 0.05
        # The databases of nova's fixtures are in the memory of its engines.
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.connections.Pool._opened',
            lambda pool: api_db.get_engine()))
        self.useFixture(fixtures.StockNova())
        for host in self.hosts:
            self._start_compute(host, self.cells.get(host))

    def aggregate(self, name: str, hosts: abc.Iterable[str] = (),
                  **metadata: str) -> int:
        """Create an aggregate and return its ID."""
        number = self._create_aggregate(name)
        if metadata:
            self.admin_api.post_aggregate_action(
                number, {'set_metadata': {'metadata': metadata}})
        for host in hosts:
            self.add(number, host)
        return number

    def add(self, aggregate: int, host: str) -> None:
        self.admin_api.add_host_to_aggregate(aggregate, host)

    def remove(self, aggregate: int, host: str) -> None:
        self.admin_api.post_aggregate_action(
            aggregate, {'remove_host': {'host': host}})

    def flavor(self, name: str = 'm1.tested', memory: int = 64,
               vcpus: int = 1, **extra_specs: str) -> str:
        return self._create_flavor(
            name=name, memory_mb=memory, vcpu=vcpus, disk=1, ephemeral=0,
            extra_spec=extra_specs)

    def boot(self, **wanted: Any) -> Any:
        """Boot a server; return it when it is active or has failed."""
        server = self.admin_api.post_server({
            'server': self._build_server(networks='none', **wanted)})

        def ended() -> Any:
            found = self.admin_api.get_server(server['id'])
            self.assertIn(found['status'], ('ACTIVE', 'ERROR'))
            return found

        return self._wait_for_assert(ended, max_retries=PATIENCE)

    def _wait_for_server_parameter(
            self, server: Any, expected_params: Any, max_retries: int = 0,
            *args: Any, **kwargs: Any) -> Any:
        """Wait as long as this machine needs; nova's tests wait 5 s."""
        return super()._wait_for_server_parameter(
            server, expected_params, max(max_retries, PATIENCE), *args,
            **kwargs)

    def _wait_for_instance_action_event(self, *args: Any, **kwargs: Any
                                        ) -> Any:
        """Repeat the 5 s that nova's tests wait."""
        wait = super()._wait_for_instance_action_event
        return self._wait_for_assert(
            lambda: wait(*args, **kwargs), max_retries=PATIENCE // 5)

    def become(self, server: Any, **expected: Any) -> None:
        """Wait until nova shows these values of the server, and no task."""
        self._wait_for_server_parameter(
            server, {'OS-EXT-STS:task_state': None, **expected})


def _stop_threads() -> None:
    """Stop the idle threads that nova leaves, five or more per test."""
    for each in list(_thread._to_be_cleaned):
        each.stop()
