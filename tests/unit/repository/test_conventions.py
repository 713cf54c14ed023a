# SPDX-License-Identifier: Apache-2.0
"""Files that tools of contributors read agree with those of the gate."""

import ast
from collections.abc import Iterator
import configparser
import pathlib
import re

import testtools
import yaml

ROOT = pathlib.Path(__file__).parents[3]


class TestConventions(testtools.TestCase):

    def test_pre_commit_has_the_releases_of_the_gate(self):
        """A commit that passes its hooks passes the style checks."""
        pins = dict(re.findall(
            '^(hacking|bashate)==(.*)$',
            (ROOT / 'constraints.txt').read_text(), re.MULTILINE))
        found = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())
        revisions = {one['repo'].rpartition('/')[2]: one['rev']
                     for one in found['repos']}
        self.assertEqual(pins, {name: revisions[name] for name in pins})

    def test_pre_commit_checks_what_tox_checks(self):
        """The scripts without an extension are named, too."""
        found = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())
        hook, = [hook for one in found['repos'] for hook in one['hooks']
                 if hook['id'] == 'hacking']
        tox = configparser.RawConfigParser()
        tox.read(ROOT / 'tox.ini')
        command = tox['testenv:pep8']['commands'].strip()
        scripts = re.search('posargs:[.] (.*)}', command)[1].split()
        for name in [*scripts, 'setup.py', 'tests/unit/__init__.py']:
            self.assertTrue(re.search(hook['files'], name), name)
        self.assertFalse(re.search(hook['files'], 'tools/README.rst'))

    def test_no_default_can_change(self):
        """A default value is one object for all calls of a process."""
        self.assertEqual([], [
            '%s:%d' % (path, default.lineno)
            for path in sorted((ROOT / 'nova_aggregate_mirror').rglob('*.py'))
            for default in _defaults(ast.parse(path.read_text()))
            if any(isinstance(node, (ast.Dict, ast.List, ast.Set))
                   for node in ast.walk(default))])

    def test_review_goes_to_the_project(self):
        review = configparser.ConfigParser()
        review.read(ROOT / '.gitreview')
        self.assertEqual('openstack/nova-aggregate-mirror.git',
                         review['gerrit']['project'])
        self.assertIn('- openstack/nova-aggregate-mirror\n',
                      (ROOT / '.zuul.yaml').read_text())


def _defaults(module: ast.Module) -> Iterator[ast.expr]:
    """Yield the defaults of parameters, fields and context variables."""
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from node.args.defaults
            yield from filter(None, node.args.kw_defaults)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and field.value:
                    keywords = getattr(field.value, 'keywords', ())
                    if 'default_factory' not in {
                            keyword.arg for keyword in keywords}:
                        yield field.value
        elif isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords
                        if keyword.arg == 'default'
                        and ast.unparse(node.func).endswith('ContextVar'))
