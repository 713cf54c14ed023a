# SPDX-License-Identifier: Apache-2.0
"""The results of a soak, as a table and as an exit status."""

import collections
from collections import abc
import dataclasses
import math

from tests.cloud.chaos import answers
from tests.cloud.chaos import faults
from tests.cloud import cloud
from tests.cloud import observer
from tests.cloud import output
from tests import patience

# Without its database the journal cannot record what has changed.
_JOURNAL = ('mariadb', 'journal-of-1', 'journal-of-2')
# nova-api does not start without these, and gives up only some seconds later.
_AT_START = ('mariadb', 'rabbitmq', 'database-of-1', 'database-of-2')
GIVES_UP_WITHIN = patience.seconds(60)
SHOWN = 20
LENGTH = 300


@dataclasses.dataclass
class Result:
    """Everything that was done and observed.

    :param kinds: of faults that can occur
    :param left: associations that the journal alone did not repair
    :param lost: those among them that it should have repaired
    :param different: associations that nothing repaired in time
    :param open_rows: of the journal, at the end of each round
    :param foreign_lost: providers that have lost an association that is not
        nova's
    """

    seed: str
    kinds: frozenset[str] = frozenset()
    rounds: int = 0
    left: int = 0
    lost: int = 0
    different: int = 0
    open_rows: int = 0
    foreign_lost: int = 0
    given: list[answers.Answer] = dataclasses.field(default_factory=list)
    windows: list[faults.Window] = dataclasses.field(default_factory=list)
    tables: list[str] = dataclasses.field(default_factory=list)

    def add_left(self, count: int, since: float) -> None:
        """Add the associations that a round left to the full sync.

        :param since: when the round began
        """
        self.left += count
        if not any(each.target in _JOURNAL and each.overlaps(since, math.inf)
                   for each in self.windows):
            self.lost += count

    def add_rest(self, rows: abc.Sequence[observer.Row],
                 open_rows: abc.Sequence[str]) -> None:
        """Add the state of placement and the journal after the repair.

        :param open_rows: of the journal, rendered for people
        """
        if open_rows:
            self.open_rows += len(open_rows)
            self.tables.append('\n'.join(
                'OPEN: %s' % row[:LENGTH] for row in open_rows[:SHOWN]))
        # They are not added again, so that an earlier loss is counted, too.
        self.foreign_lost = sum(not row.foreign for row in rows)
        if differences(rows):
            self.different += differences(rows)
            self.tables.append(observer.table(rows))

    def missing(self) -> list[str]:
        """Return the kinds of faults that have not occurred yet."""
        return sorted(self.kinds - {each.kind for each in self.windows})

    def wrong(self) -> list[answers.Answer]:
        """Return answers that nova with a healthy placement never gives."""
        return [each for each in self.given if not each.expected
                and not answers.excused(each, self.windows)]

    def crashed(self) -> list[faults.Window]:
        """Return deaths of mirror processes without an excuse.

        Unavailable dependencies of nova excuse nova-api. An agent needs
        nothing to run, and is never excused.
        """
        return [died for died in self.windows
                if died.kind == faults.DIED and (
                    died.target in cloud.AGENTS
                    or died.target in faults.NOVA_APIS
                    and not any(each.target in _AT_START and each.overlaps(
                        died.began - GIVES_UP_WITHIN, died.found)
                        for each in self.windows))]

    @property
    def good(self) -> bool:
        """Check whether the promise was kept."""
        return bool(self.given) and not (
            self.different or self.lost or self.open_rows or self.foreign_lost
            or self.wrong() or self.crashed())


def differences(rows: abc.Iterable[observer.Row]) -> int:
    """Count the associations in which placement differs from nova."""
    return sum(len(row.nova ^ row.placement) for row in rows)


def render(result: Result) -> str:
    """Render what was done, and the results."""
    wrong = result.wrong()
    patient = [each for each in result.given
               if answers.delayed_by_mirror(each, result.windows)]
    parts = [_operations(result), _faults(result)]
    parts += ['DID NOT OCCUR: %s' % kind for kind in result.missing()]
    parts += result.tables[:SHOWN]
    parts += ['WRONG: ' + _described(each, result.windows)
              for each in wrong[:SHOWN]]
    parts += ['DIED: %s' % each.target for each in result.crashed()[:SHOWN]]
    parts += ['SLOWEST that stock nova would not wait for: ' + _described(
        each, result.windows) for each in _slowest(patient)]
    parts.append('\n'.join([
        'seed                    %s' % result.seed,
        'rounds                  %s' % result.rounds,
        'operations              %s' % len(result.given),
        'faults                  %s' % len(result.windows),
        'slowest answer, s       %.1f' % _longest(result.given),
        'slowest by mirroring, s %.1f' % _longest(patient),
        'left to the full sync   %s' % result.left,
        'lost by the journal     %s' % result.lost,
        'differences             %s' % result.different,
        'open journal rows       %s' % result.open_rows,
        'foreign lost            %s' % result.foreign_lost,
        'crashed                 %s' % len(result.crashed()),
        'wrong answers           %s' % len(wrong)]))
    return '\n\n'.join(parts)


def _operations(result: Result) -> str:
    counts = collections.Counter(
        (each.operation, each.status) for each in result.given)
    statuses = sorted({status for _operation, status in counts})
    cells = [['operation', *(str(each) if each else 'none'
                             for each in statuses)]]
    cells += [[operation, *(str(counts[operation, status])
                            for status in statuses)]
              for operation in answers.STOCK]
    return output.columns(cells)


def _faults(result: Result) -> str:
    counts = collections.Counter(
        (each.kind, each.target) for each in result.windows)
    return output.columns([['fault', 'of', 'times'], *(
        [kind, target, str(count)]
        for (kind, target), count in sorted(counts.items()))])


def _slowest(given: abc.Sequence[answers.Answer]) -> list[answers.Answer]:
    """Return the answer with the longest wait, if any."""
    return sorted(given, key=lambda each: each.seconds)[-1:]


def _longest(given: abc.Sequence[answers.Answer]) -> float:
    return max((each.seconds for each in given), default=0.0)


def _described(answer: answers.Answer, windows: abc.Iterable[faults.Window]
               ) -> str:
    during = ', '.join('%s %s' % (each.kind, each.target)
                       for each in answers.met(answer, windows))
    instead = ('' if answer.expected
               else ' instead of %s' % sorted(answer.allowed))
    said = '' if answer.expected else '\n  %s' % answer.text[:LENGTH]
    return '%s by controller %s, %.1f s: %s%s, during: %s%s' % (
        answer.operation, answer.controller, answer.seconds,
        answer.status or 'none', instead, during or 'nothing', said)
