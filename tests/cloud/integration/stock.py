# SPDX-License-Identifier: Apache-2.0
"""A nova-api without this package, next to the cloud's that have it.

It has the same configuration files and databases. Its Python environment is a
folder of links to the cloud's packages except this package, so that the
cloud's environment is never changed, even if a test is killed.
"""

import configparser
import pathlib
import re
import subprocess

import fixtures

from tests.cloud import cloud
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import services

NAME = 'nova-api-stock'
REGION = 'Stock'
PACKAGE = 'nova_aggregate_mirror'
LOOK = ('import importlib.metadata as found; '
        'print(found.version("%s"))' % PACKAGE)


class StockNova(fixtures.Fixture):
    """A nova-api without this package, with its own region.

    The agents are stopped meanwhile: they would repair what it does. They are
    started at the end, and repair it.

    :param workers: its processes; each has its own memory of placement
    """

    def __init__(self, running: cloud.Cloud,
                 workers: int = services.WORKERS) -> None:
        super().__init__()
        self._cloud = running
        self._workers = workers

    def _setUp(self) -> None:
        state = self._cloud.state
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.python = environment(state.programs, folder)
        port, = loopback.free_ports(1)
        self.cloud = _StockCloud(state, 'http://127.0.0.1:%s/v2.1' % port)
        self.cloud.forked = self._cloud.forked
        for name in ('agent-1', 'agent-2'):
            self.addCleanup(self._cloud.start, name)
            processes.stop([self._cloud.process(name)])
        self._serve(port)
        self._publish()

    def has_package(self) -> bool:
        """Check whether its Python finds this package."""
        return has_package(self.python)

    def _serve(self, port: int) -> None:
        state = self._cloud.state
        other = state.process('nova-api-1')
        write_conf(state.config.path('controller-1.conf'),
                   state.config.path('stock.conf'))
        argv = programs.uwsgi(
            'nova.wsgi.osapi_compute', port, self._workers)
        files = 'OS_NOVA_CONFIG_FILES'
        process = processes.Process(
            NAME, [str(self.python), *argv[1:]], state.log(NAME),
            other.environment | {files: other.environment[files].replace(
                'controller-1.conf', 'stock.conf')},
            port, self.cloud.url)
        self.addCleanup(self._forget, process)
        state.start(process).wait_ready()

    def _forget(self, process: processes.Process) -> None:
        processes.stop([process])
        state = self._cloud.state
        state.processes.remove(process)
        state.write()

    def _publish(self) -> None:
        """Register its endpoint, as the compute service of its region."""
        identity = self._cloud.identity()
        identity.put('/regions/%s' % REGION, json={'region': {}})
        self.addCleanup(identity.delete, '/regions/%s' % REGION)
        service, = identity.get('/services?type=compute').json()['services']
        made = identity.post('/endpoints', json={'endpoint': {
            'service_id': service['id'], 'interface': 'public',
            'url': self.cloud.url, 'region_id': REGION}}).json()['endpoint']
        self.addCleanup(identity.delete, '/endpoints/%s' % made['id'])


class _StockCloud(cloud.Cloud):

    def __init__(self, *arguments: object) -> None:
        state, self.url = arguments
        super().__init__(state)
        self._url = self.url


def has_package(python: pathlib.Path) -> bool:
    """Check whether a Python finds this package.

    :raises CloudError: when that Python does not run
    """
    found = subprocess.run([python, '-P', '-c', LOOK], capture_output=True,
                           text=True, stdin=subprocess.DEVNULL,
                           env=processes.clean_environment())
    if found.returncode and 'PackageNotFoundError' not in found.stderr:
        raise processes.CloudError('%s: %s' % (python, found.stderr[-500:]))
    return found.returncode == 0


def environment(programs: str, folder: pathlib.Path) -> pathlib.Path:
    """Create an environment without this package; return its Python."""
    python = pathlib.Path(programs) / 'python'
    made = folder / 'environment'
    subprocess.run([python, '-m', 'venv', '--without-pip', made], check=True,
                   capture_output=True, stdin=subprocess.DEVNULL)
    packages, = python.parent.parent.glob('lib/python*/site-packages')
    target = made / packages.relative_to(python.parent.parent)
    for each in packages.iterdir():
        if not re.search(PACKAGE, each.name):
            (target / each.name).symlink_to(each)
    # The cloud's own script would run with the cloud's Python.
    uwsgi = (python.parent / 'uwsgi').read_text()
    (made / 'bin' / 'uwsgi').write_text(
        '#!%s/bin/python\n' % made + uwsgi.partition('\n')[2])
    (made / 'bin' / 'uwsgi').chmod(0o755)
    return made / 'bin' / 'python'


def write_conf(source: str, target: str) -> None:
    """Write a configuration file without this package's sections."""
    parser = configparser.RawConfigParser()
    parser.read(source)
    for section in parser.sections():
        if section.startswith('aggregate_mirror'):
            parser.remove_section(section)
    with open(target, 'w') as output:
        parser.write(output)
