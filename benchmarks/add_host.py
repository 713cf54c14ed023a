# SPDX-License-Identifier: Apache-2.0
"""add-host and remove-host through REST, with and without hooks.

Two nova-api processes share a cloud: the first with this package's hooks and
journal, the second with nova's own mirroring. They are called in turn,
sequentially. The ratio is computed per pair, with new processes for each pair;
above 1 this package is faster.

Each pair runs at a different stack depth. CPython allocates frames in chunks
of 16 KB, and a loop that calls across the end of a chunk takes many times as
long: depending on the depth, this cost nova 5 of 45 ms.
"""

from collections.abc import Callable
import functools
import statistics
import time

from keystoneauth1 import adapter

from benchmarks import agent_pass
from benchmarks import commands
from benchmarks import figures
from benchmarks import services
from benchmarks import stock
from benchmarks import table
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import programs

WARM_UP = 5
CHUNK_OF_FRAMES = 117
"""Number of empty frames that fill a chunk of CPython 3.11."""
ACTIONS = ('add_host', 'remove_host')
WALL = 'wall, ms'
TARGETS = {'add_host': {WALL: 1}}
ENOUGH = 40
"""Minimum calls for a target: with fewer the median is too noisy."""
HEADER = ('', 'stock nova', 'this package', 'ratio', 'target')


def timed(call: Callable[[], object]) -> float:
    """Return the duration of a call, in milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


class Api:
    """A nova-api with a separate aggregate to add hosts to and remove from."""

    def __init__(self, nova: adapter.Adapter, name: str) -> None:
        self._nova = nova
        self._path = '/os-aggregates/%d' % nova.post(
            '/os-aggregates', json={'aggregate': {'name': name}}
        ).json()['aggregate']['id']
        self.requests = 0.0
        """Placement requests per call."""
        self.times: dict[str, list[float]] = {action: [] for action in ACTIONS}

    def call(self, host: str) -> None:
        """Add a host and remove it again, and record both durations."""
        for action in ACTIONS:
            spent = timed(lambda: self._nova.post(
                self._path + '/action', json={action: {'host': host}}))
            self.times[action].append(spent)

    def close(self) -> None:
        self._nova.delete(self._path)

    def median(self, action: str) -> float:
        """Return the median call in milliseconds, without the warm-up."""
        return statistics.median(self.times[action][WARM_UP:])


def prepare_journal(running: cloud.Cloud, on_server: bool) -> config.Options:
    """Prepare the journal as the installation does.

    The agent binds it to this nova. Until then, each call has to check that
    the journal belongs to no other nova.

    :returns: the options that nova.conf needs for it
    """
    options: config.Options = {}
    if on_server:
        options = {'aggregate_mirror_database': {
            'connection': running.config.database_url('journal')}}
        config_files.write_nova(running.config, 'nova.conf', options)
        commands.create_journal(running)
    agent_pass.Agent(running).stop()
    return options


def measure_pair(running: cloud.Cloud, hosts: list[str], calls: int,
                 frames: int, options: config.Options) -> figures.Pair:
    """Run both nova-api processes, and call them in turn."""
    server = functools.partial(programs.waitress, frames=frames)
    with running.another_nova_api('ours', options, server) as ours, \
            stock.nova_api(running, server) as theirs:
        pair = figures.Pair(Api(ours, 'ours'), Api(theirs, 'stock'))
        order = [pair.ours, pair.theirs]
        for number in range(WARM_UP + calls):
            for api in order:
                api.call(hosts[number % len(hosts)])
            # A B B A: gradual changes of the load affect both alike.
            order.reverse()
        for api in order:
            before = running.placement_requests()
            for host in hosts:
                api.call(host)
            api.requests = ((running.placement_requests() - before)
                            / len(hosts) / len(ACTIONS))
            api.close()
    return pair


def measure(chosen: services.Services, pairs: int, calls: int,
            on_server: bool = False) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :param on_server: whether the journal is on the database server
    """
    hosts, lines = ['bench-%02d' % number for number in range(20)], (
        figures.Lines())
    with chosen.cloud() as running:
        running.seed_hosts(hosts)
        options = prepare_journal(running, on_server)
        measured = [measure_pair(
            running, hosts, calls, CHUNK_OF_FRAMES * pair // pairs, options)
            for pair in range(pairs)]
    for action in ACTIONS:
        lines.compare(action.replace('_', '-'), measured, [figures.Figure(
            WALL, functools.partial(Api.median, action=action), 1)],
            TARGETS.get(action, {}) if calls >= ENOUGH else {})
    lines.compare('either', measured, [figures.Figure(
        'placement requests', lambda api: api.requests, 1)])
    return [table.Table(
        'Adding or removing a host, pairs of %d calls: %d; journal in %s' % (
            calls, pairs,
            'the database server' if on_server else 'an SQLite file'),
        HEADER, lines.rows)], lines.missed
