# SPDX-License-Identifier: Apache-2.0
"""The documentation's examples work when a reader types them.

The tests need the environment of ``tools/demo --stock``; they install the
package into it and remove it again. ``tox -e docs-examples`` does all of that.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import unittest

from tests.repository.docs import page
from tests.repository.docs import shell

PACKAGE = 'nova-aggregate-mirror'
INSTALL = 'install/virtual-environment'
# A page relies on what earlier pages have left, and leaves something itself.
# Pages that are not listed come last.
ORDER = (
    'cli/nova-aggregate-mirror-manage',
    'cli/nova-aggregate-mirror-status',
    'cli/openstack-aggregate-mirror',
    'user/mirroring',
    'admin/misplaced-servers',
    'admin/no-valid-host',
    'admin/operations',
    'admin/deployment',
    'admin/journal',
    'admin/runbook',
    'admin/scheduling',
)
REMOVAL = 'Remove it'
ACTIVE = 'Host aggregates are mirrored to placement by ' + PACKAGE
MISSING = [name for name in (
    'keystone', 'nova', 'novaclient', 'openstackclient', 'osc_placement',
    'placement', 'waitress')
    if importlib.util.find_spec(name) is None] + [
        name for name in ('bash', 'curl') if not shutil.which(name)]
NEEDED = 'no cloud without ' + ', '.join(MISSING)


def is_installed():
    """Check whether the environment has the package, not the checkout."""
    importlib.invalidate_caches()
    return any(importlib.metadata.distributions(
        name=PACKAGE, path=[sysconfig.get_path('purelib')]))


def pip(*arguments):
    with tempfile.TemporaryDirectory() as directory:
        options = shell.build_options(pathlib.Path(directory))
        subprocess.run(
            [sys.executable, '-m', 'pip', '--quiet',
             '--disable-pip-version-check', *arguments],
            check=True, stdin=subprocess.DEVNULL,
            env={**os.environ, 'DIST_EXTRA_CONFIG': str(options)})


def remove_package():
    if is_installed():
        pip('uninstall', '--yes', PACKAGE)


def install_examples(removal):
    """Return the install page's examples, before or in its last section."""
    return [one for one in page.examples(INSTALL)
            if (one.section == REMOVAL) == removal]


def different(environment):
    """List the compute nodes whose aggregates differ in placement."""
    from keystoneauth1 import adapter
    from keystoneauth1.identity import v3
    from keystoneauth1 import session
    client = session.Session(v3.Password(
        environment['OS_AUTH_URL'], username='admin',
        password=environment['OS_PASSWORD'], project_name='admin',
        user_domain_id='default', project_domain_id='default'))
    # The machine's proxy settings do not apply to the loopback interface.
    client.session.trust_env = False
    # From 2.53 on, the ID of a hypervisor is its UUID.
    nova = adapter.Adapter(client, service_type='compute',
                           default_microversion='2.53')
    placement = adapter.Adapter(client, service_type='placement',
                                default_microversion='1.36')
    hosts = {one['uuid']: one['hosts'] for one in
             nova.get('/os-aggregates').json()['aggregates']}
    found = []
    for node in nova.get('/os-hypervisors/detail').json()['hypervisors']:
        wanted = {uuid for uuid, members in hosts.items()
                  if node['service']['host'] in members}
        mirrored = placement.get(
            '/resource_providers/%s/aggregates' % node['id']).json()
        if wanted != set(mirrored['aggregates']) & set(hosts):
            found.append(node['hypervisor_hostname'])
    return found


class Demonstration:
    """A run of ``./tools/demo --keep --stock``, in this environment."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'tests.cloud.demo.story', '--keep',
             '--stock'],
            cwd=shell.ROOT, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = []
        for line in self._process.stdout:
            self.said.append(line.strip())
            if line.startswith('Ctrl-C '):
                break
        else:
            self.__exit__()
            raise AssertionError('\n'.join(self.said))
        openrc, = [line.removeprefix('. ') for line in self.said
                   if line.startswith('. /')]
        self.openrc = pathlib.Path(openrc)
        return self

    def __exit__(self, *exc_info):
        self._process.send_signal(signal.SIGINT)
        self._process.stdout.read()
        self._process.wait()

    def environment(self):
        """Return the variables of a terminal."""
        exports = [line.removeprefix('export ').partition('=')
                   for line in self.openrc.read_text().splitlines()]
        return {name: value for name, _equals, value in exports}

    def metrics_port(self):
        line, = [line for line in self.said if line.startswith('Metrics:')]
        return line.split()[2].rstrip(',')

    def log(self, name):
        return (self.openrc.parent / 'log' / name).read_text(errors='replace')


@unittest.skipIf(MISSING, NEEDED)
class TestInstallPage(unittest.TestCase):

    def test_a_newcomer(self):
        """The install page ends the drift of a stock cloud, and uninstalls."""
        remove_package()
        self.addCleanup(remove_package)
        with Demonstration() as demonstration:
            terminal = shell.Shell(demonstration.openrc, {
                '9184': demonstration.metrics_port()})
            self.assertNotIn(ACTIVE, demonstration.log('nova-api-1.log'))

            self.assertNotEqual([], different(demonstration.environment()))
            said = terminal.type(install_examples(removal=False))
            self.assertEqual(
                [], different(demonstration.environment()), said)
            self.assertIn(ACTIVE, demonstration.log('nova-api-1.log'))

            terminal.type(install_examples(removal=True))
            self.assertFalse(is_installed())
            self.assertEqual(1, demonstration.log('nova-api-1.log').count(
                ACTIVE), 'nova-api has loaded the package once, and not again')


def ordered():
    """List the pages that are followed on one cloud, in order."""
    found = [name for name in page.pages() if name != INSTALL and any(
        not one.not_run for one in page.examples(name))]
    return [name for name in ORDER if name in found] + [
        name for name in found if name not in ORDER]


def follow(name):
    def test(self):
        terminal = shell.Shell(self.openrc, {'9184': self.metrics_port})
        terminal.type(page.examples(name))

    test.__doc__ = '%s.rst, from its first example to its last.' % name
    return test


@unittest.skipIf(MISSING, NEEDED)
class TestOtherPages(unittest.TestCase):
    """Other pages on a cloud as the install page leaves it.

    For each page, the demonstration's hosts are in no aggregate, or in the
    aggregates that earlier pages have left.
    """

    for _number, _page in enumerate(ordered(), 1):
        locals()['test_%02d_%s' % (
            _number, _page.replace('/', '_'))] = follow(_page)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        from tests.cloud.demo import steps
        from tests.cloud.demo import terminal
        from tests.cloud import small
        remove_package()
        cls.addClassCleanup(remove_package)
        pip('install', '-c', os.environ.get(
            'TOX_CONSTRAINTS_FILE', str(shell.ROOT / 'constraints.txt')),
            '%s[agent,osc]' % shell.ROOT)
        running = cls.enterClassContext(small.running())
        steps.Scene(running, stock=False, verbose=False)
        services = terminal.Services(running)
        serving = threading.Thread(target=services.serve, daemon=True)
        serving.start()
        cls.addClassCleanup(serving.join)
        cls.addClassCleanup(services.close)
        refused = services.run(['start', terminal.AGENT])
        if refused:
            raise AssertionError(refused)
        cls.openrc = terminal.write_openrc(running)
        # DevStack has such a flavor, too.
        running.nova().post('/flavors', json={'flavor': {
            'name': 'm1.tiny', 'vcpus': 1, 'ram': 512, 'disk': 1}})
        cls.metrics_port = str(running.config.ports['agent-1'])
