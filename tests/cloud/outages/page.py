# SPDX-License-Identifier: Apache-2.0
"""The tables of the documentation's page of outages."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import io

from tests.cloud import environment
from tests.cloud.integration import pages
from tests.cloud.outages import cases
from tests.cloud.outages import measure

FOLDER = environment.TOP / 'doc' / 'source' / 'admin' / 'outages'
HEADER = (
    'party', 'fault', 'moment', 'call', 'stock status', 'stock message',
    'stock seconds', 'stock seconds in nova\'s method', 'status', 'message',
    'seconds', 'seconds of the hook before nova\'s method',
    'seconds in nova\'s method', 'seconds of the hook after nova\'s method',
    'seconds until placement equalled nova')

Results = Mapping[cases.Case, measure.Measured]


def write(results: Results, failures: Collection[cases.Case],
          about: Sequence[tuple[str, str]]) -> None:
    """Write the tables of a complete run.

    :param failures: the cases that break the promise
    :param about: what the run consisted of: names and values
    """
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / 'about.inc').write_text(pages.figures(
        'The run', ('', ''), (60, 40), [
            *about, *_totals(results), ('Failed cells', '%d%s' % (
                len(failures), ': ' * bool(failures) + ', '.join(
                    map(str, failures))))]))
    (FOLDER / 'tables.inc').write_text('\n'.join(
        [_without_fault(results),
         *(_of_party(party, results) for party in cases.PARTIES)]))
    (FOLDER / 'figures.csv').write_text(figures(results))


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


def cell(measured: measure.Measured) -> str:
    """Describe both answers, as in ``500 0.1 / 200 1.2``."""
    return '%s / %s' % (shown(measured.stock), shown(measured.ours))


def shown(answer: measure.Answer) -> str:
    """Return the status and the seconds of an answer."""
    if not answer.status:
        return '> %.0f' % answer.seconds
    return '%d %.1f' % (answer.status, answer.seconds)


def _totals(results: Results) -> list[tuple[str, str]]:
    both = [(each.stock, each.ours) for each in results.values()]
    limited = [each for case, each in results.items()
               if case.exempt != cases.TIME]
    return [
        ('Cells', str(len(results))),
        ('Calls without a response of nova alone',
         str(sum(not stock.status for stock, _ours in both))),
        ('Calls without a response with this package',
         str(sum(not ours.status for _stock, ours in both))),
        ('Longest time of this package in a call', '%.1f s' % max(
            each.ours.hook for each in limited)),
        ('Longest time until placement equalled nova', '%.1f s' % max(
            each.healed for each in results.values()))]


def _without_fault(results: Results) -> str:
    return pages.figures(
        'Without a fault', tuple(cases.CALLS.values()),
        [25] * len(cases.CALLS),
        [[cell(results[each]) for each in cases.healthy()]])


def _of_party(party: str, results: Results) -> str:
    rows = []
    for fault, name in cases.FAULTS.items():
        reason = cases.IMPOSSIBLE.get((party, fault))
        if reason:
            rows.append((name, reason, *['n/a'] * len(cases.CALLS)))
            continue
        rows += [(name, moment, *(
            cell(results[cases.Case(party, fault, key, call)])
            for call in cases.CALLS)) for key, moment in cases.MOMENTS.items()]
    name = cases.PARTIES[party]
    return pages.figures(
        name[0].upper() + name[1:],
        ('Fault', 'Begins', *cases.CALLS.values()),
        (16, 20, *[16] * len(cases.CALLS)), rows)


def _seconds(answer: measure.Answer, *parts: float) -> list[str]:
    total = '%.1f' % answer.seconds
    return [total if answer.status else '> ' + total,
            *('%.1f' % part for part in parts)]


def _one_line(message: str) -> str:
    return ' '.join(message.split())
