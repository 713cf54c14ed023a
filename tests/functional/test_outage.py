# SPDX-License-Identifier: Apache-2.0
"""What a user sees, and what is left behind, when placement is unwell."""

from collections.abc import Callable
from concurrent import futures
import time

import fixtures as base_fixtures
import testtools

from tests import fixtures
from tests import placement_service

Fault = Callable[[placement_service.PlacementService], None]


def _status(code: int, *methods: str) -> Fault:
    return lambda placement: placement.fail_with(
        code, methods or placement_service.EVERY_METHOD)


REFUSED: dict[str, Fault] = {
    'refused': lambda placement: placement.refuse(),
    'every connection dropped':
        lambda placement: placement.drop_connection(('GET', 'PUT')),
    'a page of a proxy': lambda placement: placement.answer_with_a_page(),
}
STATUS: dict[str, Fault] = {
    str(code): _status(code)
    for code in (401, 403, 404, 429, 500, 502, 503, 504)}
PUT_STATUS: dict[str, Fault] = {
    'PUT %d' % code: _status(code, 'PUT')
    for code in (401, 403, 404, 429, 500, 502, 503, 504)}
PUT_LOST: dict[str, Fault] = {
    'PUT lost': lambda placement: placement.drop_connection()}
ANSWER_LOST: dict[str, Fault] = {
    'answer lost': lambda placement: placement.drop_connection(lands=True)}
CONFLICT: dict[str, Fault] = {
    'conflict for ever': lambda placement: placement.conflict()}
NEVER_MIRRORED = {**REFUSED, **STATUS, **PUT_STATUS, **PUT_LOST, **CONFLICT}


class OutageTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        self.count = 0

    def _add(self, fault: Fault) -> fixtures.Outcome:
        """Add a new host to a new aggregate during a fault; see what is."""
        return self._during(fault, *self._new())

    def _remove(self, fault: Fault) -> fixtures.Outcome:
        """Remove a host from its aggregate during a fault; see what is."""
        aggregate, host = self._new()
        self.cloud.add_host(aggregate, host)
        return self._during(fault, aggregate, host, remove=True)

    def _new(self) -> tuple[fixtures.Aggregate, fixtures.Host]:
        self.count += 1
        # One zone, so that the outcomes of all faults are the same.
        aggregate = self.cloud.create_aggregate(
            'aggregate%d' % self.count, 'east')
        return aggregate, self.cloud.create_host('host%d' % self.count)

    def _wait_for(self, seconds: float) -> None:
        """Have calls wait for placement so long."""
        self.cloud.nova.conf.config(inline_timeout=seconds,
                                    group='aggregate_mirror')

    def _during(self, fault: Fault, aggregate: fixtures.Aggregate,
                host: fixtures.Host, remove: bool = False) -> fixtures.Outcome:
        fault(self.placement)
        try:
            return (self.cloud.remove_host if remove
                    else self.cloud.add_host)(aggregate, host)
        finally:
            self.placement.recover()


class StockOutageTest(OutageTest):
    """The faults of nova alone, so that the tests of the cure see them."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.StockNova())
        # The connection is there before the fault, as it mostly is.
        self.cloud.add_host(*self._new())

    def test_add_host_answers_500_and_has_added_it(self) -> None:
        """Without placement nova fails after the fact, and half-done."""
        for name, fault in REFUSED.items():
            self.assertEqual(
                fixtures.Outcome(status=500, member=True, mirrored=False,
                                 ended=False, zone='nova'),
                self._add(fault), name)

    def test_add_host_again_answers_409(self) -> None:
        """The user's second try does not repair what the first one broke."""
        aggregate, host = self._new()
        self._during(REFUSED['refused'], aggregate, host)
        again = self.cloud.add_host(aggregate, host)
        self.assertEqual((409, False), (again.status, again.mirrored))

    def test_after_a_restart_of_nova_all_answers_become_500(self) -> None:
        """Nova makes its client within the call, and after the commit."""
        for name, fault in STATUS.items():
            self.cloud.nova.restart()
            self.assertEqual(
                fixtures.Outcome(status=500, member=True, mirrored=False,
                                 ended=False, zone='nova'),
                self._add(fault), name)

    def test_add_host_answers_200_and_is_never_mirrored(self) -> None:
        """Whatever placement answers or loses, nova says that all is well."""
        faults = {**STATUS, **PUT_STATUS, **PUT_LOST, **CONFLICT}
        for name, fault in faults.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=True, mirrored=False,
                                 ended=True, zone='east'),
                self._add(fault), name)
        self.assertEqual(len(faults), len(self.cloud.drift()))

    def test_remove_host_answers_200_and_leaves_it_in_placement(self) -> None:
        """A host stays in the zone for ever when placement cannot be read."""
        faults = {**STATUS, **PUT_LOST}
        for name, fault in faults.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=False, mirrored=False,
                                 ended=True, zone='nova'),
                self._remove(fault), name)
        self.assertEqual(len(faults), len(self.cloud.drift()))

    def test_remove_host_is_refused(self) -> None:
        """Nova does not remove a host when placement cannot be written."""
        unchanged = {'member': True, 'mirrored': True, 'ended': False,
                     'zone': 'east'}
        for name, fault in {**REFUSED, **PUT_STATUS}.items():
            self.assertEqual(fixtures.Outcome(status=500, **unchanged),
                             self._remove(fault), name)
        self.assertEqual(fixtures.Outcome(status=409, **unchanged),
                         self._remove(CONFLICT['conflict for ever']))

    def test_a_call_waits_for_as_long_as_placement_hangs(self) -> None:
        """Without a timeout in [placement] a hung placement hangs users."""
        for remove in (False, True):
            aggregate, host = self._new()
            if remove:
                self.cloud.add_host(aggregate, host)
            self.placement.hang()
            with futures.ThreadPoolExecutor() as executor:
                call = executor.submit(
                    self.cloud.remove_host if remove else self.cloud.add_host,
                    aggregate, host)
                try:
                    self.assertTrue(self.placement.stuck.wait(30))
                    self.assertRaises(futures.TimeoutError, call.result, 1)
                finally:
                    self.placement.recover()
                self.assertEqual(500, call.result(30).status)


class MirroredOutageTest(OutageTest):
    """The same situations with this package."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MirroredNova())
        # Each call is to meet the fault by itself.
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')

    def _sync(self) -> None:
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_add_host_answers_200_and_one_sync_mirrors_it(self) -> None:
        """No fault of placement's fails, or half-does, an add-host."""
        for name, fault in NEVER_MIRRORED.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=True, mirrored=False,
                                 ended=True, zone='east', warnings=1),
                self._add(fault), name)
        self._sync()

    def test_remove_host_answers_200_and_one_sync_mirrors_it(self) -> None:
        """No fault of placement's fails, or half-does, a remove-host."""
        for name, fault in NEVER_MIRRORED.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=False, mirrored=False,
                                 ended=True, zone='nova', warnings=1),
                self._remove(fault), name)
        self._sync()

    def test_an_answer_that_is_lost_is_no_success(self) -> None:
        """An outcome that nobody knows is reported, and looked at again."""
        fault = ANSWER_LOST['answer lost']
        self.assertEqual(
            fixtures.Outcome(status=200, member=True, mirrored=True,
                             ended=True, zone='east', warnings=1),
            self._add(fault))
        self.assertEqual(
            fixtures.Outcome(status=200, member=False, mirrored=True,
                             ended=True, zone='nova', warnings=1),
            self._remove(fault))
        self._sync()

    def test_a_few_conflicts_are_no_fault(self) -> None:
        """Others write the same provider at the same time, and may."""
        for act, zone in (self._add, 'east'), (self._remove, 'nova'):
            self.assertEqual(
                fixtures.Outcome(status=200, member=act == self._add,
                                 mirrored=True, ended=True, zone=zone),
                act(lambda placement: placement.conflict(times=2)))

    def test_a_write_that_lands_late_changes_nothing(self) -> None:
        """What a timed-out call sent cannot undo what came after it."""
        self._wait_for(0.5)
        aggregate, host = self._new()
        land = self.placement.hold_back()
        self.assertFalse(self.cloud.add_host(aggregate, host).mirrored)
        self.placement.recover()
        self._wait_for(30)
        self.assertEqual(
            fixtures.Outcome(status=200, member=False, mirrored=True,
                             ended=True, zone='nova'),
            self.cloud.remove_host(aggregate, host))
        land()
        self.assertEqual([], self.cloud.drift())

    def test_without_a_journal_calls_are_mirrored_all_the_same(self) -> None:
        """The journal is for outages; an operator hears that it is away."""
        self.cloud.nova.conf.config(
            connection='sqlite:////dev/null/journal.sqlite',
            group='aggregate_mirror_database')
        for act, zone in (self._add, 'east'), (self._remove, 'nova'):
            observed = act(lambda placement: None)
            self.assertEqual(
                fixtures.Outcome(status=200, member=act == self._add,
                                 mirrored=True, ended=True, zone=zone,
                                 warnings=1), observed)
            self.assertIn('the journal could not be used',
                          self.cloud.warnings()[0])

    def test_the_warning_says_what_an_operator_needs(self) -> None:
        """Aggregate, host and request are in it, and the reason is."""
        aggregate, host = self._new()
        self.cloud.add_host(*self._new())
        self._during(REFUSED['refused'], aggregate, host)
        [warning] = self.cloud.warnings()
        # Eventlet has the name of the error and not what it means.
        for part in ('Aggregate %d' % aggregate.id, 'host ' + host.name,
                     'req-', 'refused'):
            self.assertIn(part.lower(), warning.lower())

    def test_a_call_is_bounded_when_placement_hangs_or_trickles(self) -> None:
        """A user waits ``inline_timeout`` at most, and only now and then."""
        self._wait_for(0.5)
        for fault in (lambda placement: placement.hang(),
                      lambda placement: placement.hang(('PUT',)),
                      lambda placement: placement.trickle()):
            for act in self._add, self._remove:
                start = time.monotonic()
                self.assertEqual((200, True, 1), self._seen(act(fault)))
                # The faults themselves last much longer.
                self.assertLess(time.monotonic() - start,
                                placement_service.FOR_EVER / 3)
        self._sync()

    @staticmethod
    def _seen(outcome: fixtures.Outcome) -> tuple[int, bool, int]:
        return outcome.status, outcome.ended, outcome.warnings


class PauseTest(OutageTest):
    """What calls do in the while after one that placement did not answer."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MirroredNova())
        self.cloud.nova.conf.config(inline_backoff=3600.0,
                                    group='aggregate_mirror')

    def _lengthen(self) -> None:
        """Let also the short pause last as long as a slow test does."""
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.pauses.REFUSED_PAUSE', 3600.0))

    def _see_no_request(self, fault: Fault) -> None:
        self.placement.requests.clear()
        for act in self._add, self._remove:
            seen = act(fault)
            self.assertEqual((200, True, 1),
                             (seen.status, seen.ended, seen.warnings))
        self.assertEqual([], self.placement.requests)
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_after_a_timeout_placement_is_left_alone(self) -> None:
        """A hung placement does not occupy every worker of nova-api."""
        self._wait_for(0.5)
        self._add(lambda placement: placement.hang())
        self._see_no_request(lambda placement: placement.hang())

    def test_after_a_refusal_placement_is_left_alone(self) -> None:
        """As long as the agent needs to see that it is back."""
        self._lengthen()
        self._add(_status(401))
        self._see_no_request(_status(401))

    def test_a_refusal_is_soon_over(self) -> None:
        """It costs nobody time to try again, as a timeout does."""
        aggregate, host = self._new()
        self._during(REFUSED['refused'], aggregate, host)
        end = time.monotonic() + 60
        while not self.cloud.add_host(*self._new()).mirrored:
            self.assertLess(time.monotonic(), end, 'it lasts as long as after '
                                                   'a timeout')

    def _lose_the_journal(self) -> None:
        self.cloud.nova.conf.config(
            connection='sqlite:////dev/null/journal.sqlite',
            group='aggregate_mirror_database')

    def test_after_a_refusal_what_is_not_in_the_journal_is_tried(self) -> None:
        """Nobody else would mirror it soon."""
        self._lengthen()
        self._lose_the_journal()
        self.assertFalse(self._add(_status(401)).mirrored)
        self.assertTrue(self.cloud.add_host(*self._new()).mirrored)

    def test_after_a_timeout_nothing_is_tried(self) -> None:
        """Even without the journal: nova-api goes before the mirror."""
        self._wait_for(0.5)
        self._lose_the_journal()
        self._add(lambda placement: placement.hang())
        self.placement.requests.clear()
        self._add(lambda placement: placement.hang())
        self.assertEqual([], self.placement.requests)
