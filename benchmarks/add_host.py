# SPDX-License-Identifier: Apache-2.0
"""Time add-host and remove-host through REST, with our hooks and without.

One cloud of real keystone, placement and nova-api processes serves both, on
SQLite or on a MySQL server. Nova-api runs in turn with this package's hooks,
journal included, and with nova's own mirroring, and is called one request at a
time. The ratio is taken pair by pair: below 1 the hooks are faster. Machines
are noisy: quote the medians and the ratios, not a single time.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import pathlib
import signal
import statistics
import sys
import time

try:
    import sqlalchemy

    from tests.cloud import cloud
    from tests.cloud import processes
except ImportError as exc:
    sys.exit('%s; run this in the environment that ./tools/demo makes: '
             '.venv-demo/bin/python -m benchmarks.add_host' % exc)

WARM_UP = 5
PREFIX = 'mirror_benchmark_'
DATABASES = ('keystone', 'placement', 'nova', 'nova_api', 'nova_cell0')
STOCK = '\n[aggregate_mirror]\nhooks =\n'
ACTIONS = ('add_host', 'remove_host')


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError('%s is not above 0' % text)
    return number


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='add_host', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pairs', type=positive, default=5,
                        help='how often both are measured in turn (5)')
    parser.add_argument('--calls', type=positive, default=40,
                        help='calls of each kind in one measurement (40)')
    parser.add_argument(
        '--database', default='sqlite', metavar='URL',
        help='a MySQL server for the services\' databases, as in '
             'mysql+pymysql://root@127.0.0.1; databases whose names begin '
             'with %s are made and dropped there' % PREFIX)
    options = parser.parse_args(argv)
    if options.database != 'sqlite' and not options.database.startswith(
            'mysql+pymysql://'):
        parser.error('--database takes "sqlite" or mysql+pymysql://...')
    return options


@contextlib.contextmanager
def databases(url: str) -> Iterator[str]:
    """Make what a cloud needs on a server; gives its ``database``."""
    if url == 'sqlite':
        yield url
        return
    server = sqlalchemy.create_engine(url)
    made = []
    try:
        with server.connect() as connection:
            for name in DATABASES:
                connection.execute(sqlalchemy.text(
                    'CREATE DATABASE ' + PREFIX + name))
                made.append(PREFIX + name)
        yield url + '/' + PREFIX
    finally:
        with server.connect() as connection:
            for name in made:
                connection.execute(sqlalchemy.text('DROP DATABASE ' + name))


def timed(call: Callable[[], object]) -> float:
    """How long a call takes, in milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def measure(running: cloud.Cloud, hosts: list[str],
            calls: int) -> dict[str, float]:
    """Median milliseconds of each action, and placement's requests a call."""
    nova = running.nova()
    aggregate = nova.post('/os-aggregates', json={'aggregate': {
        'name': 'benchmark'}}).json()['aggregate']['id']
    path = '/os-aggregates/%d/action' % aggregate
    times: dict[str, list[float]] = {action: [] for action in ACTIONS}
    before = 0
    for number in range(WARM_UP + calls):
        if number == WARM_UP:
            before = running.placement_requests()
        for action in ACTIONS:
            body = {action: {'host': hosts[number % len(hosts)]}}
            spent = timed(lambda: nova.post(path, json=body))
            if number >= WARM_UP:
                times[action].append(spent)
    requests = running.placement_requests() - before
    nova.delete('/os-aggregates/%d' % aggregate)
    return {'requests': requests / calls / len(ACTIONS),
            **{action: statistics.median(times[action])
               for action in ACTIONS}}


def compare(running: cloud.Cloud, pairs: int, calls: int) -> None:
    conf = pathlib.Path(running.nova_conf)
    configured = conf.read_text()
    hosts = ['bench-%02d' % number for number in range(20)]
    running.seed_hosts(hosts)
    ratios: dict[str, list[float]] = {action: [] for action in ACTIONS}
    print('%-6s %14s %17s %20s' % (
        '', 'add-host ms', 'remove-host ms', 'placement requests'))
    for _pair in range(pairs):
        found = {}
        for name, options in (('ours', ''), ('stock', STOCK)):
            conf.write_text(configured + options)
            running.restart_nova_api()
            found[name] = measure(running, hosts, calls)
            print('%-6s %14.1f %17.1f %20.1f' % (
                name, *(found[name][action] for action in ACTIONS),
                found[name]['requests']), flush=True)
        for action in ACTIONS:
            ratios[action].append(found['ours'][action]
                                  / found['stock'][action])
    for action in ACTIONS:
        print('%s, ours/stock: min %.2f, median %.2f, max %.2f' % (
            action, min(ratios[action]), statistics.median(ratios[action]),
            max(ratios[action])))


def main(argv: list[str]) -> int:
    options = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with databases(options.database) as database, \
                cloud.Cloud(database) as running:
            compare(running, options.pairs, options.calls)
    except (processes.CloudError, sqlalchemy.exc.SQLAlchemyError) as exc:
        print(str(exc).partition('\n[SQL')[0], file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
