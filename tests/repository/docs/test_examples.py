# SPDX-License-Identifier: Apache-2.0
"""The documentation's examples work when a reader types them.

The tests need the environment of ``tools/demo --stock``; they install the
package into it and remove it again. ``tox -e docs-examples`` does all of that.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
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
    'admin/scheduling')
REMOVAL = 'Remove it'
ACTIVE = 'Attached to nova\'s aggregate operations'
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
        from tests.cloud import cloud
        from tests.cloud import statefile
        self.openrc = pathlib.Path(openrc)
        self.cloud = cloud.Cloud(statefile.State.read(self.openrc.parent))
        return self

    def __exit__(self, *exc_info):
        self._process.send_signal(signal.SIGINT)
        self._process.stdout.read()
        self._process.wait()

    def shell(self):
        """Open a terminal."""
        return shell.Shell(self.openrc, self.cloud.config.ports['agent-1'])

    def different(self):
        """List the compute nodes whose aggregates differ in placement."""
        from tests.cloud import observer
        rows = observer.Observer(self.cloud, {}).compare(self.cloud.nodes())
        return [row.node.name for row in rows if not row.equal]

    def log(self):
        """Return what nova-api has logged."""
        path = pathlib.Path(self.cloud.state.log('nova-api-1'))
        return path.read_text(errors='replace')


@unittest.skipIf(MISSING, NEEDED)
class TestInstallPage(unittest.TestCase):

    def test_a_newcomer(self):
        """The install page ends the drift of a stock cloud, and uninstalls."""
        remove_package()
        self.addCleanup(remove_package)
        with Demonstration() as demonstration:
            terminal = demonstration.shell()
            self.assertNotIn(ACTIVE, demonstration.log())
            readme = (shell.ROOT / 'README.rst').read_text()
            rows = re.findall(r'^ +(\d .+ (?:ok|WRONG))$', readme,
                              re.MULTILINE)
            said = [line for line in demonstration.said
                    if line[:1].isdigit() and line.endswith((' ok', ' WRONG'))]
            self.assertEqual(rows, said[:len(rows)])

            self.assertNotEqual([], demonstration.different())
            output = terminal.type([
                page.readme('Look at your own cloud', 0, 7)])
            self.assertIn('stale', output)
            # Nothing is restarted or mirrored yet.
            terminal.type([page.readme('Install it', 0, 1, 2)])
            self.assertNotIn(ACTIVE, demonstration.log())
            output = terminal.type(install_examples(removal=False))
            self.assertEqual([], demonstration.different(), output)
            self.assertIn(ACTIVE, demonstration.log())

            terminal.type(install_examples(removal=True))
            self.assertFalse(is_installed())
            self.assertEqual(
                1, demonstration.log().count(ACTIVE),
                'nova-api has loaded the package once, and not again')


def ordered():
    """List the pages that are followed on one cloud, in order."""
    others = [name for name in page.pages() if name != INSTALL]
    found = [name for name in others
             if any(not one.not_run for one in page.examples(name))]
    return [name for name in ORDER if name in found] + [
        name for name in found if name not in ORDER]


def follow(name):
    def test(self):
        shell.Shell(self.openrc, self.metrics_port).type(page.examples(name))

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
        from tests.cloud.demo import terminal
        from tests.cloud import small
        remove_package()
        cls.addClassCleanup(remove_package)
        pip('install', '-c', os.environ.get(
            'TOX_CONSTRAINTS_FILE', str(shell.ROOT / 'constraints.txt')),
            '%s[agent,osc]' % shell.ROOT)
        running = cls.enterClassContext(small.running())
        # Nova-compute reports resources of a host.
        for node in running.seed_hosts(['cmp-1', 'cmp-2', 'cmp-3', 'cmp-4']):
            running.placement().put(
                '/resource_providers/%s/inventories' % node.uuid,
                json={'resource_provider_generation': 0,
                      'inventories': {'VCPU': {'total': 8}}})
        running.seed_hosts(['ironic-1'], nodes_per_host=3)
        services = terminal.Services(running)
        serving = threading.Thread(target=services.serve, daemon=True)
        serving.start()
        cls.addClassCleanup(serving.join)
        cls.addClassCleanup(services.close)
        refused = services.run(['start', terminal.AGENT])
        if refused:
            raise AssertionError(refused)
        cls.openrc = terminal.write_openrc(running)
        cls.metrics_port = running.config.ports['agent-1']
        # DevStack has such a flavor, too.
        running.nova().post('/flavors', json={'flavor': {
            'name': 'm1.tiny', 'vcpus': 1, 'ram': 512, 'disk': 1}})
