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


class TestRules(testtools.TestCase):

    def result(self, *given, windows=()):
        return report.Result('seed', given=list(given), windows=list(windows))

    def test_answers_to_a_race_of_nova(self):
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

    def test_answers_during_a_fault(self):
        """Only what nova itself needs, at that time, excuses an error.

        No answer is excused only if this nova-api was killed, and a refusal
        never: nova either knows the state or fails.
        """
        none = answers.NONE
        for status, wrong, *fault in (
                *((500, 1, target) for target in (
                    'placement', 'placement-of-1', 'journal-of-1', 'agent-1',
                    'nova-api-1', 'database-of-2')),
                *((503, 0, target) for target in (
                    'keystone', 'mariadb', 'rabbitmq', 'database-of-1')),
                (none, 0, 'nova-api-1'), (none, 1, 'nova-api-2'),
                (none, 1, 'mariadb'), (none, 1, 'placement'),
                (500, 1, 'mariadb', 8, 9.9), (500, 1, 'mariadb', 11.1, 12),
                (500, 0, 'mariadb', 8, 10.1), (500, 0, 'mariadb', 10.9, None),
                (500, 0, 'mariadb', 5, None), (404, 1, 'mariadb')):
            result = self.result(answer(status), windows=[window(*fault)])
            self.assertEqual((wrong, not wrong),
                             (len(result.wrong()), result.good),
                             (status, fault))
        self.assertIn('WRONG: add by controller 1, 1.0 s: 404 instead of '
                      '[200], during: kill mariadb', report.render(result))
        self.assertTrue(
            self.result(answer(404, allowed=frozenset({404}))).good)
        # A soak without operations is not a success.
        self.assertFalse(self.result().good)

    def test_state_after_the_repair(self):
        """Differences both ways, open rows and foreign losses are failures."""
        for rows, open_rows, good, text in (
                ([row('a', 'a')], (), True, 'differences +0\n'),
                ([row('ab', 'bc'), row('', '')], (), False,
                 'DIFFERENT(.|\n)*differences +2\n'),
                ([row('a', 'a')], ['row 7'], False, 'OPEN: row 7'),
                ([row('a', 'a'), row('a', 'a', ())], (), False,
                 'foreign lost +1\n')):
            result = self.result(answer(200))
            result.add_rest(rows, open_rows)
            # What an earlier round has lost is not added again.
            result.add_rest([each for each in rows if each.equal], [])
            self.assertEqual(good, result.good, text)
            self.assertRegex(report.render(result), text)

    def test_available_journal_loses_nothing(self):
        """Only an outage of the journal in the round excuses a loss."""
        for target, began, lost in (('placement', 20, 3), ('mariadb', 9, 3),
                                    ('mariadb', 20, 0),
                                    ('journal-of-2', 20, 0)):
            result = self.result(answer(200), windows=[
                window(target, began, began + 0.5)])
            result.add_left(3, since=10)
            self.assertEqual((3, lost, not lost), (
                result.left, result.lost, result.good), target)
            self.assertRegex(report.render(result),
                             'lost by the journal +%s' % lost)

    def test_unexplained_death_is_a_crash(self):
        """Only mirror processes count, unless nova's own needs were down.

        That is up to the moment when the death was found.
        """
        for target, other, began, ended, crashes in (
                ('nova-api-1', 'placement', 10, 199, 1),
                ('nova-api-2', 'journal-of-2', 10, 199, 1),
                ('nova-api-1', 'database-of-1', 10, 199, 0),
                ('nova-api-1', 'mariadb', 10, 50, 0),
                ('nova-api-1', 'mariadb', 10, 39, 1),
                ('nova-api-1', 'mariadb', 104, 105, 0),
                ('nova-api-1', 'mariadb', 106, 107, 1),
                ('agent-1', 'mariadb', 10, 199, 1),
                ('keystone', 'agent-2', 10, 199, 0)):
            result = self.result(answer(200), windows=[
                window(other, began, ended),
                faults.Window(faults.DIED, target, 100, 110, found=105)])
            self.assertEqual((crashes, not crashes), (
                len(result.crashed()), result.good), (target, other, began))
            self.assertEqual(bool(crashes), 'DIED: %s' % target
                             in report.render(result))
