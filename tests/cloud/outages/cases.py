# SPDX-License-Identifier: Apache-2.0
"""The cases of outages, and a selection with every pair: pure."""

from collections import abc
import dataclasses
import itertools

NONE = 'none'
PARTIES: abc.Mapping[str, str] = {
    'keystone': 'keystone',
    'placement': 'placement',
    'journal-sqlite': 'the journal on SQLite',
    'journal-mysql': 'the journal on MariaDB',
    'journal-postgresql': 'the journal on PostgreSQL',
    'api-database': "nova's API database",
    'cell': "the host's cell",
    'other-cell': 'another cell'}
FAULTS: abc.Mapping[str, str] = {
    'refuses': 'refuses',
    'silent': 'accepts and is silent',
    'middle': 'stops in mid-answer',
    'locks': 'locks the table',
    'returns': 'comes back'}
# The moment at which the fault begins: what the hooks of the tests call it.
MOMENTS: abc.Mapping[str, str] = {
    'begin': "before the hook", 'ready': "before nova's method",
    'returned': "after nova's method"}
CALLS: abc.Mapping[str, str] = {
    'add': 'add host', 'remove': 'remove host', 'delete': 'delete aggregate',
    'service': 'delete service'}

# Placement and keystone have no tables to lock, an SQLite file has no socket.
IMPOSSIBLE = {
    ('keystone', 'locks'), ('placement', 'locks'),
    ('journal-sqlite', 'silent'), ('journal-sqlite', 'middle')}
DEFAULT_JOURNAL = 'mysql'

# Parts of the promise that a case is exempted from: any time, the time of nova
# itself, and providers that are no hosts of nova.
TIME, OF_NOVA, STORAGE = 'time', 'of-nova', 'storage'
_UNBOUNDED = {('journal-postgresql', 'silent'),
              ('journal-postgresql', 'middle')}
_COLD = {('journal-sqlite', 'refuses'), *_UNBOUNDED}


@dataclasses.dataclass(frozen=True)
class Case:
    """A cell of the table: keys of the mappings above, or ``NONE``."""

    party: str
    fault: str
    moment: str
    call: str

    @property
    def journal(self) -> str:
        """Return the kind of database that has the journal."""
        kind = self.party.removeprefix('journal-')
        return DEFAULT_JOURNAL if kind == self.party else kind

    @property
    def cold(self) -> bool:
        """Check whether the nova-api has not used the party before.

        A token is fetched once, a connection to an SQLite file stays open, and
        libpq limits only the time to connect.
        """
        return self.party == 'keystone' or (self.party, self.fault) in _COLD

    @property
    def exempt(self) -> str:
        """Return the part of the promise that is not kept, or ''.

        tests/cloud/README.rst gives the reasons.
        """
        if (self.party, self.fault) in _UNBOUNDED and self.moment != 'begin':
            return TIME
        if (self.party, self.moment, self.call) == (
                'keystone', 'returned', 'service'):
            return OF_NOVA
        if (self.party, self.moment, self.call) == (
                'api-database', 'begin', 'delete'):
            return STORAGE
        return ''

    def __str__(self) -> str:
        return ' '.join(dataclasses.astuple(self))


def table(parties: abc.Sequence[str] = (), faults: abc.Sequence[str] = (),
          moments: abc.Sequence[str] = (), calls: abc.Sequence[str] = ()
          ) -> list[Case]:
    """List the cells of the table that can exist, in its order.

    :param parties: only these keys; empty means all, as for the others
    """
    return [Case(*each) for each in itertools.product(
        parties or PARTIES, faults or FAULTS, moments or MOMENTS,
        calls or CALLS) if each[:2] not in IMPOSSIBLE]


def healthy() -> list[Case]:
    """List the calls without a fault."""
    return [Case(NONE, NONE, NONE, call) for call in CALLS]


def pairs(cases: abc.Sequence[Case]) -> list[Case]:
    """Select cases so that every pair of their values occurs; same each time.

    :param cases: in order of preference
    """
    left = {pair for case in cases for pair in _pairs(case)}
    chosen = []
    while left:
        best = max(cases, key=lambda case: sum(
            pair in left for pair in _pairs(case)))
        chosen.append(best)
        left.difference_update(_pairs(best))
    return [case for case in cases if case in chosen]


def _pairs(case: Case) -> abc.Iterator[tuple[tuple[int, str], ...]]:
    return itertools.combinations(enumerate(dataclasses.astuple(case)), 2)
