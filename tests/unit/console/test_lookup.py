# SPDX-License-Identifier: Apache-2.0
"""Names of projects, images and networks, and of zones and hosts."""

from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from tests import documents
from tests.unit.http import test_resources
from tests.unit import servers

KINDS = {
    resources.PROJECT: '/v3/projects',
    resources.IMAGE: '/v2/images',
    resources.NETWORK: '/v2.0/networks',
}
DOCUMENTS = {
    resources.PROJECT: documents.project,
    resources.IMAGE: documents.image,
    resources.NETWORK: documents.network,
}


class TestUnknown(testtools.TestCase):

    def test_zone(self):
        """It exists if nova or a server has it."""
        for zone, zones, occupied in (
                ('', [], 0), ('az-1', ['az-1'], 0), ('old', ['az-1'], 1)):
            self.assertEqual([], lookup.unknown_names(
                zone, zones, [], auditor.Totals(occupied), self.fail))
        [problem] = lookup.unknown_names(
            'old', [], [], auditor.Totals(), self.fail)
        self.assertEqual(
            (exit_status.COULD_NOT_RUN, 'nova has no availability zone old, '
             'and no server requests it; nova has none'),
            (problem.status, str(problem)))

    def test_hosts(self):
        """Nova is not asked while each has a server; a dozen are listed."""
        def errors(names, occupied, read):
            return lookup.unknown_names(
                '', [], names, auditor.Totals(hosts={*occupied}), read)

        self.assertEqual([], errors(['h1'], ['h1'], self.fail))
        hosts = ['h%02d' % number for number in range(15)]
        self.assertEqual([], errors(['h01'], [], hosts.copy))
        [problem] = errors(['h1', 'h02'], ['h3'], hosts.copy)
        self.assertEqual(
            'nova has no host h1, and no server is on it; nova has %s and 3 '
            'more' % ', '.join(hosts[:12]), str(problem))


class TestIdentifiers(test_resources.ResourcesTest):

    def find(self, kind, name='demo', seconds=servers.PATIENCE):
        with deadline.within(seconds):
            return lookup.identifiers(
                lambda: resources.adapter(self.conf, kind),
                resources.party(self.conf, kind), kind, name)

    def answer(self, kind, *names, status=200):
        """Have resources of these names, with the IDs noun0 and so on."""
        self.cloud.answers[KINDS[kind]] = (status, {kind.noun + 's': [
            DOCUMENTS[kind](getattr(uuids, kind.noun + str(number)), name)
            for number, name in enumerate(names)]})

    def test_name(self):
        """Each service has one, several or no resources with it."""
        for kind in KINDS:
            first, second = (
                getattr(uuids, kind.noun + number) for number in '01')
            self.answer(kind, 'demo', 'Demo')
            self.assertEqual([first], self.find(kind))
            self.answer(kind, 'demo', 'demo')
            self.assertEqual(sorted([first, second]), self.find(kind))
            self.answer(kind)
            self.assertEqual([], self.find(kind))

    def test_identifier(self):
        """It is not compared with names."""
        for kind, path in KINDS.items():
            document = DOCUMENTS[kind](uuids.demo)
            self.cloud.answers['%s/%s' % (path, uuids.demo)] = (
                200, document if kind == resources.IMAGE
                else {kind.noun: document})
            self.assertEqual([uuids.demo], self.find(kind, uuids.demo))

    def test_service_that_refuses(self):
        """The error names the service and the resource."""
        for kind in KINDS:
            self.answer(kind, status=403)
            error = self.assertRaises(
                exceptions.NotAuthorized, self.find, kind)
            self.assertEqual(
                ('%s at %s' % (kind.service, self.cloud.url), 'answered 403',
                 'looking up %s demo' % kind.noun),
                (error.failure.party, error.failure.observation,
                 error.failure.occasion))

    def test_keystone_that_is_silent_about_a_project(self):
        """It has issued the token: the look-up is what it does not answer."""
        self.cloud.hanging |= {'/v3/projects', '/v3/projects/demo'}
        error = self.assertRaises(
            exceptions.DeadlineExceeded, self.find, resources.PROJECT,
            seconds=1.5)
        self.assertIn('(looking up project demo)', str(error))
