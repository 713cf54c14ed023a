# SPDX-License-Identifier: Apache-2.0
"""What nova's filters log about a host, and why they refuse a request."""

import logging
import types

import fixtures
from nova import objects
from nova.objects import instance_pci_requests
from oslo_utils.fixture import uuidsentinel
import testtools

from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters


class TestMessages(testtools.TestCase):

    def test_requests_of_pci_devices(self):
        """They are named by the flavor's alias, or by their port."""
        state = types.SimpleNamespace(
            uuid=uuidsentinel.node, host='cmp-1', nodename='node')
        request = instance_pci_requests.InstancePCIRequest
        pci_requests = instance_pci_requests.InstancePCIRequests(requests=[
            request(count=2, alias_name='nic'), request(
                count=1, alias_name=None, requester_id=uuidsentinel.port)])
        with rehearsal.listening([state]) as messages:
            logging.getLogger(rehearsal.NOVA_FILTERS).debug(
                '%(state)s lacks %(requests)s',
                {'state': state, 'requests': pci_requests})
        self.assertEqual('<host> lacks 2 nic, 1 for port %s'
                         % uuidsentinel.port, messages.last_message(state))


class SegmentAddresses(request_filters.QueryFilter):

    def change(self, _spec):
        raise constraints.Unsatisfiable('no segment has free addresses')


class Narrowing(request_filters.Narrowing):

    def __init__(self):
        """Read nothing."""

    def change(self, _spec):
        raise constraints.Unsatisfiable('no aggregate matches')


class TestRefusal(testtools.TestCase):

    def test_advice(self):
        """Metadata of aggregates is advised only where it was read."""
        objects.register_all()
        spec = objects.RequestSpec(
            instance_uuid=uuidsentinel.server, project_id='p',
            availability_zone=None, requested_destination=None,
            scheduler_hints={})
        for refusing, text, step in (
                (SegmentAddresses(), 'no segment', 'delete ports'),
                (Narrowing(), 'no aggregate', 'metadata of the aggregates')):
            self.useFixture(fixtures.MonkeyPatch(
                'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
                [refusing]))
            refusal = self.assertRaises(
                reasons.Refusal, rehearsal.queries, None,
                requests.SchedulingRequest(spec=spec, operation='create'),
                None)
            self.assertIn(text, str(refusal))
            self.assertIn(step, refusal.step)
