# SPDX-License-Identifier: Apache-2.0
"""The hosts of a row of bad parts: healthy ones, a leaving one, and its own.
"""

from collections import abc
import itertools
import time
import uuid

import sqlalchemy as sa

from tests.cloud.faults import lane as lanes
from tests.cloud.faults import scene as scenes
from tests.cloud.faults import table
from tests.cloud import seed
from tests.cloud import sql

AGGREGATES = 10
"""Aggregates of the host whose service is deleted."""
# An aggregate whose UUID is none, and that of a host which was renamed.
ODD, STALE = 'odd', 'stale'
UUIDS = {'text': 'zone-one', 'null': None, 'empty': ''}
# As nova documents it; the rest is in [database] connection.
TEMPLATE = '{scheme}://{username}:{password}@{hostname}:{port}/%s?{query}'
# How IDs of rows begin: rows of the bad part are above those of healthy hosts,
# with a running row between.
HEALTHY_ROW, RUNNING_ROW, BAD_ROW = '00', '01', '1'


class Part:
    """The hosts of a row, on a lane of its own."""

    def __init__(self, lane: lanes.Lane, scene: scenes.Scene, row: table.Row
                 ) -> None:
        self.healthy = [scene.name('healthy', number)
                        for number in range(row.healthy)]
        self.leaving = scene.name('leaving')
        self.special = [scene.name('special')] if row.included else []
        """The host of the bad part that is measured, if any."""
        self.bad = [scene.name('bad', number) for number in range(row.rows)]
        """Its other hosts."""
        self._lane = lane
        self._scene = scene
        self._row = row
        self._create_hosts()
        self._create_aggregates()

    def _create_hosts(self) -> None:
        scene, row = self._scene, self._row
        cells = (self._lane.wires_of(row) if row.party == 'other-cell'
                 else [lanes.CELL])
        scene.create_hosts(lanes.CELL, [*self.healthy, self.leaving])
        for host in self.special:
            scene.create_hosts(
                cells[0], [host], table.NODES if row.silent else 1,
                str.upper if row.kind == 'upper-case' else str)
            scene.silent = frozenset(scene.providers[host][:row.silent])
        for number, cell in enumerate(cells):
            scene.create_hosts(cell, self.bad[number::len(cells)],
                               table.MANY if row.kind == 'many-nodes' else 1)

    def _create_aggregates(self) -> None:
        scene, row = self._scene, self._row
        leaving = ['leaving-%d' % number for number in range(AGGREGATES)]
        for name in (ODD, STALE, *leaving):
            scene.create_aggregate(name)
        for host in self.healthy:
            scene.place(host, [scenes.SECOND])
        scene.place(self.leaving, leaving, leaving=True)
        odd = [ODD] if row.party == 'aggregate' else []
        for host in self.special:
            scene.place(host, [scenes.SECOND, *odd])
            if row.kind == 'duplicate':
                self._add_duplicate(scene.providers[host][0])

    def _add_duplicate(self, node: str) -> None:
        """Let another cell have the node, too, of a host renamed and moved."""
        stale = self._scene.name(STALE)
        self._lane.seed('cell-2', [seed.Node(stale, stale, node)])
        self._scene.execute(
            'api', 'DELETE FROM host_mappings WHERE host = :host', host=stale)
        self._scene.join([stale], STALE)

    def bad_providers(self) -> set[str]:
        """Return the providers that are served badly, if any are."""
        providers = [self._scene.providers[host] for host in self.bad]
        return {*self._scene.silent, *itertools.chain(*providers)}

    def hand_over(self, healthy: abc.Sequence[str],
                  bad: abc.Sequence[str] = (), running: bool = False
                  ) -> list[str]:
        """Hand over a row of each host, or leave it running; return IDs."""
        rows = []
        for host in (*bad, *healthy):
            prefix = RUNNING_ROW if running else (
                BAD_ROW if host in bad else HEALTHY_ROW)
            suffix = str(uuid.uuid4())[len(prefix):]
            nodes = sorted(self._scene.providers[host])
            rows.append({
                'id': prefix + suffix, 'host': host, 'nodes': ','.join(nodes),
                'request_id': 'req-%s' % uuid.uuid4(), 'running': running,
                'created_at': time.time(), 'attempts': 1,
                'last_error': 'placement was unavailable'})
        sql.insert(self._lane.journal_url(), 'dirty', rows)
        return [row['id'] for row in rows]

    def use_templates(self) -> None:
        """Replace the database URL of each cell by a template."""
        for number, database in enumerate(self._lane.cells.values(), start=1):
            url = sa.engine.make_url(self._lane.config.database_url(database))
            self._scene.execute(
                'api', 'UPDATE cell_mappings SET database_connection = :url '
                'WHERE name = :name', name='cell%d' % number,
                url=TEMPLATE % url.database)

    def blameless(self, unserved: abc.Set[str]) -> set[str]:
        """Return healthy hosts and providers that have not failed."""
        names = set()
        for host in self.healthy:
            providers = self._scene.providers[host]
            if unserved.isdisjoint(providers):
                names |= {host, *providers}
        if self._scene.silent:
            for host in self.special:
                names |= {*self._scene.answering(host)} - unserved
        return names
