# SPDX-License-Identifier: Apache-2.0
"""Aggregates whose UUID in nova's database is none, with a real placement.

Nova lists, changes and deletes such an aggregate; placement answers 400 to a
request that contains the text.
"""

import contextlib
import dataclasses
import io
import json
import types

import fixtures as base_fixtures
from nova.db.api import api as api_db
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import report
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from tests import fixtures
from tests.functional import test_source
from tests import nova_server
from tests import nova_service

CONF = nova_service.CONF
TEXTS = ('zone-one', '', '   ', 'x' * 36, '\x1b[2J\n', '12345678-1234')


class InvalidTest(test_source.SourceTest):
    """Aggregate odd has host h2, zone has h1, and other has h3 in addition."""

    text: str | None = 'zone-one'

    def setUp(self):
        super().setUp()
        self.useFixture(base_fixtures.WarningsFilter(
            [{'action': 'ignore', 'category': FutureWarning}]))
        # Nova's tests have another default.
        if 'response_validation' in CONF.api:
            self.cloud.nova.conf.config(
                response_validation='warn', group='api')
        self.useFixture(fixtures.MirroredNova())
        self.odd = self.cloud.create_aggregate('odd')
        self.hosts = {
            name: self.cloud.create_host(name) for name in ('h1', 'h2', 'h3')}
        for aggregate, name in (
                (self.zone, 'h1'), (self.odd, 'h2'), (self.other, 'h3')):
            self.cloud.add_host(aggregate, self.hosts[name])
        self.agent = fixtures.Agent()
        self.agent.sync()
        self.title = 'ggregate odd (ID %d)' % self.odd.id

    def store(self, text, aggregate=None):
        """Write a text to nova's database instead of a UUID."""
        with api_db.get_engine().begin() as connection:
            connection.execute(sa.text(
                'UPDATE aggregates SET uuid = :text WHERE id = :id'), {
                    'text': text, 'id': (aggregate or self.odd).id})

    def correct(self):
        self.store(self.odd.uuid)

    def placed(self, name):
        """Return the aggregates of a host in placement."""
        return self.cloud.placement.aggregates(self.hosts[name].nodes[0])

    def place(self, name, *aggregates):
        self.cloud.placement.set_aggregates(
            self.hosts[name].nodes[0],
            {aggregate.uuid for aggregate in aggregates})

    def judge(self, sync, **request):
        return dataclasses.replace(
            sync, request=full_sync.Request(**request))

    def ledger(self):
        """Return every row of the ledger."""
        stored = sa.select(models.ledger.c.aggregate_uuid)
        return self.agent.journal.database.run(
            lambda connection: {*connection.scalars(stored)})


class TestTexts(testscenarios.WithScenarios, InvalidTest):
    """Whatever is there instead of a UUID."""

    scenarios = [(repr(text), {'text': text}) for text in (None, *TEXTS)]

    def test_the_others_are_repaired(self):
        """A full sync names the row; its host keeps what it has."""
        self.store(self.text)
        self.place('h1')
        self.place('h3', self.other, self.zone)
        result = self.judge(self.agent.sync())
        self.assertEqual({self.zone.uuid}, self.placed('h1'))
        self.assertEqual({self.other.uuid}, self.placed('h3'))
        self.assertEqual({self.odd.uuid}, self.placed('h2'))
        self.assertEqual('partial', result.judgement)
        problem, = result.lines()
        self.assertIn(self.title, problem)
        self.assertIn('id %d in the table aggregates' % self.odd.id, problem)
        document = json.loads(json.dumps(syncs.document(result)))
        entry, = document['without_uuid']
        self.assertEqual({'id': self.odd.id, 'aggregate': 'odd',
                          'hosts': ['h2']}, entry)
        self.assertNotIn(self.text, self.ledger())

    def test_correction(self):
        """The next full sync succeeds without any command."""
        self.store(self.text)
        self.agent.sync()
        self.place('h2')
        self.correct()
        result = self.judge(self.agent.sync())
        self.assertEqual(('success', 0), (result.judgement, result.status()))
        self.assertEqual({self.odd.uuid}, self.placed('h2'))


class TestRemoval(InvalidTest):
    """What nova lacks may be the aggregate whose UUID it has lost."""

    def test_members(self):
        """Nothing unmarked is removed from them, however long it is absent.

        They get what they lack.
        """
        self.place('h2', self.odd, self.other)
        self.store(self.text)
        self.cloud.nova.add_member(self.zone.uuid, 'h2')
        self.agent.sync()
        self.agent.clock += 2 * 24 * 3600
        self.agent.sync()
        self.agent.sync()
        self.assertEqual({self.odd.uuid, self.other.uuid, self.zone.uuid},
                         self.placed('h2'))
        self.correct()
        self.agent.sync()
        self.assertEqual({self.odd.uuid, self.zone.uuid}, self.placed('h2'))

    def test_other_providers(self):
        """A segment in it has nobody who would restore the association."""
        segment = uuidutils.generate_uuid()
        self.cloud.placement.create_provider(segment, 'segment')
        self.cloud.placement.set_aggregates(segment, {self.odd.uuid})
        self.store(self.text)
        for _sync in range(3):
            self.agent.sync()
            self.agent.clock += 24 * 3600
        self.assertEqual({self.odd.uuid},
                         self.cloud.placement.aggregates(segment))

    def test_marked_aggregate(self):
        """A user deleted it: it is removed from the members, too."""
        self.cloud.remove_host(self.other, self.hosts['h3'])
        self.store(self.text)
        self.cloud.delete_aggregate(self.other)
        self.place('h2', self.odd, self.other)
        self.agent.sync()
        self.assertEqual({self.odd.uuid}, self.placed('h2'))


class TestOperations(InvalidTest):
    """Operations on the aggregate, and on its hosts."""

    def setUp(self):
        super().setUp()
        self.store(self.text)

    def assert_closed(self):
        """One warning names the row, and no row of the journal is left."""
        warning, = self.cloud.warnings()
        self.assertIn(self.title, warning)
        self.assertIn("'zone-one'", warning)
        self.assertIn('table aggregates', warning)
        self.assertEqual([], self.agent.journal.rows.all())
        self.assertNotIn(self.text, self.ledger())

    def test_its_own_members(self):
        for act, host in ((self.cloud.add_host, 'h1'),
                          (self.cloud.remove_host, 'h2')):
            self.assertEqual(200, act(self.odd, self.hosts[host]).status)
            self.assert_closed()

    def test_delete(self):
        """Nothing is marked, so that a row with this text does no harm."""
        self.cloud.remove_host(self.odd, self.hosts['h2'])
        self.assertEqual(200, self.cloud.delete_aggregate(self.odd))
        self.assert_closed()
        # The UUID that it had is stale then.
        self.assertEqual('success', self.judge(self.agent.sync()).judgement)
        self.assertEqual(set(), self.placed('h2'))

    def test_other_aggregates(self):
        """Its member is added, and removed when the row is correct again.

        The log says so; other hosts are mirrored at once.
        """
        for act, host, mirrored in (
                (self.cloud.add_host, 'h1', True),
                (self.cloud.remove_host, 'h1', True),
                (self.cloud.add_host, 'h2', True),
                (self.cloud.remove_host, 'h2', False)):
            outcome = act(self.other, self.hosts[host])
            self.assertEqual((200, mirrored, int(not mirrored)), (
                outcome.status, outcome.mirrored, outcome.warnings))
        self.assert_closed()
        self.correct()
        self.agent.sync()
        self.assertEqual({self.odd.uuid}, self.placed('h2'))


class TestLedger(InvalidTest):
    """A journal with texts that an earlier commit wrote."""

    def setUp(self):
        super().setUp()
        with engine.Database(CONF).open().begin() as connection:
            connection.execute(sa.insert(models.ledger), [
                {'aggregate_uuid': text, 'created_at': 0.0, 'deleted_at': mark}
                for text, mark in (('zone-one', 1.0), ('', None))])

    def test_the_next_sync_deletes_them(self):
        """They are in no request; a dry run leaves them."""
        self.place('h1')
        sync = full_sync.run(self.agent.reconciler,
                             request=full_sync.Request(0.5, write=False))
        self.assertEqual('success', self.judge(sync, write=False).judgement)
        self.assertIn('zone-one', self.ledger())
        self.assertEqual('success', self.judge(self.agent.sync()).judgement)
        self.assertEqual({self.zone.uuid}, self.placed('h1'))
        self.assertEqual(
            {self.zone.uuid, self.other.uuid, self.odd.uuid}, self.ledger())


class TestDisplay(InvalidTest):
    """It is named wherever nova and placement are compared."""

    def setUp(self):
        super().setUp()
        self.store(self.text)
        self.place('h1')

    def test_check(self):
        """The upgrade check fails, and shows the drift of the others."""
        deployment = types.SimpleNamespace(
            conf=CONF, journal=self.agent.journal, source=self.source,
            client=client.Client(CONF))
        texts = [finding.text for finding in placement.drift(deployment)
                 if finding.code in (checks.Code.WARNING, checks.Code.FAILURE)]
        self.assertIn('availability zone az1 lacks host h1', texts[0])
        self.assertIn(self.title, texts[-1])

    def test_report(self):
        content = collect.collect(
            CONF, self.source, collect.reconcile.Progress(), False)
        page = ''.join(report.render(content, 0.0))
        self.assertIn(self.title, page)
        self.assertIn('in an aggregate without a UUID', page)
        self.assertNotIn('in no aggregate</i>', page)

    def test_wait(self):
        """A host that is only in this aggregate is not in none."""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = wait_run.run(
                database.DatabaseSource(engines.Limits(1)),
                client.Client(CONF), frozenset({'h2'}), 0.0, '')
        self.assertEqual(exit_status.NOT_UPDATED, status)
        self.assertIn(self.title, errors.getvalue().splitlines()[-1])

    def test_sync_of_other_hosts(self):
        """It does not concern them."""
        sync = full_sync.run(self.agent.reconciler, request=full_sync.Request(
            hosts=frozenset({'h1'})))
        self.assertEqual('success', self.judge(sync).judgement)

    def test_client(self):
        """The compute API shows the text; all others are compared."""
        server = self.useFixture(nova_server.NovaServer(self.cloud.nova))
        source = nova_server.source(server.url)
        self.assertEqual(self.source.read_all(), source.read_all())
        self.assertEqual(self.source.read(['h2']), source.read(['h2']))
        self.assertEqual(self.source.aggregates(), source.aggregates())
        self.assertEqual(self.source.with_hosts(), source.with_hosts())
        sync = full_sync.run(reconciler.Reconciler(
            journal.Ledger(), source, client.Client(CONF)))
        result = self.judge(sync)
        self.assertEqual({self.zone.uuid}, self.placed('h1'))
        self.assertIn(self.title, *result.lines())
        named = command.Clients.__new__(command.Clients)
        named.nova = source
        for name in 'odd', str(self.odd.id):
            self.assertIn(self.title, str(self.assertRaises(
                exceptions.UnknownName, named.aggregates, [name])))
        self.assertEqual({self.zone.uuid}, named.aggregates(['zone']))
