# SPDX-License-Identifier: Apache-2.0
"""Time add-host and remove-host through REST, with our hooks and without.

One cloud of real keystone, placement and nova-api processes serves both, on
SQLite or on a MySQL server. Two nova-api processes share it, one with this
package's hooks, journal included, one with nova's own mirroring; they are
called in turn, one request at a time. The ratio is taken pair by pair, with
new processes for each: below 1 the hooks are faster. Machines are noisy: quote
the medians and the ratios, not a single time.

Each pair runs at another depth of the stack. CPython keeps frames in chunks of
16 KB, and a loop that happens to call across the end of a chunk takes many
times as long: 5 of 45 ms went to one place or another of nova's, by depth.
"""

import argparse
from collections.abc import Callable
import functools
import statistics
import sys
import time

try:
    from keystoneauth1 import adapter

    from benchmarks import databases
    from benchmarks import program
    from tests.cloud import cloud
    from tests.cloud import config
    from tests.cloud import processes
except ImportError as exc:
    sys.exit('%s; run this in the environment that ./tools/demo makes: '
             '.venv-demo/bin/python -m benchmarks.add_host' % exc)

WARM_UP = 5
CHUNK_OF_FRAMES = 117
"""So many frames that do nothing fill a chunk of CPython 3.11's."""
STOCK: config.Options = {'aggregate_mirror': {'hooks': ''}}
ACTIONS = ('add_host', 'remove_host')


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='add_host', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pairs', type=program.positive, default=8,
                        help='how often the two are started and measured (8)')
    parser.add_argument('--calls', type=program.positive, default=40,
                        help='calls of each kind to each of the two (40)')
    program.add_database(parser, databases.SQLITE, 'sqlite')
    parser.add_argument(
        '--journal', choices=('sqlite', 'server'), default='sqlite',
        help='where the journal is: in a file (the default), or on the server '
             'that --database names')
    options = parser.parse_args(argv)
    if (options.journal == 'server'
            and options.database == databases.SQLITE):
        parser.error('--journal server needs --database')
    return options


def timed(call: Callable[[], object]) -> float:
    """How long a call takes, in milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


class Api:
    """One nova-api and an aggregate of its own to move hosts in and out."""

    def __init__(self, nova: adapter.Adapter, name: str) -> None:
        self._nova = nova
        self._path = '/os-aggregates/%d' % nova.post(
            '/os-aggregates', json={'aggregate': {'name': name}}
        ).json()['aggregate']['id']
        self.requests = 0.0
        """Placement requests of one call."""
        self.times: dict[str, list[float]] = {action: [] for action in ACTIONS}

    def call(self, host: str) -> None:
        """Add a host and remove it again, and note how long each took."""
        for action in ACTIONS:
            spent = timed(lambda: self._nova.post(
                self._path + '/action', json={action: {'host': host}}))
            self.times[action].append(spent)

    def close(self) -> None:
        self._nova.delete(self._path)

    def median(self, action: str) -> float:
        """Milliseconds of the median call, the first ones left out."""
        return statistics.median(self.times[action][WARM_UP:])


def journal_on_server(running: cloud.Cloud) -> config.Options:
    """Make the journal's tables on the server; what nova.conf needs for it."""
    options = {'aggregate_mirror_database': {
        'connection': running.config.database_url('journal')}}
    config.write_nova(running.config, 'journal.conf', options)
    status, _out, err = running.run(
        'nova-aggregate-mirror-manage', '--config-file',
        running.config.path('journal.conf'), 'db', 'sync')
    if status:
        raise processes.CloudError(err)
    return options


def measure(running: cloud.Cloud, hosts: list[str], calls: int, frames: int,
            options: config.Options) -> dict[str, Api]:
    """Run both nova-api processes at once, and call them in turn."""
    server = functools.partial(processes.waitress, frames=frames)
    with running.another_nova_api('ours', options, server) as ours, \
            running.another_nova_api('stock', STOCK, server) as stock:
        apis = {'ours': Api(ours, 'ours'), 'stock': Api(stock, 'stock')}
        order = list(apis.values())
        for number in range(WARM_UP + calls):
            for api in order:
                api.call(hosts[number % len(hosts)])
            # A B B A: whatever drifts meanwhile weighs on both alike.
            order.reverse()
        for api in apis.values():
            before = running.placement_requests()
            for host in hosts:
                api.call(host)
            api.requests = ((running.placement_requests() - before)
                            / len(hosts) / len(ACTIONS))
            api.close()
    return apis


def compare(running: cloud.Cloud, pairs: int, calls: int,
            options: config.Options) -> None:
    hosts = ['bench-%02d' % number for number in range(20)]
    running.seed_hosts(hosts)
    ratios: dict[str, list[float]] = {action: [] for action in ACTIONS}
    print('%-6s %14s %17s %20s' % (
        '', 'add-host ms', 'remove-host ms', 'placement requests'))
    for pair in range(pairs):
        apis = measure(running, hosts, calls, CHUNK_OF_FRAMES * pair // pairs,
                       options)
        for name, api in apis.items():
            print('%-6s %14.1f %17.1f %20.1f' % (
                name, *map(api.median, ACTIONS), api.requests), flush=True)
        for action in ACTIONS:
            ratios[action].append(apis['ours'].median(action)
                                  / apis['stock'].median(action))
    for action in ACTIONS:
        print('%s, ours/stock: min %.2f, median %.2f, max %.2f' % (
            action, min(ratios[action]), statistics.median(ratios[action]),
            max(ratios[action])))


def main(argv: list[str]) -> int:
    options = parse(argv)

    def benchmark() -> int:
        with databases.made(options.database) as database, \
                cloud.Cloud(database) as running:
            compare(running, options.pairs, options.calls,
                    journal_on_server(running)
                    if options.journal == 'server' else {})
        return 0

    return program.guarded(benchmark)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
