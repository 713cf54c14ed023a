# SPDX-License-Identifier: Apache-2.0
"""What users and placement see in the course of a soak."""

import csv
import pathlib
import threading
import time

import sqlalchemy.exc

from tests.cloud.chaos import report
from tests.cloud import cloud
from tests import databases

INTERVAL = 0.5
HEADER = ('seconds', 'answers', 'unexpected', 'pending', 'differing', 'faults')

# The associations that nova wants, and those that placement has, of compute
# nodes. Asked in the databases, which are available when placement is not.
_WANTED = """
SELECT node.uuid, one.uuid FROM {0}nova_api.aggregates one
JOIN {0}nova_api.aggregate_hosts host ON host.aggregate_id = one.id
JOIN {0}nova.compute_nodes node ON node.host = host.host AND NOT node.deleted
"""
_SHOWN = """
SELECT provider.uuid, one.uuid FROM {0}placement.placement_aggregates one
JOIN {0}placement.resource_provider_aggregates pair
  ON pair.aggregate_id = one.id
JOIN {0}placement.resource_providers provider
  ON provider.id = pair.resource_provider_id
JOIN {0}nova.compute_nodes node ON node.uuid = provider.uuid
WHERE one.uuid != '{1}'
"""
_PENDING = 'SELECT COUNT(*) FROM {0}journal.dirty WHERE mirrored_at IS NULL'


class Series:
    """Samples of a soak, taken in the context of this object.

    :param foreign: an aggregate that is not nova's
    """

    def __init__(self, running: cloud.Cloud, result: report.Result,
                 foreign: str) -> None:
        self._where, _slash, prefix = running.config.database.rpartition('/')
        self._queries = [query.format(prefix, foreign)
                         for query in (_WANTED, _SHOWN, _PENDING)]
        self._result = result
        self._rows: list[tuple[object, ...]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def write(self, path: pathlib.Path) -> None:
        """Write the samples as CSV; an unknown number is empty."""
        with path.open('w', newline='') as out:
            writer = csv.writer(out, lineterminator='\n')
            writer.writerow(HEADER)
            writer.writerows(self._rows)

    def _sample(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(INTERVAL):
            now = time.monotonic()
            try:
                wanted, shown, [[pending]] = (
                    databases.execute(self._where, query)
                    for query in self._queries)
                figures = [pending, len({*map(tuple, wanted)}
                                        ^ {*map(tuple, shown)})]
            except sqlalchemy.exc.SQLAlchemyError:
                # The database itself is the fault.
                figures = ['', '']
            given = list(self._result.given)
            self._rows.append((
                '%.1f' % (now - began), len(given),
                sum(not each.expected for each in given), *figures,
                ' '.join(sorted({
                    '%s:%s' % (each.kind, each.target)
                    for each in list(self._result.windows)
                    if each.overlaps(now, now)}))))
