# SPDX-License-Identifier: Apache-2.0
"""Benchmark of add-host and remove-host through REST, with and without hooks.

A cloud of real keystone, placement and nova-api processes runs on SQLite or on
a MySQL server. Two nova-api processes share it: the first with this package's
hooks and journal, the second with nova's own mirroring. They are called in
turn, sequentially. The ratio is computed per pair, with new processes for each
pair; above 1 this package is faster. Single times are noisy: quote the medians
and the ratios.

Each pair runs at a different stack depth. CPython allocates frames in chunks
of 16 KB, and a loop that calls across the end of a chunk takes many times as
long: depending on the depth, this cost nova 5 of 45 ms.

exit status: 0 all targets are met, 1 a target is missed, 2 the benchmark could
not run, 130 interrupted
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import functools
import statistics
import sys
import time

from keystoneauth1 import adapter

from benchmarks import agent_pass
from benchmarks import arguments
from benchmarks import figures
from benchmarks import program
from benchmarks import services
from benchmarks import stock
from benchmarks import table
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import processes
from tests.cloud import programs

WARM_UP = 5
CHUNK_OF_FRAMES = 117
"""Number of empty frames that fill a chunk of CPython 3.11."""
ACTIONS = ('add_host', 'remove_host')
WALL = 'wall, ms'
NOT_SLOWER = 1
"""Target ratio of add-host."""
ENOUGH = 40
"""Minimum calls for a target: with fewer the median is too noisy."""
LINE = '%-6s  add-host %6.1f ms  remove-host %6.1f ms  %.1f placement requests'
HEADER = ('', 'stock nova', 'this package', 'ratio', 'target')


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='add_host', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pairs', type=arguments.positive, default=8,
                        help='how often both are started and measured (8)')
    parser.add_argument('--calls', type=arguments.positive, default=40,
                        help='calls of each kind to each nova-api (40)')
    arguments.add_database(parser, arguments.SQLITE, 'sqlite')
    parser.add_argument(
        '--journal', choices=('sqlite', 'server'), default='sqlite',
        help='location of the journal: a file (the default), or the server '
             'given by --database')
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    if (options.journal == 'server'
            and options.database == arguments.SQLITE):
        parser.error('--journal server needs --database')
    return options


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


def journal(running: cloud.Cloud, on_server: bool) -> config.Options:
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
        status, _out, err = running.run(
            'nova-aggregate-mirror-manage', '--config-file',
            running.config.path('nova.conf'), 'db', 'sync')
        if status:
            raise processes.CloudError(err)
    agent_pass.Agent(running).stop()
    return options


def one_pair(running: cloud.Cloud, hosts: list[str], calls: int, frames: int,
             options: config.Options) -> dict[str, Api]:
    """Run both nova-api processes, and call them in turn."""
    server = functools.partial(programs.waitress, frames=frames)
    with running.another_nova_api('ours', options, server) as ours, \
            stock.nova_api(running, server) as theirs:
        apis = {'ours': Api(ours, 'ours'), 'stock': Api(theirs, 'stock')}
        order = list(apis.values())
        for number in range(WARM_UP + calls):
            for api in order:
                api.call(hosts[number % len(hosts)])
            # A B B A: gradual changes of the load affect both alike.
            order.reverse()
        for api in apis.values():
            before = running.placement_requests()
            for host in hosts:
                api.call(host)
            api.requests = ((running.placement_requests() - before)
                            / len(hosts) / len(ACTIONS))
            api.close()
    return apis


def rows(pairs: Sequence[figures.Pair], calls: int
         ) -> tuple[list[list[str]], list[str]]:
    """Return the lines of the table, and the missed targets."""
    wanted = {('add-host', WALL): NOT_SLOWER} if calls >= ENOUGH else {}
    lines, missed = [], []
    for action in ACTIONS:
        state = action.replace('_', '-')
        more, failed = figures.rows(state, pairs, wanted, [figures.Figure(
            WALL, functools.partial(Api.median, action=action), 1)])
        lines += more
        missed += failed
    more, _missed = figures.rows('either', pairs, {}, [figures.Figure(
        'placement requests', lambda api: api.requests, 1)])
    return lines + more, missed


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :returns: the tables, and the missed targets
    """
    hosts, pairs = ['bench-%02d' % number for number in range(20)], []
    with chosen.cloud() as running:
        running.seed_hosts(hosts)
        journal_options = journal(running, options.journal == 'server')
        for pair in range(options.pairs):
            apis = one_pair(running, hosts, options.calls,
                            CHUNK_OF_FRAMES * pair // options.pairs,
                            journal_options)
            for name, api in apis.items():
                print(LINE % (name, *map(api.median, ACTIONS), api.requests),
                      flush=True)
            pairs.append(figures.Pair(apis['ours'], apis['stock']))
    lines, missed = rows(pairs, options.calls)
    return [table.Table(
        'Adding or removing a host, pairs of %d calls: %d; journal in %s' % (
            options.calls, options.pairs, 'an SQLite file'
            if options.journal == 'sqlite' else 'the database server'),
        HEADER, lines)], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
