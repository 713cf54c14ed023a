# SPDX-License-Identifier: Apache-2.0
"""One report of several benchmarks: for the documentation, for an issue."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from benchmarks import figures
from benchmarks import table

ENVIRONMENT = 'What the figures depend on'
PARTS = 'The parts of the report'
PARTS_HEADER = ('', 'took, s', 'load before', 'load after', 'targets')
NOT_MEASURED = 'could not be measured'


@dataclasses.dataclass(frozen=True)
class Measured:
    """A part of the report; without tables it could not be measured."""

    told: str
    tables: Sequence[table.Table]
    missed: Sequence[str]
    seconds: float
    load_before: str
    load_after: str

    @property
    def verdict(self) -> str:
        """Which targets it met or missed; empty when nobody set any."""
        if not self.tables:
            return NOT_MEASURED
        if self.missed:
            return 'MISSED: ' + '; '.join(self.missed)
        met = sum(cell.endswith(figures.MET) for each in self.tables
                  for row in each.rows for cell in row)
        return '%d met' % met if met else figures.NONE


@dataclasses.dataclass(frozen=True)
class Report:
    """What was measured at one time on one machine.

    :param environment: what the figures depend on, by name
    """

    environment: Mapping[str, str]
    parts: Sequence[Measured]

    @property
    def complete(self) -> bool:
        return all(part.tables for part in self.parts)

    @property
    def missed(self) -> list[str]:
        return [name for part in self.parts for name in part.missed]

    def tables(self) -> list[table.Table]:
        """All of it: the environment, an overview, and every part."""
        return [
            table.Table(ENVIRONMENT, ('', 'here'),
                        [list(each) for each in self.environment.items()]),
            table.Table(PARTS, PARTS_HEADER, [
                [part.told, '%.0f' % part.seconds, part.load_before,
                 part.load_after, part.verdict] for part in self.parts]),
            *(each for part in self.parts for each in part.tables)]
