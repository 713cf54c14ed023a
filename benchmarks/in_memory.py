# SPDX-License-Identifier: Apache-2.0
"""A single size of ``benchmarks.scale``, run in a separate process.

Nova's tables are real, in SQLite files, so that this package's source reads
them as usual; placement is the in-memory fake of the unit tests. The figures
are therefore the cost of this package itself.

usage: python -m benchmarks.in_memory HOSTS MEMBERSHIPS AGGREGATES DIRECTORY
"""

import collections
from collections.abc import Callable
import json
import pathlib
import sys
import time
import tracemalloc
import uuid

from nova.conf import CONF
from nova import config as nova_config
from nova.db.api import models as api_models
from nova.db.main import models as main_models
import sqlalchemy as sa

from benchmarks import services
from benchmarks import workload
import nova_aggregate_mirror.conf
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import seed
from tests.unit import doubles

MIB = 2 ** 20
CELL_TIMEOUT = 600


def make_nova(files: config.Config, size: workload.Size) -> list[seed.Node]:
    """Create nova's databases in files, and its configuration."""
    for name, models in (('nova_api', api_models), ('nova', main_models)):
        engine = sa.create_engine(files.database_url(name))
        models.BASE.metadata.create_all(engine)
        engine.dispose()
    engine = sa.create_engine(files.database_url('nova_api'))
    with engine.begin() as connection:
        connection.execute(sa.insert(api_models.CellMapping), {
            'uuid': str(uuid.uuid4()), 'name': 'cell1',
            'transport_url': 'fake:/',
            'database_connection': files.database_url('nova')})
    engine.dispose()
    nodes = list(seed.nodes(size.host_names(), nodes_per_host=1))
    seed.compute_hosts(files, 1, nodes)
    seed.aggregates(files, size.members())
    config_files.write_nova(files, 'nova.conf', {})
    return nodes


class Trial:
    """This package with nova's tables and an in-memory placement."""

    def __init__(self, nodes: list[seed.Node]) -> None:
        # No request log, which would count as memory.
        self._placement = doubles.Placement(collections.deque(maxlen=0))
        self._source = database.DatabaseSource(
            engines.Limits(CELL_TIMEOUT), threads=True)
        self._reconciler = reconciler.Reconciler(
            store.Journal(CONF).ledger, self._source, self._placement,
            count=CONF.aggregate_mirror.sync_workers)
        for node in nodes:
            self._placement.create(node.uuid)

    def read(self) -> object:
        """Read all of nova."""
        return self._source.read_all()

    def planned(self) -> Callable[[], list[plan.Change]]:
        """Return a function that computes the plan from data already read."""
        nova = self._source.read_all()
        current = self._placement.memberships(nova.aggregates)
        return lambda: plan.compute(nova.desired(), current,
                                    frozenset(nova.aggregates))

    def cold(self) -> None:
        """Run a full sync with nothing mirrored."""
        self._sync(len(self._placement.aggregates))

    def warm(self) -> None:
        """Run a full sync with everything in sync."""
        self._sync(0)

    def empty(self) -> None:
        for provider in self._placement.aggregates:
            self._placement.write(provider, ())

    def _sync(self, wanted: int) -> None:
        changed = len(full_sync.run(self._reconciler).outcome.changes)
        if changed != wanted:
            raise services.Void('Changed providers: %d, expected: %d' % (
                changed, wanted))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of this process during the work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mib(work: Callable[[], object]) -> float:
    """Return the peak memory of the work."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / MIB


def main(argv: list[str]) -> None:
    size = workload.Size(*map(int, argv[:3]))
    files = config.Config(pathlib.Path(argv[3]), 'sqlite', '',
                          dict.fromkeys(config.SMALL, 0))
    nodes = make_nova(files, size)
    nova_aggregate_mirror.conf.register_opts(CONF)
    nova_config.parse_args(
        ['in_memory', '--config-file', files.nova_conf],
        init_rpc=False)
    trial = Trial(nodes)
    # The cost of the first transaction does not depend on the size.
    trial.read()
    found = {
        'read': cpu_seconds(trial.read),
        'plan': cpu_seconds(trial.planned()),
        'cold': cpu_seconds(trial.cold),
        'warm': cpu_seconds(trial.warm)}
    trial.empty()
    found['cold_mib'] = peak_mib(trial.cold)
    found['warm_mib'] = peak_mib(trial.warm)
    json.dump(found, sys.stdout)


if __name__ == '__main__':
    main(sys.argv[1:])
