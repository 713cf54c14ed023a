# SPDX-License-Identifier: Apache-2.0
"""The lines of the table of bad parts: pure."""

from collections import abc
import dataclasses

SLOW = 6
"""Seconds that a slow cell takes for a statement."""
MANY = 300
"""Compute nodes of one host."""
NODES = 20
"""Compute nodes of a host with silent providers: from so many on, the drain
tries a host alone."""
BATCH = 44
"""Healthy hosts whose rows are in one batch with those of silent providers.
"""
NONE = 'none'
PARTS: abc.Mapping[str, str] = {
    NONE: 'None',
    'cell-refuses': 'Cell refuses connections',
    'cell-off': 'Cell whose server is powered off',
    'cell-silent': 'Cell accepts and is silent',
    'cell-slow': 'Cell takes %d s for a statement' % SLOW,
    'row-locked': 'Row of the journal is locked',
    'range-locked': 'Rows of the journal and the gaps between them are locked',
    'table-locked': 'Table of the journal is locked',
    'provider-500': 'Provider answers 500',
    'provider-409': 'Provider answers 409',
    'provider-garbage': 'Provider answers garbage',
    'provider-silent-get': 'Provider does not answer GET',
    'provider-silent-put': 'Provider does not answer PUT',
    'nodes-silent-get': 'Provider of a host does not answer GET',
    'nodes-silent-put': 'Provider of a host does not answer PUT',
    'backend-503': 'One of three placements answers 503',
    'backend-500': 'One of three placements answers 500',
    'backend-429': 'One of three placements answers 429',
    'moved-503': 'Placement moved, its old address answers 503',
    'moved-404': 'Placement moved, its old address answers 404',
    'moved-406': 'Placement moved, its old address answers 406',
    'moved-429': 'Placement moved, its old address answers 429',
    'template': 'Cells whose database URL is a template',
    'aggregate-text': 'Aggregate whose UUID is "zone-one"',
    'aggregate-null': 'Aggregate whose UUID is NULL',
    'aggregate-empty': 'Aggregate whose UUID is empty',
    'many-nodes': 'Host with %d compute nodes' % MANY,
    'duplicate': 'Compute node UUID in two cells',
    'upper-case': 'Compute node UUID in upper case'}
SILENT = (1, 10)
"""Numbers of silent providers."""
INLINE, DRAIN, SYNC = 'inline', 'drain', 'sync'
# Measurements that include the host of the bad part itself: it is healthy.
INCLUDED: abc.Mapping[str, frozenset[str]] = {
    'cell-slow': frozenset({SYNC}), **dict.fromkeys(
        ('duplicate', 'upper-case', 'nodes-silent-get', 'nodes-silent-put',
         'aggregate-text', 'aggregate-null', 'aggregate-empty'),
        frozenset({INLINE, DRAIN, SYNC}))}


@dataclasses.dataclass(frozen=True)
class Situation:
    """A line of the table.

    :param part: a key of ``PARTS``
    :param rows: handed-over rows of the bad part, each of another host
    :param cells: of nova
    :param bad_cells: cells that are bad, if the bad part is a cell
    :param journal: the kind of database that has the journal
    :param silent: providers that do not answer, of all or of one host
    """

    part: str
    rows: int = 1
    cells: int = 3
    bad_cells: int = 1
    journal: str = 'mysql'
    silent: int = 0

    @property
    def kind(self) -> str:
        """Return the first word of the part."""
        return self.part.partition('-')[0]

    @property
    def healthy(self) -> int:
        """Return the number of healthy hosts."""
        return BATCH if self.kind == 'provider' and self.silent else 10

    @property
    def is_cell(self) -> bool:
        """Check whether cells are the bad part."""
        return self.part.startswith('cell-')

    @property
    def differs(self) -> bool:
        """Check whether placement misses what the bad part's rows are about.

        Otherwise full syncs would repair it, which takes their time.
        """
        return (self.kind in ('cell', 'provider', 'many')
                and self.part != 'cell-slow')

    @property
    def takes_requests(self) -> bool:
        """Check whether requests may be repeated, or take all their time."""
        return self.kind in ('backend', 'moved') or bool(self.silent)

    @property
    def is_called(self) -> bool:
        """Check whether nova-api itself meets the bad part in calls.

        What it cannot mirror then is mirrored by the drain.
        """
        return self.kind in ('backend', 'moved', 'nodes')

    @property
    def is_heavy(self) -> bool:
        """Check whether it occupies placement, which all lanes share."""
        return self.part == 'many-nodes' or (
            self.part.startswith('provider-') and self.rows >= 1000)

    @property
    def included(self) -> frozenset[str]:
        """Return the measurements that include the host of the bad part."""
        return INCLUDED.get(self.part, frozenset())

    @property
    def extent(self) -> str:
        """Describe how much is bad."""
        extents = []
        if self.is_cell:
            extents.append('%d of %d cells' % (self.bad_cells, self.cells))
        if self.rows:
            extents.append('%d row%s' % (self.rows, 's' * (self.rows > 1)))
        elif self.silent:
            extents.append('%d of %d nodes' % (self.silent, NODES))
        if self.journal != 'mysql':
            extents.append('PostgreSQL')
        return ', '.join(extents)

    def __str__(self) -> str:
        words = [self.part]
        if self.bad_cells > 1:
            words.append('%d-of-%d' % (self.bad_cells, self.cells))
        if self.rows >= 1000:
            words.append('%d-rows' % self.rows)
        if self.silent > 1:
            words.append(str(self.silent))
        if self.journal != 'mysql':
            words.append(self.journal)
        return '-'.join(words)


def table() -> list[Situation]:
    """List every situation, in the order of the page."""
    lines = [Situation(NONE, rows=0)]
    for part in PARTS:
        if part.startswith('cell-'):
            lines += [Situation(part),
                      Situation(part, rows=10, cells=20, bad_cells=10),
                      Situation(part, rows=1000)]
        elif part.startswith('provider-silent-'):
            lines += [Situation(part, rows=silent, silent=silent)
                      for silent in SILENT]
        elif part.startswith('provider-'):
            lines += [Situation(part), Situation(part, rows=1000)]
        elif part.startswith('nodes-'):
            lines += [Situation(part, rows=0, silent=silent)
                      for silent in SILENT]
        elif part.startswith(('backend-', 'moved-', 'template', 'aggregate-')):
            lines.append(Situation(part, rows=0))
    lines += [Situation('row-locked', rows, journal=journal)
              for journal in ('mysql', 'postgresql') for rows in (1, 1000)]
    lines += map(Situation, ('range-locked', 'table-locked', 'many-nodes'))
    lines += [Situation(part, rows=0) for part in ('duplicate', 'upper-case')]
    order = [*PARTS]
    return sorted(lines, key=lambda line: order.index(line.part))
