# SPDX-License-Identifier: Apache-2.0
"""The figures of outages, and the table of them in the documentation."""

from collections import abc
import csv
import io
import itertools

from tests.cloud import environment
from tests.cloud.integration import pages
from tests.cloud.outages import cases
from tests.cloud.outages import measure

FOLDER = environment.TOP / 'doc' / 'source' / 'user' / 'comparison'
HEADER = (
    'party', 'fault', 'moment', 'call', 'stock status', 'stock message',
    'stock seconds', 'stock seconds in nova\'s method', 'status', 'message',
    'seconds', 'seconds of the hook before nova\'s method',
    'seconds in nova\'s method', 'seconds of the hook after nova\'s method',
    'seconds until placement equalled nova')

Results = abc.Mapping[cases.Case, measure.Measured]


def write(results: Results) -> None:
    """Write the table and the figures of a complete run."""
    (FOLDER / 'outages.inc').write_text(pages.figures(
        'Worst responses: nova alone / this package',
        ('Unavailable', 'Fault', *cases.CALLS.values()),
        (18, 18, *[16] * len(cases.CALLS)), [
            ('None', '', *(cell(results[case]) for case in cases.healthy())),
            *(_row(results, *pair) for pair in itertools.product(
                cases.PARTIES, cases.FAULTS)
              if pair not in cases.IMPOSSIBLE)]))
    (FOLDER / 'outages.csv').write_text(figures(results))


def figures(results: Results) -> str:
    """Return every figure, as comma-separated values."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator='\n')
    writer.writerow(HEADER)
    for case, each in results.items():
        stock, ours = each.stock, each.ours
        writer.writerow([
            case.party, case.fault, case.moment, case.call,
            stock.status or '', _one_line(stock.message),
            *_seconds(stock, stock.method), ours.status or '',
            _one_line(ours.message),
            *_seconds(ours, ours.before, ours.method, ours.after),
            '%.1f' % each.healed])
    return output.getvalue()


def cell(*measured: measure.Measured) -> str:
    """Describe the worst answers, as in ``500 0.1 / 200 1.2``."""
    return ' / '.join(shown(max(answers, key=_badness)) for answers in (
        [each.stock for each in measured], [each.ours for each in measured]))


def shown(answer: measure.Answer) -> str:
    """Return the status and the seconds of an answer."""
    if not answer.status:
        return '> %.0f' % answer.seconds
    return '%d %.1f' % (answer.status, answer.seconds)


def _row(results: Results, party: str, fault: str) -> tuple[str, ...]:
    name = cases.PARTIES[party]
    return (name[0].upper() + name[1:], cases.FAULTS[fault], *(
        cell(*(results[cases.Case(party, fault, moment, call)]
               for moment in cases.MOMENTS)) for call in cases.CALLS))


def _badness(answer: measure.Answer) -> tuple[bool, int, float]:
    return not answer.status, answer.status, answer.seconds


def _seconds(answer: measure.Answer, *parts: float) -> list[str]:
    total = '%.1f' % answer.seconds
    return [total if answer.status else '> ' + total,
            *('%.1f' % part for part in parts)]


def _one_line(message: str) -> str:
    return ' '.join(message.split())
