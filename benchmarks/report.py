# SPDX-License-Identifier: Apache-2.0
"""Report of several benchmarks, for the documentation or a bug report."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from benchmarks import figures
from benchmarks import table

ENVIRONMENT = 'Environment'
PARTS = 'Parts'
PARTS_HEADER = ('', 'duration, s', 'load before', 'load after', 'targets')
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
        """Targets that are met or missed; empty without targets."""
        if not self.tables:
            return NOT_MEASURED
        if self.missed:
            return 'MISSED: ' + '; '.join(self.missed)
        met = sum(cell.endswith(figures.MET) for each in self.tables
                  for row in each.rows for cell in row)
        return '%d met' % met if met else figures.NONE


@dataclasses.dataclass(frozen=True)
class Report:
    """Results of a benchmark session on a machine.

    :param environment: properties that affect the figures, by name
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
        """Return the environment, an overview, and the tables of each part."""
        return [
            table.Table(ENVIRONMENT, ('', 'value'),
                        [list(each) for each in self.environment.items()]),
            table.Table(PARTS, PARTS_HEADER, [
                [part.told, '%.0f' % part.seconds, part.load_before,
                 part.load_after, part.verdict] for part in self.parts]),
            *(each for part in self.parts for each in part.tables)]
