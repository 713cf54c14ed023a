# SPDX-License-Identifier: Apache-2.0
"""Which folder may import which, and which may access the outside."""

import ast
import graphlib
import itertools
import pathlib
import re
import subprocess
import sys

import testtools

import nova_aggregate_mirror

PACKAGE = pathlib.Path(nova_aggregate_mirror.__file__).parent
FILES = sorted(PACKAGE.rglob('*.py'))
PAGE = PACKAGE.parent / 'doc' / 'source' / 'contributor' / 'index.rst'

# From the top down: a folder imports from itself and from lower layers.
LAYERS = (
    ('nova_plugin', 'cmd', 'osc'),
    ('checks', 'agent', 'html_report'),
    ('console',),
    ('hooks', 'explain', 'audit'),
    ('scheduler',),
    ('reconcile',),
    ('journal', 'source', 'placement'),
    ('http',),
    ('limits', 'option_values'),
    ('commands', 'conf', 'exit_status', 'plugins', 'plurals',
     'nova_signatures'),
    ('accounts', 'dates', 'exceptions', 'terminal_tables', 'uuids'),
    ('causes', 'printable'),
)

ALLOWED = {
    'nova': {'hooks/', 'nova_plugin.py', 'source/cells.py',
             'source/connections.py', 'scheduler/', 'explain/', 'cmd/',
             'audit/readers.py'},
    'openstack': {'placement/', 'http/library_errors.py'},
    'keystoneauth1': {'http/'},
    'requests': {'http/', 'placement/'},
    'osc_lib': {'osc/'},
    'cliff': {'osc/'},
    'sqlalchemy': {'audit/readers.py', 'journal/', 'limits/engines.py',
                   'source/'},
    'alembic': {'journal/db/'},
    'oslo_upgradecheck': {'checks/', 'cmd/status.py'},
    'eventlet': set(),
    'prometheus_client': {'agent/'},
    'threading': {'agent/', 'cmd/agent.py', 'hooks/mirror.py',
                  'journal/db/engine.py', 'placement/connection.py',
                  'placement/isolation.py', 'reconcile/outcome.py',
                  'reconcile/provider_writes.py', 'source/cell_threads.py',
                  'source/connections.py'},
    'fcntl': set(),
    'concurrent': {'placement/workers.py'},
    'jinja2': {'html_report/page.py'},
    'yaml': {'console/cli.py'},
}

NAMES = {
    'nova.api.openstack.api_version_request': 'whether a server is unpinned',
    'nova.availability_zones': 'the zone of ZONE:HOST',
    'nova.block_device': 'whether an image boots from a volume',
    'nova.compute.utils': 'whether a stored request boots from a volume',
    'nova.compute.vm_states': 'the operation that a state suggests',
    'nova.network.neutron': 'the resources of ports',
    'nova.objects.instance_pci_requests': 'devices in what a filter logs',
    'nova.pci.request': 'the devices of a flavor',
    'nova.scheduler.host_manager': 'the host states, filters and weighers',
    'nova.scheduler.manager': 'what a server takes of its host',
    'nova.servicegroup': 'which services are up',
    'nova.virt.hardware': 'the NUMA topology of a flavor',
}
"""Names of nova that only an explanation imports, and what each makes."""

PATCHING = {'nova', 'eventlet', 'oslo_service'}
"""What may patch the standard library when it is imported."""

PURE = {
    # The same nova gives the same changes.
    'reconcile/outcome': (),
    # The clock is an argument.
    'limits/backoff': (
        'itertools', 'math', 'nova_aggregate_mirror.limits'),
    # What was explained is shown, and nothing is asked.
    'explain/explanation explain/placement_query '
    'explain/conditions explain/reasons explain/reason_table': (
        're', 'shlex', 'textwrap', 'nova_aggregate_mirror.explain',
        'nova_aggregate_mirror.reconcile', 'nova_aggregate_mirror.scheduler'),
    # The query and the guard decide alike, in any process.
    'scheduler/constraints scheduler/filter_table audit/rules '
    'source/__init__': (
        'bisect', 'functools', 'time', 'urllib', 'oslo_config',
        'nova_aggregate_mirror.audit', 'nova_aggregate_mirror.scheduler',
        'nova_aggregate_mirror.source'),
}
"""Modules that are pure, and what they may import."""


def imports(path):
    """Yield each imported module, and whether it is a top-level import."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in tree.body
        elif isinstance(node, ast.ImportFrom):
            yield node.module, node in tree.body


def modules():
    """Return each module of the package with its imports from the package."""
    paths = {}
    for path in PACKAGE.rglob('*.py'):
        parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
        paths['.'.join(parts).removesuffix('.__init__')] = path
    found = {}
    for module, path in paths.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = '%s.%s' % (node.module, alias.name)
                    names.add(name if name in paths else node.module)
        found[module] = names & paths.keys() - {module}
    return found


def folder(module):
    """Return the top-level folder or module of a module."""
    return module.split('.')[1] if '.' in module else ''


class TestLayers(testtools.TestCase):

    def test_folders_import_downwards_only(self):
        """Each imports from itself and from the layers below it."""
        layer = {}
        for number, names in enumerate(LAYERS):
            layer |= dict.fromkeys(names, number)
        for module, others in modules().items():
            own = folder(module)
            for other in map(folder, others):
                if own and own != other:
                    self.assertLess(layer[own], layer[other],
                                    '%s imports %s' % (module, other))
                    # These judge a sync as commands do, and display nothing.
                    self.assertFalse(own in ('agent', 'checks')
                                     and other == 'console', module)

    def test_page_lists_the_layers_in_order(self):
        """The contributor page has each folder and module, from the top."""
        table = PAGE.read_text().partition('* - Folder or module')[2]
        rows = re.findall(r'^   \* - (``.*)$', table, re.M)
        self.assertEqual(list(itertools.chain(*LAYERS)),
                         re.findall(r'``(\w+)``', ' '.join(rows)))

    def test_no_modules_import_each_other_in_a_circle(self):
        """Imports have no cycles."""
        list(graphlib.TopologicalSorter(modules()).static_order())

    def test_modules_are_short(self):
        """A longer module gives its reason in its header."""
        for path in FILES:
            text = path.read_text()
            if len(text.splitlines()) > 250:
                self.assertIn('ong because', text.split('"""')[1], path.name)

    def test_only_named_modules_touch_the_outside(self):
        """Each external dependency is confined to a list of modules."""
        for path in FILES:
            name = str(path.relative_to(PACKAGE))
            for module, _top in imports(path):
                allowed = ALLOWED.get(module.partition('.')[0], {name})
                self.assertTrue(name.startswith(tuple(allowed)),
                                '%s imports %s' % (name, module))

    def test_threads_import_nothing_of_nova(self):
        """No function does, but in nova-api and in commands.

        With nova comes eventlet, and a thread that imports it may never be
        joined.
        """
        modules = set()
        for path in FILES:
            for module, top in imports(path):
                if not top and module.partition('.')[0] in PATCHING:
                    modules.add(str(path.relative_to(PACKAGE)))
        self.assertEqual({'nova_plugin.py', 'explain/request.py'}, modules)

    def test_names_that_only_an_explanation_imports(self):
        """Each is in a table; nova-conductor's are none, nor nova-compute's.

        Whatever is renamed there breaks only explanations.
        """
        found = {True: set(), False: set()}
        for path in FILES:
            parts = path.relative_to(PACKAGE).parts
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    found[parts[0] == 'explain'] |= {
                        '%s.%s' % (node.module, alias.name)
                        for alias in node.names
                        if node.module.partition('.')[0] == 'nova'}
        self.assertEqual(NAMES.keys(), found[True] - found[False])
        self.assertLessEqual(
            {name for name in found[True]
             if name.startswith(('nova.conductor', 'nova.compute'))},
            # Of the last, the function that parses ZONE:HOST.
            {'nova.compute.utils', 'nova.compute.vm_states',
             'nova.compute.api'})

    def test_command_that_explains_reads_nothing(self):
        """It parses arguments and shows the answer."""
        for path in PACKAGE.glob('cmd/explain*.py'):
            for name, _top in imports(path):
                self.assertNotRegex(
                    name, r'^nova\.|\.(http|placement|journal|source)\b')

    def test_plugins_need_the_standard_library_only(self):
        """nova-api can load its own even if others are broken or missing.

        Every openstack command imports that of the client.
        """
        for path in 'nova_plugin.py', 'osc/plugin.py':
            found = {module.partition('.')[0] for module, top in
                     imports(PACKAGE / path) if top}
            self.assertLessEqual(found, set(sys.stdlib_module_names))

    def test_client_needs_no_nova(self):
        """Its commands are imported where nova is not installed."""
        modules = ['nova_aggregate_mirror.osc.' + path.stem
                   for path in sorted((PACKAGE / 'osc').glob('*.py'))]
        subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'import sys; sys.modules["nova"] = None; import '
             + ', '.join(modules)], check=True)

    def test_pure_modules_do_no_input_or_output(self):
        """The same arguments give the same results."""
        for names, allowed in PURE.items():
            for name in names.split():
                modules = {module for module, _top in imports(
                    PACKAGE / (name + '.py'))}
                self.assertLessEqual(modules, {
                    'collections', 'dataclasses', 'typing',
                    'nova_aggregate_mirror', *allowed}, name)

    def test_everything_is_caught_in_few_places(self):
        """Each of these places gives its reason."""
        found = []
        for path in FILES:
            lines = re.findall(r'(?m)^ *except(?: Exception| BaseException|:)',
                               path.read_text())
            found += [path.name] * len(lines)
        self.assertEqual([
            'metrics_server.py', 'service.py', 'nova.py', 'start.py',
            'host_states.py', 'rehearsal.py', 'attach.py', 'attach.py',
            'nova_plugin.py', 'request_filters.py'], found)
