# SPDX-License-Identifier: Apache-2.0
"""What to do when a request filter refuses a request."""

import fixtures
from nova import objects
from oslo_utils.fixture import uuidsentinel
import testtools

from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import narrowing


class SegmentAddresses(narrowing.QueryFilter):

    def change(self, _spec):
        raise constraints.Unsatisfiable('no segment has free addresses')


class Narrowing(narrowing.Narrowing):

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
                facts.Refusal, rehearsal.queries, None,
                requests.SchedulingRequest(spec=spec, operation='create'),
                None)
            self.assertIn(text, str(refusal))
            self.assertIn(step, refusal.step)
