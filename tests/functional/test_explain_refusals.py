# SPDX-License-Identifier: Apache-2.0
"""Requests that nova refuses before or while it schedules them."""

from nova.db.api import api as api_db
from oslo_utils.fixture import uuidsentinel

from tests.functional import test_explain_command

ENABLED = test_explain_command.MORE + '[scheduler]\n%s = true\n'
ROUTED = 'query_placement_for_routed_network_aggregates'
TENANTS = 'limit_tenants_to_placement_aggregate'
TYPES = 'query_placement_for_image_type_support'
SMALL = ('--flavor', 'm1.small')


class TestRefusals(test_explain_command.ExplainTest):

    def assert_refused(self, text, *argv):
        done = self.explain(*SMALL, *argv)
        self.assertEqual((255, ''), (done.returncode, done.stdout),
                         done.stderr)
        [line] = done.stderr.splitlines()
        self.assertIn(text, line)

    def summary(self, *argv):
        done = self.explain(*SMALL, *argv)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        return done.stdout.splitlines()[0]

    def test_unknown_zone(self):
        """Nova-api refuses it, also with the name of a host."""
        for zone in 'az2', 'az1:near':
            self.assert_refused(
                'nova has no availability zone %s, and refuses servers for '
                'it; it has az1, nova' % zone, '--zone', zone)
        self.assertTrue(
            self.summary('--zone', 'nova').startswith('2 of 2 hosts'))

    def test_default_schedule_zone(self):
        """Nova-api requests it if no zone is given."""
        more = test_explain_command.MORE.replace(
            '[DEFAULT]', '[DEFAULT]\ndefault_schedule_zone = %s')
        self.write_conf(more=more % 'az1')
        self.assertTrue(self.summary().startswith('1 of 2 hosts'))
        self.assertTrue(
            self.summary('--zone', 'nova').startswith('2 of 2 hosts'))
        self.write_conf(more=more % 'az2')
        self.assert_refused('az2 ([DEFAULT] default_schedule_zone), and')

    def test_project_that_nova_needs(self):
        """The aggregates of a tenant cannot be found without it."""
        self.write_conf(more=ENABLED % TENANTS)
        self.assert_refused('give --project')
        done = self.explain(*SMALL, '--project', uuidsentinel.project)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue(done.stdout.startswith('2 of 2 hosts'))
        self.assertIn('project %s' % uuidsentinel.project, done.stderr)

    def test_image_that_nova_needs(self):
        """Properties do not have its format."""
        self.write_conf(more=ENABLED % TYPES)
        self.assert_refused('give --image, or --volume', '--image-property',
                            'disk_format=qcow2')
        self.assertTrue(self.summary('--volume').startswith('2 of 2 hosts'))

    def test_configuration_that_nova_scheduler_refuses(self):
        """The line has the reason, not that no host is left."""
        self.write_conf(more=ENABLED % ROUTED + (
            '[aggregate_mirror]\nmissing_credentials = fail\n'))
        self.assert_refused('[neutron]')

    def test_request_that_nova_cannot_read(self):
        """The line says how to describe the server instead."""
        with api_db.get_engine().begin() as connection:
            connection.exec_driver_sql(
                'INSERT INTO request_specs (instance_uuid, spec) '
                'VALUES (\'%s\', \'%s\')' % (
                    uuidsentinel.server, '[' * 60000))
        done = self.explain('--server', uuidsentinel.server)
        self.assertEqual((255, ''), (done.returncode, done.stdout),
                         done.stderr)
        [line] = done.stderr.splitlines()
        self.assertIn('(RecursionError). Describe the server with', line)
