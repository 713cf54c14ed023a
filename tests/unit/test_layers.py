# SPDX-License-Identifier: Apache-2.0
"""Which module may touch what outside of this package."""

import ast
import pathlib
import re
import subprocess
import sys

import testtools

import nova_aggregate_mirror

PACKAGE = pathlib.Path(nova_aggregate_mirror.__file__).parent

ALLOWED = {
    'nova': {'hooks.py', 'nova_interface.py', 'nova_plugin.py',
             'source/cells.py', 'source/database.py', 'scheduler/',
             'cmd/agent.py', 'cmd/configuration.py', 'cmd/manage.py',
             'cmd/status.py'},
    'openstack': {'placement/', 'http/errors.py'},
    'keystoneauth1': {'http/', 'checks/discovery.py'},
    'requests': {'http/', 'placement/'},
    'novaclient': {'osc/', 'source/api.py'},
    'osc_lib': {'osc/'},
    'cliff': {'osc/'},
    'sqlalchemy': {'journal/db/', 'source/'},
    'alembic': {'journal/db/'},
    'oslo_upgradecheck': {'checks/', 'cmd/status.py'},
    'eventlet': set(),
    'prometheus_client': {'metrics.py'},
    'threading': {'agent.py', 'cmd/agent.py', 'cmd/sync_aggregates.py',
                  'journal/db/transactions.py', 'metrics.py', 'mirror.py',
                  'placement/client.py', 'source/cells.py'},
    'fcntl': set(),
    'concurrent': {'placement/parallel.py'},
    'tqdm': {'progress.py'},
    'jinja2': {'page/render.py'},
}


def imports(path):
    """Every module that a file imports, and whether at its top level."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            yield name, node in tree.body


class TestLayers(testtools.TestCase):

    def files(self):
        return sorted(PACKAGE.rglob('*.py'))

    def test_only_named_modules_touch_the_outside(self):
        """Each outside party is met in modules that a reader can list."""
        for path in self.files():
            name = str(path.relative_to(PACKAGE))
            for module, _top in imports(path):
                root = module.partition('.')[0]
                allowed = ALLOWED.get(root)
                if allowed is not None and not any(
                        name == one or (one.endswith('/')
                                        and name.startswith(one))
                        for one in allowed):
                    self.fail('%s imports %s' % (name, module))

    def test_entry_module_needs_the_standard_library_only(self):
        """nova-api can load it, whatever else is broken or missing."""
        found = {module.partition('.')[0] for module, top in
                 imports(PACKAGE / 'nova_plugin.py') if top}
        self.assertLessEqual(found, set(sys.stdlib_module_names))

    def test_plugin_of_the_client_needs_the_standard_library_only(self):
        """Every openstack command imports it, on any subject."""
        found = {module.partition('.')[0] for module, top in
                 imports(PACKAGE / 'osc' / 'plugin.py') if top}
        self.assertLessEqual(found, set(sys.stdlib_module_names))

    def test_client_needs_no_nova(self):
        """Its commands are imported where nova is not installed."""
        modules = ['nova_aggregate_mirror.osc.' + path.stem
                   for path in sorted((PACKAGE / 'osc').glob('*.py'))]
        subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'import sys; sys.modules["nova"] = None; import '
             + ', '.join(modules)], check=True)

    def test_plan_does_no_input_or_output(self):
        """It is pure: the same arguments give the same plan."""
        self.assert_pure('plan.py')

    def test_schedule_does_no_input_or_output(self):
        """It is pure: the clock is an argument."""
        self.assert_pure('schedule.py')

    def assert_pure(self, name):
        found = {module for module, _top in imports(PACKAGE / name)}
        self.assertEqual({'collections.abc', 'dataclasses',
                          'nova_aggregate_mirror'}, found)

    def test_constraints_do_no_input_or_output(self):
        """The query and the guard must decide alike, wherever they are."""
        found = {module for module, _top in imports(
            PACKAGE / 'scheduler' / 'constraints.py')}
        self.assertEqual({'bisect', 'collections.abc', 'dataclasses',
                          'urllib'}, found)

    def test_everything_is_caught_in_few_places(self):
        """Each of these places gives its reason."""
        found = [path.name for path in self.files()
                 for line in path.read_text().splitlines()
                 if re.match(r'\s*except( Base| )Exception', line)
                 or re.match(r'\s*except:', line)]
        self.assertEqual(['agent.py', 'hooks.py', 'nova_plugin.py',
                          'narrowing.py'], found)
