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
        found, overlaps = self.source.read(
            names('ssd'), names('ssd'), ['true'])
        self.assertEqual({*keys, uuids.good}, found.keys())
        self.assertIn(frozenset({'ID %d' % ids[0], uuids.good}), overlaps)
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
            ({uuids.fast: {'ssd': 'true'}, uuids.slow: {'ssd': 'false'},
              uuids.own: {'filter_tenant_id': 'a', 'filter_tenant_id_2': 'b'}},
             frozenset()), self.source.read(names('ssd', 'gpu') | TENANT))

    def test_pairs_of_aggregates_with_a_host_in_common(self):
        """Only aggregates with the keys to be paired are paired."""
        self.aggregate('mine', 'h1', 'h2', filter_tenant_id='a')
        self.aggregate('theirs', 'h2', 'h3', filter_tenant_id_2='b')
        self.aggregate('third', 'h3', 'h4', filter_tenant_id='c')
        self.aggregate('fast', 'h1', 'h2', 'h3', 'h4', ssd='true')
        found, overlaps = self.source.read(
            names('ssd') | TENANT, TENANT, ['b'])
        self.assertEqual(
            {frozenset({uuids.mine, uuids.theirs}),
             frozenset({uuids.theirs, uuids.third})}, overlaps)
        self.assertEqual(4, len(found))

    def test_pairs_have_a_key_in_common(self):
        """Two aggregates are paired only if they share a key."""
        self.aggregate('small', 'h1', 'h2', instance_type='a')
        self.aggregate('east', 'h1', 'h3', availability_zone='a',
                       filter_tenant_id='a')
        self.aggregate('west', 'h2', 'h3', availability_zone='b',
                       filter_tenant_id_2='b')
        keys = names('instance_type', 'availability_zone')
        self.assertEqual(
            {frozenset({uuids.east, uuids.west})},
            self.source.read(keys, keys, ['a'])[1])

    def test_pairs_with_a_text(self):
        """Hosts without any aggregate that can match are skipped."""
        self.aggregate('mine', 'h1', filter_tenant_id='x, tenant_a,y')
        self.aggregate('theirs', 'h1', 'h2', filter_tenant_id='tenant-b')
        self.aggregate('others', 'h2', filter_tenant_id='tenant-c')
        self.assertEqual(
            {frozenset({uuids.mine, uuids.theirs})},
            self.source.read(TENANT, TENANT, ['tenant_a'])[1])
        self.assertEqual(frozenset(), self.source.read(
            TENANT, TENANT, ['tenant-d'])[1])

    def test_text_that_a_database_refuses(self):
        """Image properties may contain any text."""
        self.aggregate('mine', 'h1', os_distro='debian\\')
        self.aggregate('theirs', 'h1', os_distro='gentoo')
        distro = names('os_distro')
        for text in '\N{PENGUIN}', 'deb\0', 'debian\\', '%':
            self.assertEqual(
                {frozenset({uuids.mine, uuids.theirs})},
                self.source.read(distro, distro, [text])[1])

    def test_one_statement(self):
        """A read is a single statement."""
        sent = self.useFixture(statements.Statements())
        self.source.read(names('ssd', 'gpu') | TENANT,
                         names('gpu') | TENANT, ['a', 'b'])
        self.assertEqual(1, len(sent.about('aggregate')))

    def test_database_is_away(self):
        """An unavailable database is an error, not an empty result."""
        api_models.BASE.metadata.drop_all(self.engine)
        self.assertRaises(exceptions.NovaUnavailable, self.source.read,
                          names('ssd'))
        self.assertRaises(exceptions.NovaUnavailable, self.source.known,
                          [uuids.fast])
