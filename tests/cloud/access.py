# SPDX-License-Identifier: Apache-2.0
"""How the administrator of a cloud uses it: REST APIs and real clients."""

import functools
import pathlib
import subprocess
import sys

from keystoneauth1 import adapter
from keystoneauth1.identity import v3
from keystoneauth1 import session
import requests

from tests.cloud import config
from tests.cloud import processes

CLIENT_TIMEOUT = 120


class Access:
    """A cloud seen by its administrator."""

    config: config.Config
    programs = pathlib.Path(sys.executable).parent
    """Where the clients are."""

    def environment(self) -> dict[str, str]:
        """The variables with which clients use the cloud as administrator."""
        return {'no_proxy': '127.0.0.1',
                'OS_AUTH_URL': self.config.auth_url,
                'OS_USERNAME': 'admin',
                'OS_PASSWORD': self.config.password,
                'OS_PROJECT_NAME': 'admin',
                'OS_USER_DOMAIN_ID': 'default',
                'OS_PROJECT_DOMAIN_ID': 'default',
                'OS_IDENTITY_API_VERSION': '3',
                'OS_REGION_NAME': config.REGION,
                'OS_INTERFACE': 'public',
                # The newest that every osc-placement knows.
                'OS_PLACEMENT_API_VERSION': '1.29'}

    def identity(self) -> adapter.Adapter:
        """The administrator's access to keystone's REST API."""
        # A token of its own: who makes the catalog has none that shows it.
        return adapter.Adapter(
            self.new_session(), service_type='identity', interface='public',
            region_name=config.REGION)

    def placement(self) -> adapter.Adapter:
        """The administrator's access to placement's REST API, at 1.36."""
        return self.rest('placement', default_microversion='1.36')

    def nova(self) -> adapter.Adapter:
        """The administrator's access to nova's REST API, at 2.41.

        From 2.41 on an aggregate shows its UUID.
        """
        return self.rest('compute', default_microversion='2.41')

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run a client of this Python environment as administrator.

        :returns: its exit status, standard output and standard error
        """
        program = self.programs / argv[0]
        if not program.exists():
            return 127, '', f'{program} is not installed\n'
        try:
            done = subprocess.run(
                [program, *argv[1:]], capture_output=True, text=True,
                stdin=subprocess.DEVNULL, timeout=CLIENT_TIMEOUT,
                cwd=self.config.directory, start_new_session=True,
                env={**processes.clean_environment(), **self.environment()})
        except subprocess.TimeoutExpired as exc:
            return 124, '', f'{exc}\n'
        return done.returncode, done.stdout, done.stderr

    def rest(self, service: str, **options: str) -> adapter.Adapter:
        """The administrator's access to a service of the catalog."""
        return adapter.Adapter(
            self._session, service_type=service, interface='public',
            region_name=config.REGION, **options)

    @functools.cached_property
    def _session(self) -> session.Session:
        return self.new_session()

    def new_session(self, username: str = 'admin',
                    project: str = 'admin') -> session.Session:
        """Log a user in, whose password is as everyone's here."""
        plugin = v3.Password(
            self.config.auth_url, username=username,
            password=self.config.password, project_name=project,
            user_domain_id='default', project_domain_id='default')
        http = requests.Session()
        # The machine's proxy settings are not for the loopback interface.
        http.trust_env = False
        return session.Session(plugin, session=http)
