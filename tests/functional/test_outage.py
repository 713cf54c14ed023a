# SPDX-License-Identifier: Apache-2.0
"""A user's responses while placement fails, and the resulting state."""

from collections import abc
import re
import shlex
import time

from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.journal.db import existing
from tests import databases
from tests import fixtures
from tests.functional import test_sync_command
from tests import patience
from tests import placement_service

Fault = abc.Callable[[placement_service.PlacementService], None]


def _status(code: int, *methods: str) -> Fault:
    return lambda placement: placement.fail_with(
        code, methods or placement_service.EVERY_METHOD)


CODES = 401, 403, 404, 429, 500, 502, 503, 504
NEVER_MIRRORED: dict[str, Fault] = {
    'refused': lambda placement: placement.refuse(),
    'every connection dropped':
        lambda placement: placement.drop_connection(('GET', 'PUT')),
    'a page of a proxy': lambda placement: placement.answer_with_a_page(),
    'garbage': lambda placement: placement.answer_with_garbage(),
    **{str(code): _status(code) for code in CODES},
    **{'PUT %d' % code: _status(code, 'PUT') for code in CODES},
    'PUT lost': lambda placement: placement.drop_connection(),
    'conflict for ever': lambda placement: placement.conflict()}


class MirroredOutageTest(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        self.count = 0
        self.useFixture(fixtures.MirroredNova())
        # Each call meets the fault, without a back-off after the last call.
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')
        self.foreign: list[str] = []

    def _act(self, fault: Fault, member: bool) -> fixtures.Outcome:
        """Add a new host to a new aggregate during a fault, or remove it.

        :param member: whether the host is a member afterwards
        """
        self.count += 1
        # One zone, so that all faults have the same outcome.
        aggregate = self.cloud.create_aggregate(
            'aggregate%d' % self.count, 'east')
        host = self.cloud.create_host('host%d' % self.count)
        act = self.cloud.add_host
        if not member:
            act(aggregate, host)
            act = self.cloud.remove_host
        fault(self.placement)
        try:
            return act(aggregate, host)
        finally:
            self.placement.recover()

    def _expected(self, member: bool, mirrored: bool) -> fixtures.Outcome:
        return fixtures.Outcome(
            status=200, member=member, mirrored=mirrored, ended=True,
            zone='east' if member else 'nova', warnings=1)

    def test_add_and_remove_answer_200_and_the_agent_mirrors_it(self) -> None:
        """No placement fault fails an add-host or a remove-host."""
        for name, fault in NEVER_MIRRORED.items():
            for member in True, False:
                self.assertEqual(self._expected(member, mirrored=False),
                                 self._act(fault, member), name)
        agent = fixtures.Agent()
        agent.drain()
        self.assertEqual([], agent.journal.rows.all())
        self.assertEqual([], self.cloud.drift())

    def _delete(self, fault: Fault) -> tuple[int, bool, int]:
        """Delete an aggregate that has a foreign provider, during a fault.

        :returns: status, whether the notification was sent, and warnings
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
            self.cloud.sync()
            self.assertEqual([], self.cloud.drift())

    def test_without_a_journal_calls_are_mirrored_all_the_same(self) -> None:
        """Calls are mirrored without the journal; a warning reports it."""
        for connection, member, text in (
                ('sqlite:////dev/null/journal.sqlite', True,
                 'the journal cannot use /dev/null'),
                ('nonsense', False, 'is not a database URL')):
            self.cloud.nova.conf.config(
                connection=connection, group='aggregate_mirror_database')
            self.assertEqual(self._expected(member, mirrored=True),
                             self._act(lambda placement: None, member))
            self.assertIn(text, self.cloud.warnings()[0])

    def test_journal_of_another_nova(self) -> None:
        """It is neither used nor fed; calls are mirrored without it."""
        journal = fixtures.Agent().journal
        journal.ledger.remember([uuidutils.generate_uuid()])
        before = journal.ledger.entries()
        databases.execute(
            'sqlite:///%s' % existing.sqlite_file(fixtures.CONF),
            'INSERT INTO cells (cell_uuid) VALUES (\'theirs\')')
        for member in True, False:
            self.assertEqual(self._expected(member, mirrored=True),
                             self._act(lambda placement: None, member))
            self.assertIn('the journal belongs to another nova, with the '
                          'cells theirs; ', self.cloud.warnings()[0])
        self.assertEqual((200, True, 1), self._delete(lambda placement: None))
        self.assertEqual(set(), self.placement.aggregates(*self.foreign))
        self.assertEqual(
            ([], before), (journal.rows.all(), journal.ledger.entries()))

    def test_a_call_is_bounded_when_placement_hangs_or_trickles(self) -> None:
        """A user waits ``inline_timeout`` at most, also for a deletion."""
        # A busy machine needs some of it for the databases.
        self.cloud.nova.conf.config(inline_timeout=patience.seconds(2),
                                    group='aggregate_mirror')
        for fault in (lambda placement: placement.hang(),
                      lambda placement: placement.hang(('PUT',)),
                      lambda placement: placement.trickle()):
            start = time.monotonic()
            self.assertEqual([200] * 3, [
                self._act(fault, member=True).status,
                self._act(fault, member=False).status,
                self._delete(fault)[0]])
            # The faults themselves last much longer.
            self.assertLess(time.monotonic() - start,
                            placement_service.FOR_EVER / 3)
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())


class WithoutPruneTest(test_sync_command.SyncTest):
    """What is removed while placement and the journal are unavailable."""

    def follow(self) -> None:
        """Follow the command that each line of the log has."""
        lines = self.cloud.warnings()
        self.assertEqual(2, len(lines))
        self.placement.recover()
        # Without it a sync only adds.
        self.assertEqual(0, self.sync().returncode)
        self.assertNotEqual([], self.cloud.drift())
        command, = {text for line in lines for text in re.findall(
            '; with prune = false, "nova-aggregate-mirror-manage (.*)" '
            'repairs what fails', line)}
        done = self.run_command(*shlex.split(command))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([], self.cloud.drift())

    def test_what_is_removed(self) -> None:
        """A command in the log removes host and aggregate from placement."""
        host = self.host('h1')
        self.host('h2')
        self.assertEqual(0, self.sync().returncode)
        self.write_conf('[aggregate_mirror]\nprune = false\n')
        self.cloud.nova.conf.config(prune=False, group='aggregate_mirror')
        self.cloud.nova.conf.config(
            connection='sqlite:////dev/null/journal.sqlite',
            group='aggregate_mirror_database')
        self.useFixture(fixtures.MirroredNova())
        self.placement.set_aggregates(
            host.nodes[0], [self.zone.uuid, self.rack.uuid])
        self.placement.refuse()
        self.assertEqual(200, self.cloud.delete_aggregate(self.rack))
        self.follow()
        self.placement.refuse()
        self.assertEqual(200, self.cloud.remove_host(self.zone, host).status)
        self.follow()
