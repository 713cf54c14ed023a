# SPDX-License-Identifier: Apache-2.0
"""Two real nova-schedulers, with stock nova and with this package."""

from collections import abc
import contextlib
import dataclasses
import statistics
from typing import Any

from benchmarks import commands
from benchmarks import fleet
from benchmarks import services
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs

WARM_UP = 2
STOCK, OURS = 'stock', 'ours'
DEFAULT_FILTERS = (
    'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter')
BINDING = ('AggregateInstanceExtraSpecsFilter',), ('flavor_extra_specs',)
ISOLATION = (
    ('AggregateMultiTenancyIsolation', 'AggregateImagePropertiesIsolation'),
    ('tenant_isolation', 'image_properties'))


def nova_conf(tracked: bool, isolation: bool = False
              ) -> dict[str, config.Options]:
    """Return the additional options of each nova-scheduler's nova.conf.

    :param tracked: whether nova-computes report their instances
    :param isolation: whether tenants and images are isolated, too
    """
    filters, ours = BINDING
    if isolation:
        filters, ours = filters + ISOLATION[0], ours + ISOLATION[1]
    # No nova-compute is running; all are treated as up.
    up = {'DEFAULT': {'service_down_time': '999999999'}}
    common = {'track_instance_changes': str(tracked)}
    return {
        STOCK: {**up, 'filter_scheduler': {
            **common,
            'enabled_filters': ','.join((*DEFAULT_FILTERS, *filters))}},
        OURS: {
            **up, 'aggregate_mirror': {'request_filters': ','.join(ours)},
            'filter_scheduler': {
                **common, 'available_filters':
                    'nova_aggregate_mirror.scheduler.filters.all_filters',
                'enabled_filters': ','.join((*DEFAULT_FILTERS, *filters,
                                             'AggregateMembershipFilter'))}}}


@dataclasses.dataclass(frozen=True)
class Median:
    """Figures of the median call of a nova-scheduler."""

    seconds: float
    cpu_seconds: float
    """CPU time of nova-scheduler, user and system."""
    placement_cpu_seconds: float
    """CPU time of placement meanwhile, without its database."""
    candidates: float
    """Number of hosts that placement returned."""
    right: float
    """Number of candidates that the flavor may use."""


class Scheduler:
    """Client of a running nova-scheduler; see ``scheduler_service``."""

    def __init__(self, url: str, running: cloud.Cloud,
                 hosts: fleet.Fleet, tracked: bool) -> None:
        self._url = url
        self._placement = running.process('placement')
        self._fleet = hosts
        self._http = loopback.session()
        if tracked:
            self.ask('sync', hosts=hosts.hosts)
        self.measure(WARM_UP)

    def measure(self, calls: int) -> Median:
        """Schedule servers with the bound flavor sequentially."""
        before = self._placement.cpu_seconds()
        answers = [self.ask('schedule', extra_specs=fleet.BOUND_SPECS)
                   for _call in range(calls)]
        spent = self._placement.cpu_seconds() - before
        self.ask('clean')
        for answer in answers:
            if answer['node'] not in self._fleet.bound:
                raise services.Void(
                    'A server was scheduled to host "%s", to which it is not '
                    'bound' % answer['host'])
        candidates = [frozenset(answer['candidates']) for answer in answers]
        return Median(
            statistics.median(answer['seconds'] for answer in answers),
            statistics.median(answer['cpu_seconds'] for answer in answers),
            spent / calls, statistics.median(map(len, candidates)),
            statistics.median(len(hosts & self._fleet.bound)
                              for hosts in candidates))

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of ``scheduler_service.Scheduler``."""
        answer = self._http.post('%s/%s' % (self._url, what), json=arguments)
        if not answer.ok:
            raise processes.CloudError(
                'nova-scheduler answered %d: %s' % (
                    answer.status_code, answer.text[-2000:]))
        document: dict[str, Any] = answer.json()
        return document


@contextlib.contextmanager
def started(running: cloud.Cloud, hosts: fleet.Fleet, tracked: bool
            ) -> abc.Iterator[dict[str, Scheduler]]:
    """Run two nova-schedulers, see ``nova_conf``."""
    with contextlib.ExitStack() as stack:
        yield {name: Scheduler(stack.enter_context(serving(
            running, name, options)), running, hosts, tracked)
            for name, options in nova_conf(tracked).items()}


@contextlib.contextmanager
def serving(running: cloud.Cloud, name: str,
            options: config.Options) -> abc.Iterator[str]:
    """Run a nova-scheduler; yields its URL."""
    port, = loopback.free_ports(1)
    path = running.config.path
    config_files.write_nova(running.config, name + '.conf', options)
    process = processes.Process(
        'nova-scheduler ' + name,
        programs.waitress('benchmarks.scheduler_service', port, 1),
        path('log/%s.log' % name), {
            'BENCHMARK_NOVA_CONF': path(name + '.conf'),
            'PYTHONPATH': str(commands.CHECKOUT),
            # Like the nova-scheduler program.
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'},
        port, 'http://127.0.0.1:%d' % port, tied=True)
    try:
        process.start()
        process.wait_ready()
        yield process.ready
    finally:
        process.stop()
