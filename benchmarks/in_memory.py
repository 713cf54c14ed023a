# SPDX-License-Identifier: Apache-2.0
"""One size of ``benchmarks.scale``, in a process of its own.

Nova's tables are real, in SQLite files, so that our source reads them as it
reads nova's; placement is the one of the unit tests, in memory. What is left
is what this package itself needs.

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

from benchmarks import program
from benchmarks import workload
import nova_aggregate_mirror.conf
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import database
from tests.cloud import config
from tests.cloud import seed
from tests.unit import ends

MIB = 2 ** 20
CELL_TIMEOUT = 600


def make_nova(files: config.Config, size: workload.Size) -> list[seed.Node]:
    """Make nova's databases in files, and its configuration."""
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
    config.write_nova(files, 'nova.conf', {})
    return nodes


class Trial:
    """This package between nova's tables and a placement in memory."""

    def __init__(self, nodes: list[seed.Node]) -> None:
        # A log of the requests would grow with them.
        self._placement = ends.Placement(collections.deque(maxlen=0))
        self._source = database.DatabaseSource(cells.bounded(CELL_TIMEOUT))
        self._reconciler = reconciler.Reconciler(
            store.Journal(CONF).ledger, self._source, self._placement,
            count=CONF.aggregate_mirror.sync_workers)
        for node in nodes:
            self._placement.create(node.uuid)

    def read(self) -> object:
        """Read all of nova."""
        return self._source.read_all()

    def planned(self) -> Callable[[], list[plan.Change]]:
        """What it takes to compute the plan, all read already."""
        nova = self._source.read_all()
        current = self._placement.memberships(nova.aggregates)
        return lambda: plan.compute(nova.desired(), current,
                                    frozenset(nova.aggregates))

    def cold(self) -> None:
        """Mirror everything, when nothing is mirrored."""
        self._sync(len(self._placement.aggregates))

    def warm(self) -> None:
        """Compare everything, when all is in sync."""
        self._sync(0)

    def empty(self) -> None:
        for provider in self._placement.aggregates:
            self._placement.write(provider, ())

    def _sync(self, wanted: int) -> None:
        changed = len(full_sync.run(self._reconciler).outcome.changes)
        if changed != wanted:
            raise program.Void('%d providers were changed instead of %d' % (
                changed, wanted))


def cpu_seconds(work: Callable[[], object]) -> float:
    """The processor time of this whole process while it works."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mib(work: Callable[[], object]) -> float:
    """The most memory that the work had at once."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / MIB


def main(argv: list[str]) -> None:
    size = workload.Size(*map(int, argv[:3]))
    files = config.Config(pathlib.Path(argv[3]), 'sqlite', '', 0, 0, 0, 0)
    nodes = make_nova(files, size)
    nova_aggregate_mirror.conf.register_opts(CONF)
    nova_config.parse_args(
        ['in_memory', '--config-file', files.path('nova.conf')],
        init_rpc=False)
    trial = Trial(nodes)
    # What the first transaction loads and makes is not of the size.
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
