# SPDX-License-Identifier: Apache-2.0
"""A nova-api without this package, next to the cloud's that have it.

It has the same configuration files and databases. Its Python environment is a
folder of links to the cloud's packages except this package, so that the
cloud's environment is never changed, even if a test is killed.
"""

import configparser
import pathlib
import subprocess

import fixtures

from tests.cloud import cloud
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs

NAME = 'nova-api-stock'
PACKAGE = 'nova_aggregate_mirror'


class StockNova(fixtures.Fixture):
    """A nova-api without this package, with the endpoint ``url``.

    It is a single process, whose placement client has a known state.
    """

    def __init__(self, running: cloud.Cloud) -> None:
        super().__init__()
        self._cloud = running

    def _setUp(self) -> None:
        state = self._cloud.state
        self._create_environment()
        port, = loopback.free_ports(1)
        self.url = 'http://127.0.0.1:%s/v2.1' % port
        parser = configparser.RawConfigParser()
        parser.read(state.config.path('controller-1.conf'))
        for section in parser.sections():
            if section.startswith('aggregate_mirror'):
                parser.remove_section(section)
        with open(state.config.path('stock.conf'), 'w') as output:
            parser.write(output)
        variables = {
            name: value.replace('controller-1.conf', 'stock.conf')
            for name, value in state.process('nova-api-1').environment.items()}
        _python, *argv = programs.waitress('nova.wsgi.osapi_compute', port, 2)
        process = processes.Process(NAME, [str(self._python), *argv],
                                    state.log(NAME), variables, port, self.url)
        self.addCleanup(state.stop, process)
        state.start(process).wait_ready()

    def has_package(self) -> bool:
        """Check whether its Python finds this package."""
        look = subprocess.run(
            [self._python, '-P', '-c', 'from importlib import metadata; '
             'print(*metadata.distributions(name=%r))' % PACKAGE],
            check=True, text=True, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, env=processes.clean_environment())
        return bool(look.stdout.strip())

    def _create_environment(self) -> None:
        source = self._cloud.programs
        target = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        subprocess.run(
            [source / 'python', '-m', 'venv', '--without-pip', target],
            check=True, capture_output=True, stdin=subprocess.DEVNULL)
        packages, = source.parent.glob('lib/python*/site-packages')
        for path in packages.iterdir():
            if PACKAGE not in path.name:
                (target / packages.relative_to(source.parent) / path.name
                 ).symlink_to(path)
        self._python = target / 'bin' / 'python'
