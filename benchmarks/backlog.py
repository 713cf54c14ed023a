# SPDX-License-Identifier: Apache-2.0
"""The processor time in which an agent reads a long journal until it is empty.

Run it in the environment of the tests. The journal is a real database; nova
and placement are in memory, because their time is not counted.
"""

import argparse
from collections.abc import Callable
import functools
import tempfile
import time
from typing import Any
from unittest import mock

from oslo_config import cfg
from oslo_utils import uuidutils

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit import doubles

HOSTS, CHUNK = 100, 1000
READS = ('briefs', 'extent', 'get')


def fill(database: engine.Database, rows: int) -> None:
    """Add handed-over rows to a journal."""
    for start in range(0, rows, CHUNK):
        with database.transaction() as connection:
            connection.execute(models.dirty.insert(), [{
                'id': uuidutils.generate_uuid(), 'host': 'h%d' % (row % HOSTS),
                'nodes': 'n%d' % (row % HOSTS), 'request_id': '',
                'running': False, 'created_at': float(row), 'attempts': 1,
                'last_error': '', 'mirrored_at': None}
                for row in range(start, min(start + CHUNK, rows))])


def timed(read: Callable[..., Any], seconds: list[float]
          ) -> Callable[..., Any]:
    """Return a method that appends its processor time."""
    @functools.wraps(read)
    def wrapper(*args: Any) -> Any:
        start = time.process_time()
        try:
            return read(*args)
        finally:
            seconds.append(time.process_time() - start)
    return wrapper


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rows', type=int, default=100000)
    parser.add_argument(
        '--connection', help='URL of an empty database (default: a file)')
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = cfg.ConfigOpts()
        options.register_opt(cfg.StrOpt('state_path', default=folder))
        conf.register_opts(options)
        options([], default_config_files=[], default_config_dirs=[])
        if chosen.connection:
            options.set_override('connection', chosen.connection,
                                 'aggregate_mirror_database')
        database = engine.Database(options)
        database.migrate()
        fill(database, chosen.rows)
        nova, placement = doubles.Nova([]), doubles.Placement([])
        nova.hosts_of = {'a': {'h%d' % host for host in range(HOSTS)}}
        for host in range(HOSTS):
            nova.nodes['n%d' % host] = 'h%d' % host
            placement.create('n%d' % host)
        opened = store.Journal(options)
        drained = drain.Drain(options, opened.rows, reconciler.Reconciler(
            opened.ledger, nova, placement, opened.rows), mock.Mock())
        reads: dict[str, list[float]] = {name: [] for name in READS}
        for name, seconds in reads.items():
            setattr(opened.rows, name, timed(
                getattr(opened.rows, name), seconds))
        start, cpu = time.monotonic(), time.process_time()
        while drained.step() or not drained.is_idle():
            pass
        print('%d rows: %.0f s, of which %.1f s of processor time; reading the'
              ' journal %.1f s: %s' % (
                  chosen.rows, time.monotonic() - start,
                  time.process_time() - cpu, sum(map(sum, reads.values())),
                  ', '.join('%s %d times %.1f s' % (
                      name, len(seconds), sum(seconds))
                      for name, seconds in reads.items())))


if __name__ == '__main__':
    main()
