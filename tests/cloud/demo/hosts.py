# SPDX-License-Identifier: Apache-2.0
"""The small cloud with compute hosts that run servers, without a broker."""

from collections import abc
import contextlib

from tests.cloud import cloud
from tests.cloud import environment
from tests.cloud import loopback
from tests.cloud import programs
from tests.cloud import small

HOSTS = ('cmp-1', 'cmp-2', 'cmp-3', 'cmp-4', 'cmp-5')


@contextlib.contextmanager
def running() -> abc.Iterator[cloud.Cloud]:
    """Start a cloud whose nova-api process has all services of nova."""
    others, = loopback.free_ports(1)
    url = 'http://127.0.0.1:%d' % others

    def server(module: str, port: int, threads: int) -> list[str]:
        if module != 'nova.wsgi.osapi_compute':
            return programs.waitress(module, port, threads)
        return programs.child('nova_services', str(port), str(others), *HOSTS)

    with small.running(
            server=server, tell=environment.tell,
            nova_options={
                'DEFAULT': {'compute_driver': 'fake.Restartable'},
                'neutron': {'endpoint_override': url, 'auth_type': 'none'},
                'glance': {'endpoint_override': url},
                'scheduler': {'limit_tenants_to_placement_aggregate': 'True'}}
    ) as started:
        started.nova().post('/flavors', json={'flavor': {
            'id': '1', 'name': 'tiny', 'vcpus': 1, 'ram': 64, 'disk': 1}})
        yield started
