# SPDX-License-Identifier: Apache-2.0
"""An administrator's access to a cloud: REST APIs and real clients."""

from collections import abc
import functools
import pathlib
import subprocess
import sys
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1.identity import v3
from keystoneauth1 import session

from tests.cloud import config
from tests.cloud import forks
from tests.cloud import loopback
from tests.cloud import processes

CONFLICTS = 10


def create(rest: adapter.Adapter, url: str, **document: Any
           ) -> dict[str, Any]:
    """Create a document's only kind; return what the service shows of it."""
    kind, = document
    return rest.post(url, json=document).json()[kind]


class Access:
    """Access to a cloud as its administrator."""

    config: config.Config
    programs = pathlib.Path(sys.executable).parent
    """The directory of the clients."""
    forked: forks.Clients | None = None
    """Runs openstack and nova faster than their programs."""

    def environment(self) -> dict[str, str]:
        """Return the variables that make clients act as administrator."""
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
                # The newest version that every supported osc-placement has.
                'OS_PLACEMENT_API_VERSION': '1.29'}

    def identity(self) -> adapter.Adapter:
        """Return the administrator's adapter for keystone's REST API."""
        # It needs its own token: a token issued before the catalog is filled
        # does not contain the catalog.
        return adapter.Adapter(self.new_session(), service_type='identity',
                               interface='public', region_name=config.REGION)

    def placement(self) -> adapter.Adapter:
        """Return the administrator's adapter for placement, at 1.36."""
        return self.rest('placement', default_microversion='1.36')

    def associations(self, provider: str) -> frozenset[str] | None:
        """Return a provider's aggregates in placement; None without it."""
        answer = self.placement().get(
            '/resource_providers/%s/aggregates' % provider, raise_exc=False)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return frozenset(answer.json()['aggregates'])

    def change_aggregates(
            self, provider: str,
            change: abc.Callable[[frozenset[str]], abc.Iterable[str]]) -> None:
        """Change a provider's aggregates in placement, as other tools do."""
        def changed(values: dict[str, Any]) -> dict[str, Any]:
            after = change(frozenset(values['aggregates']))
            return {'aggregates': sorted(after)}

        self.change_provider(provider, 'aggregates', changed)

    def change_provider(
            self, provider: str, part: str,
            change: abc.Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change values of a part of a provider, such as ``traits``."""
        placement = self.placement()
        url = '/resource_providers/%s/%s' % (provider, part)
        for _attempt in range(CONFLICTS):
            values = placement.get(url).json()
            answer = placement.put(
                url, json={**values, **change(values)}, raise_exc=False)
            # The agent or nova-compute may write at the same time.
            if answer.status_code != 409:
                answer.raise_for_status()
                return
        raise processes.CloudError(
            'placement refused %d changes of %s: %s' % (
                CONFLICTS, url, answer.text))

    def create_image(self, **values: str) -> str:
        """Create an image without data; return its ID."""
        image: str = self.rest('image').post('/v2/images', json={
            'disk_format': 'raw', 'container_format': 'bare',
            **values}).json()['id']
        return image

    def fill_image(self, image: str) -> None:
        """Upload the data of an image, a KiB."""
        self.rest('image').put(
            '/v2/images/%s/file' % image, data=b'\0' * 1024,
            headers={'Content-Type': 'application/octet-stream'})

    def run(self, *argv: str) -> tuple[int, str, str]:
        """Run a client as administrator; return its status and outputs."""
        environment = {**processes.clean_environment(), **self.environment()}
        if self.forked and argv[0] in forks.CLIENTS:
            return self.forked.run(argv, environment, self.config.directory)
        program = self.programs / argv[0]
        if not program.exists():
            return 127, '', '%s is not installed\n' % program
        try:
            done = subprocess.run(
                [program, *argv[1:]], capture_output=True, text=True,
                stdin=subprocess.DEVNULL, timeout=forks.TIMEOUT,
                cwd=self.config.directory, start_new_session=True,
                env=environment)
        except subprocess.TimeoutExpired as exc:
            return 124, '', '%s\n' % exc
        return done.returncode, done.stdout, done.stderr

    def rest(self, service: str, **options: str) -> adapter.Adapter:
        """Return the administrator's adapter for a service of the catalog."""
        return adapter.Adapter(
            self._session, service_type=service, interface='public',
            region_name=config.REGION, **options)

    @functools.cached_property
    def _session(self) -> session.Session:
        return self.new_session()

    def new_session(self, username: str = 'admin',
                    project: str = 'admin') -> session.Session:
        """Log in a user; all users share the cloud's password."""
        plugin = v3.Password(
            self.config.auth_url, username=username,
            password=self.config.password, project_name=project,
            user_domain_id='default', project_domain_id='default')
        return session.Session(plugin, session=loopback.session())
