# SPDX-License-Identifier: Apache-2.0
"""Findings about credentials, endpoint, microversions, rights and drift."""

from collections import abc
import time
import types
from typing import Any

import fixtures
from keystoneauth1 import loading
from oslo_config import cfg

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests import documents
from tests import placement_service
from tests.unit import doubles
from tests.unit import servers

FAILURE, WARNING, SUCCESS = (
    checks.Code.FAILURE, checks.Code.WARNING, checks.Code.SUCCESS)
Check = abc.Callable[[checks.Deployment], checks.Findings]


class ChecksTest(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())

    def find(self, check: Check, conf: cfg.ConfigOpts
             ) -> list[tuple[checks.Code, str]]:
        """Return the code of each finding, and its text with the commands."""
        return [(finding.code, '\n'.join((finding.text, *finding.commands)))
                for finding in runner.find(
                    runner.Check('', check), checks.Deployment(
                        conf, lambda: doubles.Nova([])))]

    def assert_found(self, check: Check, code: checks.Code,
                     texts: tuple[str, ...], conf: cfg.ConfigOpts) -> None:
        """Assert that the check has one finding, with these texts."""
        [(observed, text)] = self.find(check, conf)
        self.assertEqual(code, observed, text)
        for part in texts:
            self.assertIn(part, text)


class TestPlacement(ChecksTest):

    def test_credentials(self) -> None:
        """Exactly the missing lines are printed: a warning, then a failure."""
        for options, *texts in (
                ({}, 'from version 2 of this package on nova-api does not '
                 'start', '[placement]\nauth_type = password\n'
                 'auth_url = https://keystone.example.org/v3\n'
                 'username = placement\npassword = PASSWORD\n'
                 'project_name = service\nuser_domain_name = Default\n'
                 'project_domain_name = Default'),
                ({'auth_type': 'pasword'}, 'pasword', 'auth_type = password'),
                ({'auth_type': 'password', 'username': 'nova',
                  'password': 'p'},
                 'Set:\n[placement]\n'
                 'auth_url = https://keystone.example.org/v3\n'
                 'user_domain_name = Default'),
                ({'auth_type': 'v3applicationcredential',
                  'auth_url': 'http://keystone'},
                 'application_credential_id = APPLICATION_CREDENTIAL_ID\n'
                 'application_credential_secret = ')):
            conf = servers.make_conf(**options)
            self.assert_found(placement.credentials, WARNING, texts, conf)
            conf.set_override(
                'missing_credentials', 'fail', 'aggregate_mirror')
            self.assert_found(placement.credentials, FAILURE,
                              ('nova-api does not start',), conf)
        conf = servers.make_conf(**self.cloud.account(
            project_name=None, project_id='5f'))
        self.assertEqual([], self.find(placement.credentials, conf))

    def test_auth_type_that_decides_nothing(self) -> None:
        """Of the options whose use is unknown, those that are set stay."""
        for value in '', 'pasword':
            conf = servers.make_conf()
            conf(['--config-file', self.nova_conf(
                '[placement]', 'auth_type = ' + value, 'username = nova',
                'password =')])
            [(_code, text)] = self.find(placement.credentials, conf)
            self.assertIn('auth_type = password', text)
            self.assertIn('\npassword = PASSWORD', text)
            self.assertNotIn('username', text)

    def test_token_without_a_catalog(self) -> None:
        """The step names the options to add."""
        token: dict[str, Any] = self.cloud.token()
        del token['token']['catalog']
        self.cloud.answers['/v3/auth/tokens'] = (201, token)
        self.assert_found(
            placement.endpoint, FAILURE,
            ('no catalog', 'add project_name and project_domain_name'),
            servers.make_conf(**self.cloud.account(project_name=None)))

    def test_endpoint_that_is_not_selected(self) -> None:
        """The sentence has what the catalog offers instead."""
        endpoint = {'id': 'one', 'url': 'http://placement', 'region': 'one',
                    'region_id': 'one', 'interface': 'admin'}
        self.cloud.grant(others=[{
            'type': 'placement', 'name': 'placement', 'id': 'placement',
            'endpoints': [endpoint]}])
        self.assert_found(
            placement.endpoint, FAILURE,
            ('but for region one, interface admin',
             'correct region_name or valid_interfaces of [placement]'),
            servers.make_conf(**self.cloud.account(region_name='two')))

    def test_role_of_an_account_in_a_domain(self) -> None:
        """Its domain is named, unless it is the one that keystone assumes."""
        unset = {'user_domain_name': None, 'project_domain_name': None}
        for options, command in (
                ({}, '--project service --user mirror'),
                ({'user_domain_name': 'default'},
                 '--project service --user mirror'),
                ({'username': 'a b', 'project_name': 'e f',
                  'user_domain_name': 'c d'},
                 "--project 'e f' --user 'a b' --user-domain 'c d'"),
                ({**unset, 'default_domain_name': 'corp'}, '--project service '
                 '--project-domain corp --user mirror --user-domain corp'),
                ({**unset, 'default_domain_id': 'corp', 'user_id': 'u',
                  'project_id': 'p'}, '--project p --user u')):
            conf = servers.make_conf(**self.cloud.account(**options))
            self.assertEqual(
                'openstack role add %s service' % command,
                auth.role_command(conf, 'placement'))

    def test_discovery_of_keystone_that_is_refused(self) -> None:
        """It is requested without the credentials, which may be correct."""
        self.cloud.answers['/'] = (401, {})
        self.assert_found(
            placement.endpoint, FAILURE,
            ('answered 401 (getting a token): see the log of keystone',),
            servers.make_conf(**self.cloud.account(auth_url=self.cloud.url)))

    def test_certificate_of_the_future(self) -> None:
        """The clock of this host may be wrong."""
        context, path = servers.certificate(
            self.useFixture(fixtures.TempDir()).path, days=2, since=1)
        secure = self.useFixture(servers.Server(
            lambda _server, _client: None, context))
        self.cloud.grant(secure.url)
        self.assert_found(
            placement.endpoint, FAILURE, ('correct the clock of this host',),
            servers.make_conf(**self.cloud.account(cafile=path)))

    def test_endpoint_that_is_not_placement(self) -> None:
        """The URL is corrected where it was read."""
        self.cloud.answers['/'] = (404, {})
        self.cloud.grant(self.cloud.url)
        account = self.cloud.account()
        for options, step in (
                ({}, ': correct the URL of placement in the catalog; if it is '
                     'right, let placement answer there.'),
                ({'endpoint_override': self.cloud.url},
                 ': correct endpoint_override of [placement] in nova.conf; if '
                 'it is right, let placement answer there.')):
            self.assert_found(
                placement.endpoint, FAILURE, ('answered 404', step),
                servers.make_conf(**account, **options))

    def test_microversions(self) -> None:
        """1.4 is before 1.36, and 1.100 and 2.0 are after it."""
        conf = servers.make_conf(auth_type='none', endpoint=self.cloud.url)
        old = ('2.0.0 (Train)', 'pip install --upgrade openstack-placement\n'
               'placement-manage db sync')
        new = ('1.36 is no longer supported',
               'pip install --upgrade WHEEL_OR_REPOSITORY')
        for oldest, newest, code, texts in (
                ('1.0', '1.4', FAILURE, old), ('1.0', '1.30', FAILURE, old),
                ('1.0', '1.36', SUCCESS, ('1.36 is used',)),
                ('1.0', '1.100', SUCCESS, ()), ('1.4', '2.0', SUCCESS, ()),
                ('1.37', '1.39', FAILURE, new),
                ('1.100', '1.101', FAILURE, new),
                ('2.0', '2.1', FAILURE, new)):
            self.cloud.answers['/'] = (200, {'versions': [{
                **documents.placement_version(), 'min_version': oldest,
                'max_version': newest}]})
            self.assert_found(
                placement.endpoint, code, (oldest, newest, *texts), conf)
        self.assert_found(
            placement.endpoint, FAILURE, (),
            servers.make_conf(auth_type='none', endpoint='http://127.0.0.1:1'))
        for body in ({}, {'versions': []}, {'versions': ['1.0']}, b'hello',
                     {'versions': [{'min_version': '1.0'}]},
                     {'versions': [{'min_version': '1.0',
                                    'max_version': 'one'}]}):
            self.cloud.answers['/'] = (200, body)
            self.assert_found(
                placement.endpoint, FAILURE, ('answered 200',), conf)

    def test_slow_answers(self) -> None:
        """Who was slow is named: the second request needs no token."""
        conf = servers.make_conf(auth_type='none', endpoint=self.cloud.url)
        conf.set_override('inline_timeout', 5.0, 'aggregate_mirror')
        for moments, text in (
                ((0, 5.5, 6, 6.1), 'A token, the catalog and placement\'s '
                 'answer took 5.5 s, and a request to nova-api waits for all '
                 'parties together 5 s: see the log of keystone.'),
                ((0, 7, 8, 14), 'Placement\'s answer took 6.0 s, and ')):
            clock = types.SimpleNamespace(monotonic=iter(moments).__next__)
            with fixtures.MonkeyPatch(
                    'nova_aggregate_mirror.checks.placement.time', clock):
                self.assert_found(placement.endpoint, WARNING, (text,), conf)


class TestRights(ChecksTest):
    """With a real placement, and its policy."""

    def test_rights(self) -> None:
        """The role to grant is printed; nothing is written."""
        service = self.useFixture(placement_service.PlacementService())
        self.useFixture(fixtures.Timeout(servers.PATIENCE, gentle=True))

        def check(code: checks.Code, *texts: str, token: str = 'admin'
                  ) -> None:
            conf = servers.make_conf(
                auth_type='admin_token', endpoint=service.url, token=token)
            self.assert_found(placement.rights, code, texts, conf)
            service.recover()

        check(FAILURE, 'placement:resource_providers:list', '"openstack role '
              'add --project service --user placement service"',
              token='another:user')
        service.refuse_role(('PUT',))
        check(FAILURE, '403', '(PUT /', 'openstack role add ')
        # A page is not placement's refusal.
        service.fail_with(403, methods=('PUT',))
        check(FAILURE, 'answered 403 with text/html (PUT /')
        service.fail_with(500, provider='resource_providers')
        check(FAILURE, '500', ': see the log of placement.')
        service.hang(methods=('PUT',))
        start = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.checks.placement.PATIENCE', 4.0))
        check(FAILURE, 'was silent', '(PUT /')
        self.assertLess(time.monotonic() - start, placement_service.FOR_EVER)
        service.requests.clear()
        check(SUCCESS)
        # The provider of the only write does not exist.
        self.assertEqual(['PUT'], [
            request.method for request in service.requests
            if request.method != 'GET'])


class TestNeutron(ChecksTest):

    def conf(self, **options: Any) -> cfg.ConfigOpts:
        conf = servers.make_conf(**self.cloud.account())
        loading.register_session_conf_options(conf, 'neutron')
        loading.register_auth_conf_options(conf, 'neutron')
        loading.register_adapter_conf_options(conf, 'neutron')
        conf.register_opts(loading.get_auth_plugin_conf_options('password'),
                           group='neutron')
        conf.set_default('service_type', 'network', 'neutron')
        conf.set_default('valid_interfaces', ['internal'], 'neutron')
        for name, value in options.items():
            conf.set_override(name, value, 'neutron')
        return conf

    def test_each_step(self) -> None:
        """As for placement's, but the account is an administrator's."""
        self.assert_found(
            placement.neutron, WARNING, (
                'routed network', 'from version 2 of this package on '
                'nova-scheduler does not start',
                '[neutron]\nauth_type = password\n', 'username = neutron\n'),
            self.conf())
        self.cloud.grant(others=[
            documents.service('network', self.cloud.url)])
        self.cloud.answers['/v2.0/subnets'] = (200, {'subnets': []})
        self.assertEqual([], self.find(
            placement.neutron, self.conf(**self.cloud.account())))
        self.assert_found(
            placement.neutron, FAILURE,
            ('region_name or valid_interfaces of [neutron] in nova.conf',),
            self.conf(**self.cloud.account(region_name='RegionTwo')))
        self.cloud.answers['/v3/auth/tokens'] = (401, {})
        self.assert_found(
            placement.neutron, FAILURE, (
                'keystone at http://', 'refused the credentials with 401 '
                '(getting a token): correct username (now a b), domains, '
                'password or project of [neutron] in nova.conf.'),
            self.conf(**self.cloud.account(
                username='a b', user_domain_name='c d')))


class TestDrift(doubles.TestCase):

    def find(self) -> checks.Findings:
        self.nova.zones = lambda: {'zone': 'az1'}
        return placement.drift(types.SimpleNamespace(
            conf=self.conf, journal=self.journal, source=self.nova,
            client=self.placement))

    def cloud(self, hosts_of: dict[str, set[str]],
              **placement: set[str]) -> None:
        """Create a compute node for each provider: n1 of h1, and so on."""
        self.nova.hosts_of = hosts_of
        for provider, aggregates in placement.items():
            self.nova.nodes[provider] = provider.replace('n', 'h')
            self.placement.create(provider, *aggregates)

    def test_differences(self):
        """By zone or aggregate, with the command; foreign ones are none."""
        self.cloud({'zone': {'h1', 'h4'}, 'rack': {'h2'}}, n1=set(),
                   n2={'foreign'}, n3={'zone'}, n4={'zone', 'foreign'})
        self.assertEqual([
            *checks.warning('In placement, aggregate name of rack lacks host '
                            'h2.'),
            *checks.warning('In placement, availability zone az1 lacks host '
                            'h1.'),
            *checks.warning('In placement, availability zone az1 still has '
                            'host h3.'),
            *checks.warning('To repair this now, run:',
                            commands.SYNC + ' --prune')], self.find())
        self.placement.write('n3', ())
        self.assertEqual((commands.SYNC,), self.find()[-1].commands)
        self.placement.write('n1', {'zone'})
        self.placement.write('n2', {'rack'})
        self.assertEqual(checks.good(
            'Placement is in sync with nova: 2 host aggregates.'),
            self.find())

    def test_observed_differences(self) -> None:
        """Where nova is only observed, no step writes to placement."""
        self.conf.set_override('mode', conf.OBSERVE, 'aggregate_mirror')
        self.cloud({'zone': {'h1'}}, n1=set(), n2={'zone'})
        self.assertEqual([
            'In placement, availability zone az1 lacks host h1.',
            'In placement, availability zone az1 still has host h2.'],
            [finding.text for finding in self.find()])

    def test_deleted_aggregates(self):
        """The ledger has them; other providers are named by their UUID."""
        self.cloud({'zone': {'h1'}}, n1={'zone', 'gone'})
        self.journal.ledger.remember(['gone'])
        self.journal.ledger.mark('marked')
        self.placement.create('segment', 'marked')
        self.assertEqual([
            'In placement, deleted aggregate gone still has host h1.',
            'In placement, deleted aggregate marked still has provider '
            'segment.'], [finding.text for finding in self.find()[:2]])

    def test_journal_that_cannot_be_read(self):
        """Placement's log is no remedy."""
        self.cloud({'zone': {'h1'}}, n1=set())
        self.assertEqual({}, self.journal.ledger.entries())
        with engine.Database(self.conf).open().begin() as connection:
            models.ledger.drop(connection)
        self.assertRaises(exceptions.JournalUnavailable, self.find)

    def test_provider_that_cannot_be_read(self):
        """The other providers are still compared."""
        self.cloud({'a': {'h1', 'h2'}}, n1=set(), n2=set())
        self.placement.broken = {
            ('GET', 'n1'): exceptions.MalformedAnswer('half of it.')}
        place, _repair, unknown = self.find()
        self.assertIn('lacks host h2.', place.text)
        self.assertEqual(checks.Code.FAILURE, unknown.code)
        self.assertEqual(
            (exceptions.MalformedAnswer('half of it.').failure,
             'provider n1'),
            (unknown.problem.failure, unknown.problem.subject))
        self.assertEqual((), unknown.commands)

    def test_hosts_that_share_a_compute_node(self):
        """Each of them is named."""
        self.cloud({'a': {'h1', 'twin'}}, n1=set())
        self.nova.twins = {'n1': 'twin'}
        place, *_others = self.find()
        self.assertIn('lacks host h1, host twin.', place.text)

    def test_hosts_that_are_not_mirrored(self):
        """The problems of a sync, of each kind a few."""
        hosts = {'h%d' % number for number in range(checks.NAMES + 3)}
        self.nova.hosts_of = {'a': hosts | {'nodeless', 'pending'}}
        for host in hosts:
            self.nova.nodes['n' + host] = host
            self.placement.create('n' + host, 'a')
        self.nova.nodes['n'] = 'pending'
        self.nova.unmapped = hosts
        findings = self.find()
        self.assertEqual(
            [(checks.Code.WARNING, step) for step in [
                *['map it'] * checks.NAMES, '', source.RESTART,
                result.NO_PROVIDER]],
            [(finding.code, finding.problem.step) for finding in findings])

    def test_removals_that_are_refused(self):
        """The step of the brake, with its commands, unless it would write."""
        self.cloud({'zone': {'h1'}}, n1={'zone'})
        self.journal.ledger.remember('%d' % number for number in range(20))
        self.placement.write('n1', {'zone', *map(str, range(20))})
        *_place, finding = self.find()
        self.assertEqual(comparison.REVIEW, finding.problem.failure.step)
        self.assertEqual((commands.SYNC + ' --prune --dry-run',),
                         finding.commands)
        self.conf.set_override('mode', conf.OBSERVE, 'aggregate_mirror')
        finding = self.find()[-1]
        self.assertEqual(((), ''), (finding.commands, finding.problem.step))

    def test_many_hosts(self):
        """Only a few are named; a host with many nodes counts once."""
        self.nova.hosts_of = {'a': {'h%d' % i for i in range(9)}}
        for number in range(18):
            node = 'n%02d' % number
            self.nova.nodes[node] = 'h%d' % (number % 9)
            self.placement.create(node)
        first, repair = self.find()
        self.assertEqual('In placement, aggregate name of a lacks host h0, '
                         'host h1, host h2, host h3, host h4 and 4 more.',
                         first.text)
        self.assertEqual((commands.SYNC,), repair.commands)
