# SPDX-License-Identifier: Apache-2.0
"""The rules by which chaos judges answers, deaths and differences."""

import testtools

from tests.cloud.chaos import answers
from tests.cloud.chaos import faults
from tests.cloud.chaos import report
from tests.cloud import observer
from tests.cloud import seed


def answer(status, began=10, ended=11, allowed=frozenset({200})):
    """Return an answer of the first controller."""
    return answers.Answer('add', 1, began, ended, status, '', allowed)


def window(target, began=10, ended=11):
    """Return a fault of a process."""
    return faults.Window('kill', target, began, ended)


def row(nova, placement, foreign=('other',)):
    """Return a provider with the given aggregates."""
    return observer.Row(seed.Node('one', 'one', 'uuid'), frozenset(nova),
                        frozenset(placement), frozenset(foreign))


class TestAnswers(testtools.TestCase):

    def result(self, *given, windows=()):
        return report.Result('seed', given=list(given), windows=list(windows))

    def test_race_of_nova_is_excused(self):
        """It is excused only on shared aggregates, with its exact text."""
        text = "Unexpected API Error. <class 'ValueError'>"
        shared = frozenset(answers.STOCK['remove'])
        for operation, allowed, said, wrong in (
                ('remove', shared, text, 0), ('add', shared, text, 1),
                ('remove', frozenset({200}), text, 1),
                ('remove', shared, "<class 'KeyError'>", 1)):
            found = self.result(answers.Answer(
                operation, 1, 10, 11, 500, said, allowed))
            self.assertEqual(wrong, len(found.wrong()), (operation, said))

    def test_error_during_outage_of_placement_is_wrong(self):
        """Faults of placement, the journal or the agents excuse no error."""
        for target in ('placement', 'placement-of-1', 'journal-of-1',
                       'agent-1', 'nova-api-1', 'database-of-2'):
            found = self.result(answer(500), windows=[window(target)])
            self.assertEqual(1, len(found.wrong()), target)
            self.assertFalse(found.good)

    def test_error_during_outage_of_what_nova_needs_is_excused(self):
        """Stock nova also fails when its own dependencies are unavailable."""
        for target in ('keystone', 'mariadb', 'rabbitmq', 'database-of-1'):
            found = self.result(answer(503), windows=[window(target)])
            self.assertEqual([], found.wrong(), target)
            self.assertTrue(found.good)

    def test_no_answer_is_excused_only_for_a_killed_nova_api(self):
        """The other nova-api has to answer."""
        for target, wrong in (('nova-api-1', 0), ('nova-api-2', 1),
                              ('mariadb', 1), ('placement', 1)):
            found = self.result(answer(answers.NONE),
                                windows=[window(target)])
            self.assertEqual(wrong, len(found.wrong()), target)

    def test_a_fault_excuses_only_while_it_lasts(self):
        """A fault before or after the request is no excuse."""
        for began, ended, wrong in ((8, 9.9, 1), (11.1, 12, 1), (8, 10.1, 0),
                                    (10.9, None, 0), (5, None, 0)):
            found = self.result(answer(500), windows=[
                window('mariadb', began, ended)])
            self.assertEqual(wrong, len(found.wrong()), (began, ended))

    def test_unexpected_refusal_is_wrong(self):
        """A refusal is never excused: nova either knows the state or fails."""
        found = self.result(answer(404), windows=[window('mariadb')])
        self.assertEqual(1, len(found.wrong()))
        self.assertIn('WRONG: add by controller 1, 1.0 s: 404 instead of '
                      '[200], during: kill mariadb', report.render(found))
        expected = self.result(answer(404, allowed=frozenset({404})))
        self.assertTrue(expected.good)

    def test_no_operation_is_a_failure(self):
        """A soak without operations is not a success."""
        self.assertFalse(self.result().good)


class TestRest(testtools.TestCase):

    def rest(self, rows, open_rows=()):
        result = report.Result('seed', given=[answer(200)])
        result.add_rest(rows, open_rows)
        return result

    def test_differences_are_counted_both_ways(self):
        """Missing and surplus associations both count."""
        result = self.rest([row('ab', 'bc'), row('', '')])
        self.assertEqual(2, result.different)
        self.assertFalse(result.good)
        self.assertIn('DIFFERENT', report.render(result))

    def test_loss_of_a_foreign_association_is_a_failure(self):
        """It is counted per provider, also if it was lost in another round."""
        result = self.rest([row('a', 'a'), row('a', 'a', ())])
        result.add_rest([row('a', 'a'), row('a', 'a', ())], [])
        self.assertFalse(result.good)
        self.assertRegex(report.render(result), 'foreign lost +1\n')

    def test_open_row_is_a_failure(self):
        """A row that is never closed is a failure."""
        result = self.rest([row('a', 'a')], ['row 7'])
        self.assertFalse(result.good)
        self.assertIn('OPEN: row 7', report.render(result))

    def test_equal_is_a_success(self):
        """Equal aggregates are a success, with 0 differences in the table."""
        result = self.rest([row('a', 'a')])
        self.assertTrue(result.good)
        self.assertRegex(report.render(result), 'differences +0')

    def test_available_journal_loses_nothing(self):
        """Only an outage of the journal in the round excuses a loss."""
        for target, began, lost in (('placement', 20, 3), ('mariadb', 9, 3),
                                    ('mariadb', 20, 0),
                                    ('journal-of-2', 20, 0)):
            result = report.Result('seed', given=[answer(200)], windows=[
                window(target, began, began + 0.5)])
            result.add_left(3, since=10)
            self.assertEqual((3, lost), (result.left, result.lost), target)
            self.assertEqual(not lost, result.good, target)
            self.assertRegex(report.render(result),
                             'lost by the journal +%s' % lost)


class TestDeaths(testtools.TestCase):

    def test_unexplained_death_is_a_crash(self):
        """Only mirror processes count, unless nova's own needs were down."""
        for target, other, ended, crashes in (
                ('nova-api-1', 'placement', 99, 1),
                ('nova-api-2', 'journal-of-2', 99, 1),
                ('nova-api-1', 'database-of-1', 99, 0),
                ('nova-api-1', 'mariadb', 50, 0),
                ('nova-api-1', 'mariadb', 39, 1),
                ('agent-1', 'mariadb', 99, 1), ('keystone', 'agent-2', 99, 0)):
            result = report.Result('seed', given=[answer(200)], windows=[
                window(other, 10, ended),
                faults.Window(faults.DIED, target, 100, 101, found=100)])
            self.assertEqual(crashes, len(result.crashed()), (target, other))
            self.assertEqual(not crashes, result.good)
            self.assertEqual(bool(crashes), 'DIED: %s' % target
                             in report.render(result))

    def test_fault_before_the_death_was_found_is_a_reason(self):
        """A fault up to the moment when the death was found is a reason."""
        for began, crashes in ((104, 0), (106, 1)):
            result = report.Result('seed', given=[answer(200)], windows=[
                window('mariadb', began, began + 1),
                faults.Window(faults.DIED, 'nova-api-1', 100, 110,
                              found=105)])
            self.assertEqual(crashes, len(result.crashed()), began)
