# SPDX-License-Identifier: Apache-2.0
"""The table of faults, and its selections by name: pure.

A row is a party or part, the kind of its badness, and the moment.
"""

from collections import abc
import dataclasses
import fnmatch
import itertools

NONE = 'none'
# The moments of a call at which a fault begins, as the hooks of the tests
# report them.
MOMENTS = ('begin', 'ready', 'returned')
# Bad before and during all measurements; at random while users work, and that
# while the agents only observe; silent while many calls are made.
STANDING, RANDOM, OBSERVED, LONG = 'standing', 'random', 'observed', 'long'
PARTIES: abc.Mapping[str, str] = {
    'keystone': 'Keystone',
    'placement': 'Placement',
    'journal-sqlite': 'The journal on SQLite',
    'journal-mysql': 'The journal on MariaDB',
    'journal-postgresql': 'The journal on PostgreSQL',
    'api-database': "Nova's API database",
    'cell': "The host's cell",
    'other-cell': 'Another cell'}
"""The parties of a call, as the documentation calls them."""
OUTAGES: abc.Mapping[str, str] = {'refuses': 'refuses',
                                  'silent': 'accepts and is silent',
                                  'middle': 'stops in mid-answer',
                                  'locks': 'locks the table',
                                  'returns': 'comes back'}
"""The kinds of their outages, as the documentation calls them."""
CALLS: abc.Mapping[str, str] = {
    'add': 'add host', 'remove': 'remove host', 'delete': 'delete aggregate',
    'service': 'delete service'}
# Placement and keystone have no tables to lock, an SQLite file has no socket.
IMPOSSIBLE = {('keystone', 'locks'), ('placement', 'locks'),
              ('journal-sqlite', 'silent'), ('journal-sqlite', 'middle')}

INLINE_TIMEOUT, SHORT = 5.0, 2.5
"""Seconds of ``inline_timeout``, and of the selection ``pairs``."""
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
# Kinds of providers that do not answer requests of one method.
SILENT = ('silent-get', 'silent-put')
INLINE, DRAIN, SYNC = 'inline', 'drain', 'sync'

# Parts of the promise that a call is exempted from: any time, the time of nova
# itself, and providers that are no hosts of nova.
TIME, OF_NOVA, STORAGE = 'time', 'of-nova', 'storage'
_UNBOUNDED = {('journal-postgresql', 'silent'),
              ('journal-postgresql', 'middle')}
_COLD = {('journal-sqlite', 'refuses'), *_UNBOUNDED}


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table.

    :param call: the call that is measured, if only one is
    :param rows: handed-over rows of the bad part, each of another host
    :param bad: how many cells or providers are bad
    """

    party: str
    kind: str
    moment: str
    call: str = ''
    rows: int = 0
    bad: int = 1
    cells: int = 2
    inline_timeout: float = INLINE_TIMEOUT

    @property
    def journal(self) -> str:
        """Return the kind of database that has the journal."""
        return (self.party.removeprefix('journal-')
                if self.party.startswith('journal-') else 'mysql')

    @property
    def cold(self) -> bool:
        """Check whether the nova-api has not used the party before.

        A token is fetched once, a connection to an SQLite file stays open, and
        libpq limits only the time to connect.
        """
        return self.party == 'keystone' or (self.party, self.kind) in _COLD

    @property
    def exempt(self) -> str:
        """Return what of the promise is not kept; README.rst says why."""
        if (self.party, self.kind) in _UNBOUNDED and self.moment != 'begin':
            return TIME
        if (self.party, self.moment, self.call) == (
                'keystone', 'returned', 'service'):
            return OF_NOVA
        if (self.party, self.moment, self.call) == (
                'api-database', 'begin', 'delete'):
            return STORAGE
        return ''

    @property
    def silent(self) -> int:
        """Return how many providers do not answer requests of a method."""
        return self.bad * (self.kind in SILENT)

    @property
    def is_random(self) -> bool:
        """Check whether it occurs at random on the full cloud."""
        return self.moment in (RANDOM, OBSERVED)

    @property
    def locks(self) -> bool:
        """Check whether a part of the journal is locked."""
        return self.kind.endswith('-locked')

    @property
    def healthy(self) -> int:
        """Return the number of healthy hosts."""
        return BATCH if self.party == 'provider' and self.silent else 10

    @property
    def differs(self) -> bool:
        """Check whether placement misses what the bad part's rows are about.

        Otherwise full syncs would repair it, which takes their time.
        """
        return (self.party in ('other-cell', 'provider', 'host')
                and self.kind != 'slow')

    @property
    def proxied(self) -> bool:
        """Check whether nova reaches placement through a proxy."""
        return (self.party in ('provider', 'backend', 'moved')
                or bool(self.silent))

    @property
    def is_called(self) -> bool:
        """Check whether calls meet the bad part, and leave it to the drain."""
        return self.proxied and self.party != 'provider'

    @property
    def is_heavy(self) -> bool:
        """Check whether it occupies placement, which all lanes share."""
        return self.kind == 'many-nodes' or (
            self.party == 'provider' and self.rows >= 1000)

    @property
    def included(self) -> frozenset[str]:
        """Return the measurements with the bad part's own, healthy host."""
        if self.kind == 'slow':
            return frozenset({SYNC})
        return frozenset({INLINE, DRAIN, SYNC} if self.party in (
            'node', 'aggregate') else ())

    def __str__(self) -> str:
        words = [self.party, self.kind, self.moment, self.call]
        if self.moment == STANDING:
            if self.party == 'other-cell':
                words.append('%d-of-%d-cells' % (self.bad, self.cells))
            if self.silent:
                words.append('%d-silent' % self.silent)
            elif self.rows:
                words.append('%d-rows' % self.rows)
        return ' '.join(filter(None, words))


def healthy() -> list[Row]:
    """List the calls without a fault."""
    return [Row(NONE, NONE, NONE, call) for call in CALLS]


def outages() -> list[Row]:
    """List the outages of each party, from each moment of each call on."""
    keys = itertools.product(PARTIES, OUTAGES, MOMENTS, CALLS)
    return [Row(*key) for key in keys if key[:2] not in IMPOSSIBLE]


def parts() -> list[Row]:
    """List the bad parts, in their extents."""
    # Rows, and how much is bad of how many cells.
    whole, single, many = (0, 1, 3), (1, 1, 3), (1000, 1, 3)
    groups: list[tuple[str, abc.Sequence[str], abc.Sequence[tuple]]] = [
        (NONE, [NONE], [whole]),
        ('other-cell', ['refuses', 'off', 'silent', 'slow'],
         [single, (10, 10, 20), many]),
        ('journal-mysql', ['row-locked'], [single, many]),
        ('journal-postgresql', ['row-locked'], [single, many]),
        ('journal-mysql', ['range-locked', 'table-locked'], [single]),
        ('journal-mysql', ['lease-locked'], [whole]),
        ('journal-postgresql', ['lease-locked'], [whole]),
        ('provider', ['500', '409', 'garbage'], [single, many]),
        ('provider', SILENT, [single, (10, 10, 3)]),
        # Of a host that has more of them.
        ('node', SILENT, [whole, (0, 10, 3)]),
        ('backend', ['503', '500', '401', '403', 'overloaded', 'silent'],
         [whole]),
        ('moved', ['503', '404', '406', '429'], [whole]),
        ('cells', ['template'], [whole]),
        ('aggregate', ['text', 'null', 'empty'], [whole]),
        ('host', ['many-nodes'], [single]),
        ('node', ['duplicate', 'upper-case'], [whole])]
    rows = []
    for party, kinds, extents in groups:
        for kind, extent in itertools.product(kinds, extents):
            rows.append(Row(party, kind, STANDING, '', *extent))
    return rows


def chaos(moment: str = RANDOM) -> list[Row]:
    """List the faults that processes of a full cloud have at random."""
    agents = ['agent-1', 'agent-2']
    apis = ['nova-api-1', 'nova-api-2', 'placement', 'keystone']
    relayed = itertools.product(('placement', 'database', 'journal'), (1, 2))
    relays = ['%s-of-%d' % each for each in relayed]
    targets = {
        'worker-killed': apis, 'killed': [*apis, *agents],
        'paused': ['placement', *agents], 'refuses': relays, 'silent': relays,
        'database-killed': ['mariadb'], 'queue-killed': ['rabbitmq']}
    rows = []
    for kind, parties in targets.items():
        rows += [Row(party, kind, moment) for party in parties]
    return rows


def pairs() -> list[Row]:
    """Select outages with every pair of values; ``parts`` has other cells."""
    rows = [dataclasses.replace(row, inline_timeout=SHORT)
            for row in outages() if row.party != 'other-cell']
    left = set().union(*map(_pairs, rows))
    chosen = set()
    while left:
        counts = [len(left & _pairs(row)) for row in rows]
        best = rows[counts.index(max(counts))]
        chosen.add(best)
        left -= _pairs(best)
    return [row for row in rows if row in chosen]


def _pairs(row: Row) -> set[tuple[tuple[int, str], ...]]:
    values = (row.party, row.kind, row.moment, row.call)
    return {*itertools.combinations(enumerate(values), 2)}


def endure() -> list[Row]:
    """List the parties that are silent for long, while many calls are made."""
    return [Row(party, 'silent', LONG, cells=3) for party in (
        'keystone', 'placement', 'journal-mysql', 'other-cell')]


SELECTIONS: abc.Mapping[str, abc.Callable[[], list[Row]]] = {
    'outages': outages, 'pairs': pairs, 'parts': parts, 'chaos': chaos,
    'observe': lambda: chaos(OBSERVED), 'endure': endure}


def select(patterns: abc.Sequence[str]) -> list[Row]:
    """Return selections, and rows by patterns, each once in order."""
    rows: dict[Row, None] = {}
    for pattern in patterns:
        if pattern in SELECTIONS:
            rows |= dict.fromkeys(SELECTIONS[pattern]())
        else:
            rows |= dict.fromkeys(row for row in every() if fnmatch.fnmatch(
                str(row), pattern))
    return [*rows]


def every() -> list[Row]:
    """List the whole table."""
    return [*outages(), *parts(), *chaos(), *chaos(OBSERVED), *endure()]
