# SPDX-License-Identifier: Apache-2.0
"""Nova's cells: the cell mappings, and bounded reads across cells."""

from collections import abc
import dataclasses
import functools
from typing import Any
from urllib import parse

from nova.conf import CONF
from oslo_utils import netutils

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import statements
from nova_aggregate_mirror import uuids

CELL0 = '00000000-0000-0000-0000-000000000000'
Nodes = abc.Collection[tuple[str | None, str]]
"""Compute nodes as nova has them, each with its host."""
Query = abc.Callable[[Any], Any]
"""Function that reads a cell from the connection to its database."""
Reads = abc.Mapping[str, abc.Callable[[], Any]]
Answers = abc.Mapping[str, Any]
"""Cells to what they answered, or to ``CellUnavailable``, not raised."""
Read = abc.Callable[[Reads, bool], Answers]
"""Reads cells, with or without the patience for whole ones; see ``rows``."""


def read_in_order(reads: Reads, patient: bool) -> Answers:
    """Read the cells in order, for nova-api, which may start no threads."""
    return {name: read() for name, read in reads.items()}


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """A cell that can have compute nodes; the oldest first."""

    id: int
    uuid: str
    name: str
    """Unique; the name to display."""
    connection: str = dataclasses.field(repr=False)
    party: causes.Party = dataclasses.field(repr=False, compare=False)


class Cells:
    """Cells of this deployment, each with a separate connection pool.

    Nova caches the list of cells, and targets request contexts at them.
    Reading the mappings each time finds added cells.

    :param limits: for whole cells
    :param limits_some: for the nodes of some hosts; by default the same
    :param read: reads cells, in threads if there are any
    """

    def __init__(self, limits: engines.Limits,
                 limits_some: engines.Limits | None = None,
                 read: Read = read_in_order) -> None:
        self._limits = limits
        self._limits_some = limits_some or limits
        self._read_cells = read
        self._pools: dict[tuple[Cell, bool], connections.Pool] = {}
        """By cell, and by whether the limits are those for whole cells."""

    def all(self, connection: Any) -> list[Cell]:
        """Read every cell except cell0, oldest first."""
        return [cell_of(row) for row in connection.execute(statements.CELLS)
                if row.uuid != CELL0]

    def rows(self, queries: abc.Mapping[Cell, Query], patient: bool = False
             ) -> tuple[list[source.NodeRow], source.Down]:
        """Run a query in each of the given cells; also return which are down.

        :param patient: whether to wait as long as whole cells take
        """
        rows: list[source.NodeRow] = []
        down: dict[str, exceptions.Failure] = {}
        for name, answer in sorted(self.answers(queries, patient).items()):
            if isinstance(answer, exceptions.CellUnavailable):
                down[name] = answer.failure
                continue
            # Nova's column is nullable.
            rows += [source.NodeRow(name, uuids.canonical(node or ''), host)
                     for node, host in answer]
        return rows, down

    def answers(self, queries: abc.Mapping[Cell, Query], patient: bool
                ) -> Answers:
        """Run a query in each of the given cells; see ``rows``."""
        return self._read_cells({
            cell.name: functools.partial(self._read, cell, query, patient)
            for cell, query in queries.items()}, patient)

    def _read(self, cell: Cell, query: Query, patient: bool) -> Any:
        """Run a query in a cell; a failure is a value, for the others."""
        if not cell.connection.strip():
            return exceptions.CellUnavailable.of(
                causes.UNASKED.with_detail('it has no URL'), cell.party)
        pool = self._pools.setdefault((cell, patient), connections.Pool(
            cell.party, exceptions.CellUnavailable, lambda: cell.connection,
            CONF.database, self._limits if patient else self._limits_some))
        try:
            with pool.reading() as connection:
                return query(connection)
        except exceptions.CellUnavailable as exc:
            return exc


def cell_of(row: Any) -> Cell:
    """Build the cell from a row that has ``statements.CELL``."""
    name = full_name(row)
    # Nova's column is nullable; a cell without a URL is not read.
    template = row.database_connection or ''
    return Cell(row.id, row.uuid, name, _filled_in(template),
                causes.cell(name, template))


def _filled_in(url: str) -> str:
    """Fill in a template from the parts of ``[database] connection``."""
    # So does ``CellMapping.format_db_url`` of nova, whose import takes seconds
    # and imports eventlet: a thread that does that can never be joined.
    if set(url).isdisjoint('{}') or CONF.database.connection is None:
        return url
    try:
        split = parse.urlparse(CONF.database.connection)
        parts = {name: getattr(split, name) for name in (
            'username', 'password', 'hostname', 'port', 'scheme', 'query',
            'fragment')}
        # Only the parts of several servers have numbers.
        servers = split.netloc.split(',') if ',' in split.netloc else []
        for number, netloc in enumerate(servers, start=1):
            account, server = (netloc.split('@', 1) if '@' in netloc
                               else ('', netloc))
            user, colon, password = account.partition(':')
            host, port = netutils.parse_host_port(server)
            parts |= {
                'username%d' % number: user, 'hostname%d' % number: host,
                'password%d' % number: password if colon else None,
                'port%d' % number: port}
        return url.format(**parts, path=split.path.lstrip('/'))
    except (ValueError, LookupError, TypeError, AttributeError):
        # Nova's templates and a malformed connection raise all of these.
        return url


def full_name(mapping: Any) -> str:
    """Return the name and UUID of a cell mapping: what messages call it."""
    return '%s (%s)' % (mapping.name or source.UNNAMED, mapping.uuid)
