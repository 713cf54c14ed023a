# SPDX-License-Identifier: Apache-2.0
"""A user's responses while placement fails, and the resulting state."""

from collections.abc import Callable
from concurrent import futures
import time

import fixtures as base_fixtures
from oslo_utils import uuidutils
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
        """Add a new host to a new aggregate during a fault."""
        return self._during(fault, *self._new())

    def _remove(self, fault: Fault) -> fixtures.Outcome:
        """Remove a host from its aggregate during a fault."""
        aggregate, host = self._new()
        self.cloud.add_host(aggregate, host)
        return self._during(fault, aggregate, host, remove=True)

    def _new(self) -> tuple[fixtures.Aggregate, fixtures.Host]:
        self.count += 1
        # One zone, so that all faults have the same outcome.
        aggregate = self.cloud.create_aggregate(
            'aggregate%d' % self.count, 'east')
        return aggregate, self.cloud.create_host('host%d' % self.count)

    def _wait_for(self, seconds: float) -> None:
        """Limit how long a call waits for placement."""
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
    """The same faults without this package."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.StockNova())
        # The connection usually exists before the fault.
        self.cloud.add_host(*self._new())

    def test_add_host_answers_500_and_has_added_it(self) -> None:
        """Without placement nova fails after its commit."""
        for name, fault in REFUSED.items():
            self.assertEqual(
                fixtures.Outcome(status=500, member=True, mirrored=False,
                                 ended=False, zone='nova'),
                self._add(fault), name)

    def test_add_host_again_answers_409(self) -> None:
        """The user's second attempt does not repair the first."""
        aggregate, host = self._new()
        self._during(REFUSED['refused'], aggregate, host)
        again = self.cloud.add_host(aggregate, host)
        self.assertEqual((409, False), (again.status, again.mirrored))

    def test_after_a_restart_of_nova_all_answers_become_500(self) -> None:
        """Nova creates its client within the call, after the commit."""
        for name, fault in STATUS.items():
            self.cloud.nova.restart()
            self.assertEqual(
                fixtures.Outcome(status=500, member=True, mirrored=False,
                                 ended=False, zone='nova'),
                self._add(fault), name)

    def test_add_host_answers_200_and_is_never_mirrored(self) -> None:
        """Nova reports success, although placement failed."""
        faults = {**STATUS, **PUT_STATUS, **PUT_LOST, **CONFLICT}
        for name, fault in faults.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=True, mirrored=False,
                                 ended=True, zone='east'),
                self._add(fault), name)
        self.assertEqual(len(faults), len(self.cloud.drift()))

    def test_remove_host_answers_200_and_leaves_it_in_placement(self) -> None:
        """The host stays in the zone when placement cannot be read."""
        faults = {**STATUS, **PUT_LOST}
        for name, fault in faults.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=False, mirrored=False,
                                 ended=True, zone='nova'),
                self._remove(fault), name)
        self.assertEqual(len(faults), len(self.cloud.drift()))

    def test_remove_host_is_refused(self) -> None:
        """Nova keeps a host when placement cannot be written."""
        unchanged = {'member': True, 'mirrored': True, 'ended': False,
                     'zone': 'east'}
        for name, fault in {**REFUSED, **PUT_STATUS}.items():
            self.assertEqual(fixtures.Outcome(status=500, **unchanged),
                             self._remove(fault), name)
        self.assertEqual(fixtures.Outcome(status=409, **unchanged),
                         self._remove(CONFLICT['conflict for ever']))

    def test_a_call_waits_for_as_long_as_placement_hangs(self) -> None:
        """Without a timeout in [placement], a hung placement blocks users."""
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
    """The same faults with this package."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MirroredNova())
        # Each call meets the fault, without a back-off after the last call.
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')
        self.foreign: list[str] = []

    def _sync(self) -> None:
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_add_host_answers_200_and_one_sync_mirrors_it(self) -> None:
        """No placement fault fails an add-host."""
        for name, fault in NEVER_MIRRORED.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=True, mirrored=False,
                                 ended=True, zone='east', warnings=1),
                self._add(fault), name)
        self._sync()

    def test_remove_host_answers_200_and_one_sync_mirrors_it(self) -> None:
        """No placement fault fails a remove-host."""
        for name, fault in NEVER_MIRRORED.items():
            self.assertEqual(
                fixtures.Outcome(status=200, member=False, mirrored=False,
                                 ended=True, zone='nova', warnings=1),
                self._remove(fault), name)
        self._sync()

    def _delete(self, fault: Fault) -> tuple[int, bool, int]:
        """Delete an aggregate that has a foreign provider, during a fault.

        :returns: the same as ``_seen``
        """
        self.count += 1
        aggregate = self.cloud.create_aggregate('aggregate%d' % self.count)
        provider = uuidutils.generate_uuid()
        self.placement.create_provider(provider, provider)
        self.placement.set_aggregates(provider, [aggregate.uuid])
        self.foreign.append(provider)
        fault(self.placement)
        try:
            status = self.cloud.delete_aggregate(aggregate)
        finally:
            self.placement.recover()
        return (status, 'aggregate.delete.end' in
                self.cloud.nova.notifications(), len(self.cloud.warnings()))

    def test_delete_answers_200_and_one_sync_removes_it(self) -> None:
        """No placement fault fails a deletion, and prune is not needed."""
        for name, fault in NEVER_MIRRORED.items():
            self.assertEqual((200, True, 1), self._delete(fault), name)
        for left in 1, 0:
            self.assertEqual([left] * len(NEVER_MIRRORED), [
                len(self.placement.aggregates(provider))
                for provider in self.foreign])
            self._sync()

    def test_an_answer_that_is_lost_is_no_success(self) -> None:
        """An unknown outcome is a failure: it is reported and retried."""
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
        """A conflict with another writer only costs another attempt."""
        for act, zone in (self._add, 'east'), (self._remove, 'nova'):
            self.assertEqual(
                fixtures.Outcome(status=200, member=act == self._add,
                                 mirrored=True, ended=True, zone=zone),
                act(lambda placement: placement.conflict(times=2)))

    def test_a_write_that_lands_late_changes_nothing(self) -> None:
        """The PUT of a call that failed cannot revert a later call."""
        # The later call does not pause.
        self.cloud.nova.conf.config(inline_backoff=0,
                                    group='aggregate_mirror')
        self._wait_for(30)
        aggregate, host = self._new()
        land = self.placement.hold_back(drop=True)
        self.assertFalse(self.cloud.add_host(aggregate, host).mirrored)
        self.placement.recover()
        self.assertEqual(
            fixtures.Outcome(status=200, member=False, mirrored=True,
                             ended=True, zone='nova'),
            self.cloud.remove_host(aggregate, host))
        land()
        self.assertEqual([], self.cloud.drift())

    def test_without_a_journal_calls_are_mirrored_all_the_same(self) -> None:
        """Calls are mirrored without the journal; a warning reports it."""
        self.cloud.nova.conf.config(
            connection='sqlite:////dev/null/journal.sqlite',
            group='aggregate_mirror_database')
        for act, zone in (self._add, 'east'), (self._remove, 'nova'):
            observed = act(lambda placement: None)
            self.assertEqual(
                fixtures.Outcome(status=200, member=act == self._add,
                                 mirrored=True, ended=True, zone=zone,
                                 warnings=1), observed)
            self.assertIn('the journal cannot use /dev/null',
                          self.cloud.warnings()[0])

    def test_the_warning_says_what_an_operator_needs(self) -> None:
        """It has the aggregate, the host, the request and the reason."""
        aggregate, host = self._new()
        self.cloud.add_host(*self._new())
        self._during(REFUSED['refused'], aggregate, host)
        [warning] = self.cloud.warnings()
        # Eventlet's error has the name of the error, not its description.
        for part in ('Aggregate %d' % aggregate.id, 'host ' + host.name,
                     'req-', 'refused'):
            self.assertIn(part.lower(), warning.lower())

    def test_a_call_is_bounded_when_placement_hangs_or_trickles(self) -> None:
        """A user waits ``inline_timeout`` at most, also for a deletion."""
        # A busy machine needs some of it for the databases.
        self._wait_for(2.0)
        for fault in (lambda placement: placement.hang(),
                      lambda placement: placement.hang(('PUT',)),
                      lambda placement: placement.trickle()):
            for act in self._add, self._remove, self._delete:
                start = time.monotonic()
                self.assertEqual((200, True, 1), self._seen(act(fault)))
                # The faults themselves last much longer.
                self.assertLess(time.monotonic() - start,
                                placement_service.FOR_EVER / 3)
        self._sync()

    @staticmethod
    def _seen(outcome: fixtures.Outcome | tuple[int, bool, int]
              ) -> tuple[int, bool, int]:
        if isinstance(outcome, tuple):
            return outcome
        return outcome.status, outcome.ended, outcome.warnings


class PauseTest(OutageTest):
    """The back-off of a process after a placement failure."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MirroredNova())
        self.cloud.nova.conf.config(inline_backoff=3600.0,
                                    group='aggregate_mirror')

    def _lengthen(self) -> None:
        """Make the short back-off outlast even a slow test."""
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.breaker.REFUSED_PAUSE', 3600.0))

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
        self._wait_for(3.0)
        self._add(lambda placement: placement.hang())
        self._see_no_request(lambda placement: placement.hang())

    def test_after_too_much_work_placement_is_not_left_alone(self) -> None:
        """A host with many nodes does not keep other hosts from placement."""
        self._wait_for(10.0)
        # A busy machine takes a second for one request.
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.deadline.SILENCE', 3600.0))
        many = self.cloud.create_host('many', nodes=60)
        self.placement.slow(0.2)
        observed = self.cloud.add_host(
            self.cloud.create_aggregate('large', 'east'), many)
        self.assertEqual((200, False), (observed.status, observed.mirrored))
        self.assertIn('raise [aggregate_mirror] inline_timeout',
                      self.cloud.warnings()[0])
        self._wait_for(60.0)
        self.assertTrue(self.cloud.add_host(*self._new()).mirrored)

    def test_after_a_refusal_placement_is_left_alone(self) -> None:
        """No call reaches it for about an interval of the agent."""
        self._lengthen()
        self._add(_status(401))
        self._see_no_request(_status(401))

    def test_a_refusal_is_soon_over(self) -> None:
        """Unlike a timeout, a refusal costs a user no time."""
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
        """Otherwise only the next full sync would mirror it."""
        self._lengthen()
        self._lose_the_journal()
        self.assertFalse(self._add(_status(401)).mirrored)
        self.assertTrue(self.cloud.add_host(*self._new()).mirrored)

    def test_after_a_timeout_nothing_is_tried(self) -> None:
        """Even without the journal: a call would block every worker."""
        self._wait_for(3.0)
        self._lose_the_journal()
        self._add(lambda placement: placement.hang())
        self.placement.requests.clear()
        self._add(lambda placement: placement.hang())
        self.assertEqual([], self.placement.requests)
