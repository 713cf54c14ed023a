# SPDX-License-Identifier: Apache-2.0
"""Which credentials in nova.conf are complete; no network."""

from typing import Any

from keystoneauth1 import loading
from oslo_config import cfg
from testtools import matchers

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from tests.unit import servers


class AuthTestCase(servers.LoopbackTestCase):
    """The credentials that ``load`` accepts, and what next steps name."""

    def check(self, **placement: Any) -> None:
        auth.load(servers.make_conf(**placement), 'placement')

    def test_what_is_missing(self) -> None:
        """Each option to add is named, or the plugin that is none."""
        url = {'auth_url': 'http://127.0.0.1:1'}
        credential = {'auth_type': 'v3applicationcredential', **url}
        for options, text in (
                ({}, '[placement] has no auth_type'),
                ({'auth_type': 'no-such'}, 'no-such'),
                ({'auth_type': 'password', **url}, '[placement] has no '
                 'username, password, user_domain_name'),
                ({'auth_type': 'password', 'user_id': 'u', 'password': 'p'},
                 '[placement] has no auth_url'),
                (credential, '[placement] has no application_credential_id, '
                 'application_credential_secret'),
                ({**credential, 'application_credential_id': 'i'},
                 '[placement] has no application_credential_secret'),
                # The text of a plugin's own error.
                ({'auth_type': 'v3totp', 'username': 'u', 'passcode': 'p',
                  **url}, 'domain')):
            self.assertIn(text, str(self.assertRaises(
                exceptions.MissingCredentials, self.check, **options)))

    def test_option_that_cannot_be_used(self) -> None:
        """It is named; the URL of the service is not at fault."""
        for name, text, expected in (
                # Older keystoneauth accepts no fraction.
                ('timeout', '1m', '(a|a whole) number'),
                ('insecure', 'si', 'true or false')):
            path = self.nova_conf('[placement]', '%s = %s' % (name, text))
            conf = servers.make_conf(
                auth_type='none', endpoint='http://127.0.0.1:1')
            conf(['--config-file', path])
            error = self.assertRaises(exceptions.InvalidConfiguration,
                                      auth.session, conf, 'placement')
            self.assertThat(str(error), matchers.MatchesRegex(
                r'\[placement\] %s in %s is "%s": set it to %s$' % (
                    name, path, text, expected)))

    def test_complete_section(self) -> None:
        """Complete credentials pass without any request."""
        self.check(auth_type='v3applicationcredential',
                   auth_url='http://127.0.0.1:1',
                   application_credential_id='i',
                   application_credential_secret='s')

    def test_other_section(self) -> None:
        """The section that auth_section names is checked instead."""
        conf = servers.make_conf(auth_section='elsewhere')
        error = self.assertRaises(exceptions.MissingCredentials,
                                  auth.load, conf, 'placement')
        self.assertIn('[elsewhere] has no auth_type', str(error))
        conf.set_override('auth_type', 'none', 'elsewhere')
        auth.load(conf, 'placement')

    def party(self, *lines: str) -> causes.Party:
        """Return the party of nova.conf before its plugin was loaded."""
        conf = cfg.ConfigOpts()
        conf(['--config-file', self.nova_conf(*lines)])
        loading.register_auth_conf_options(conf, 'placement')
        loading.register_session_conf_options(conf, 'placement')
        loading.register_adapter_conf_options(conf, 'placement')
        return auth.party(conf, 'placement')

    def test_account_before_its_plugin_is_loaded(self) -> None:
        """The user and the section are those of nova.conf."""
        party = self.party(
            '[placement]', 'auth_section = shared', '[shared]',
            'auth_type = password', 'username = mirror',
            'project_name = admins', 'user_domain_name = corp')
        self.assertEqual('username (now mirror), domains, password or project '
                         'of [shared] in nova.conf', party.account)
        self.assertIn('--project admins --user mirror --user-domain corp ',
                      party.role)
        self.assertIn('to [shared] in nova.conf', party.project)
        self.assertEqual(
            'user_id (now u), password or project of [placement] in nova.conf',
            self.party('[placement]', 'auth_type = password',
                       'user_id = u').account)

    def test_unknown_plugin(self) -> None:
        """Steps raise nothing: the failed call names the plugin."""
        for line in 'auth_type = no-such', '':
            self.assertIn('username (now placement)',
                          self.party('[placement]', line).account)
