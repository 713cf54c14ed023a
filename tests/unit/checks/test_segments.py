# SPDX-License-Identifier: Apache-2.0
"""Segments of which neutron shows the user of [neutron] no subnet."""

import types
import uuid

from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.checks import scheduler
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.source import keyed_aggregates
from tests import neutron_service
from tests.unit import servers


class TestSegments(servers.LoopbackTestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([])
        conf.register_opts(self.conf)
        self.neutron = self.useFixture(neutron_service.NeutronService())
        self.neutron.configure(self.conf)
        self.names = {uuids.zone: 'zone-a'}

    def segment(self, shown=True):
        """Create a segment with an aggregate; return its UUID."""
        made = str(uuid.uuid4())
        self.names[str(uuid.uuid4())] = 'Neutron segment id %s' % made
        if shown:
            self.neutron.subnet(uuids.network, made, '10.0.0.0/24')
        return made

    def found(self):
        aggregates = keyed_aggregates.Aggregates(self.names, {}, {})
        return runner.find(
            runner.Check('', scheduler.segments), types.SimpleNamespace(
                conf=self.conf, aggregates=aggregates))

    def test_no_segments(self):
        """Neutron is not asked."""
        finding, = self.found()
        self.assertIsNone(finding.code)
        self.assertEqual([], self.neutron.requests)

    def test_all_are_shown(self):
        for _number in range(scheduler.BATCH + 1):
            self.segment()
        self.assertEqual([], self.found())
        self.assertEqual(2, len(self.neutron.requests))

    def test_one_is_not_shown(self):
        """The role that the user needs is suggested."""
        self.segment()
        hidden = self.segment(shown=False)
        warning, = self.found()
        self.assertEqual(checks.Code.WARNING, warning.code)
        self.assertIn('1 of the 2 segments', warning.text)
        self.assertIn(hidden, warning.text)
        self.assertEqual(
            ('openstack role add --project service --user neutron admin',),
            warning.commands)

    def test_neutron_that_refuses(self):
        self.segment()
        self.neutron.statuses['subnets'] = 403
        failure, = self.found()
        self.assertEqual(checks.Code.FAILURE, failure.code)
        self.assertIn(
            'answered 403 (reading subnets): run "openstack role add ',
            failure.text)
