# SPDX-License-Identifier: Apache-2.0
"""Reads of aggregate metadata, on the databases that nova supports."""

import fixtures
from nova.conf import CONF
from nova.db.api import models as api_models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata
from tests import databases
from tests import statements

load_tests = testscenarios.load_tests_apply_scenarios

Keys = keyed_aggregates.Keys
TENANT = Keys(prefixes=frozenset({'filter_tenant_id'}))


def names(*keys):
    return Keys(frozenset(keys))


class TestMetadata(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        CONF.set_override('connection', databases.create(self, self.kind),
                          'api_database')
        self.addCleanup(CONF.clear_override, 'connection', 'api_database')
        self.engine = sa.create_engine(CONF.api_database.connection)
        self.addCleanup(self.engine.dispose)
        api_models.BASE.metadata.create_all(self.engine)
        self.source = metadata.MetadataSource()

    def aggregate(self, name, *hosts, **values):
        """Insert an aggregate into nova's API database; return its ID."""
        with self.engine.begin() as connection:
            row, = connection.execute(sa.insert(api_models.Aggregate).values(
                name=name, uuid=getattr(uuids, name))).inserted_primary_key
            for host in hosts:
                connection.execute(sa.insert(api_models.AggregateHost).values(
                    aggregate_id=row, host=host))
            for key, value in values.items():
                connection.execute(
                    sa.insert(api_models.AggregateMetadata).values(
                        aggregate_id=row, key=key, value=value))
        return row

    def test_aggregates_without_a_uuid(self):
        """Each has a key of its own, which is in no query to placement."""
        ids = [self.aggregate(name, 'h1', ssd='true') for name in 'abc']
        with self.engine.begin() as connection:
            for number, text in zip(ids, (None, '', ''), strict=True):
                connection.execute(sa.update(api_models.Aggregate).where(
                    api_models.Aggregate.id == number).values(uuid=text))
        self.aggregate('good', 'h1', ssd='true')
        keys = {'ID %d' % number for number in ids}
        self.assertEqual(
            {*keys, uuids.good}, self.source.read(names('ssd')).keys())
        self.assertEqual(
            {frozenset({'ID %d' % ids[0], other}) for other
             in ('ID %d' % ids[1], 'ID %d' % ids[2], uuids.good)},
            self.source.overlaps({'ID %d' % ids[0]}))
        every = metadata.read_all()
        self.assertEqual({*keys, uuids.good}, every.names.keys())
        self.assertEqual({*keys, uuids.good}, every.of_host('h1'))

    def test_aggregates_that_have_the_keys(self):
        """Only these keys are read; they are exact, as in nova's filters.

        An underscore in the beginning of a key is not a wildcard.
        """
        self.aggregate('fast', ssd='true', color='red')
        self.aggregate('slow', ssd='false')
        self.aggregate('other', color='blue')
        self.aggregate('own', filter_tenant_id='a', filter_tenant_id_2='b')
        self.aggregate('like', filter_tenantXid='a', filterXtenant_id='a')
        self.aggregate('upper', SSD='true', FILTER_TENANT_ID='a')
        self.assertEqual(
            {uuids.fast: {'ssd': 'true'}, uuids.slow: {'ssd': 'false'},
             uuids.own: {'filter_tenant_id': 'a', 'filter_tenant_id_2': 'b'}},
            self.source.read(names('ssd', 'gpu') | TENANT))

    def test_pairs_of_aggregates_with_a_host_in_common(self):
        """Those of the given aggregates, with any other."""
        self.aggregate('mine', 'h1', 'h2')
        self.aggregate('theirs', 'h2', 'h3')
        self.aggregate('third', 'h3', 'h4')
        self.assertEqual(
            {frozenset({uuids.mine, uuids.theirs})},
            self.source.overlaps({uuids.mine}))
        self.assertEqual(
            {frozenset({uuids.mine, uuids.theirs}),
             frozenset({uuids.theirs, uuids.third})},
            self.source.overlaps({uuids.mine, uuids.theirs}))
        self.assertEqual(frozenset(), self.source.overlaps({uuids.gone}))

    def test_text_that_a_database_refuses(self):
        """Image properties may contain any text."""
        for number, text in enumerate(('deb', 'debian\\', '%')):
            self.aggregate('distro%d' % number, os_distro=text)
        self.assertEqual(3, len(self.source.read(names('os_distro'))))

    def test_one_statement(self):
        """A read is a single statement."""
        sent = self.useFixture(statements.Statements())
        self.source.read(names('ssd', 'gpu') | TENANT)
        self.assertEqual(1, len(sent.about('aggregate')))

    def test_database_is_away(self):
        """An unavailable database is an error, not an empty result."""
        api_models.BASE.metadata.drop_all(self.engine)
        self.assertRaises(exceptions.NovaUnavailable, self.source.read,
                          names('ssd'))
        self.assertRaises(exceptions.NovaUnavailable, self.source.overlaps,
                          [uuids.fast])
        self.assertRaises(exceptions.NovaUnavailable, self.source.known,
                          [uuids.fast])
