# SPDX-License-Identifier: Apache-2.0
"""What README, the pages, the diagrams and the man pages say."""

import ast
import configparser
import itertools
import pathlib
import re
import runpy

import testtools
from testtools import matchers
import yaml

from nova_aggregate_mirror.agent import metrics

ROOT = pathlib.Path(__file__).parents[3]
DOC = ROOT / 'doc'
CONF = DOC / 'source' / 'conf.py'
FOLDERS = ('nova_aggregate_mirror', 'etc', 'devstack', 'doc/source',
           'releasenotes/notes', 'tools')
FILES = ('README.rst', 'CONTRIBUTING.rst', 'setup.cfg', 'requirements.txt')
# A file and a URL have a slash, and an option ends the name of no package.
PUBLIC = re.compile(
    r'(?:pip3? install(?:[^\n]|\\\n)*?[ \'"]|pip_packages:\n(?:.*\n)*? *- )'
    r'nova[-_]aggregate[-_]mirror(?![-_\w./]*[/.])(?![^\n]* @ )')
PAGES = DOC / 'source' / 'admin'
WATCH = (PAGES / 'operations.rst').read_text()
LOG = (PAGES / 'log.rst').read_text()
RUNBOOK = (PAGES / 'runbook.rst').read_text()
RULES = ROOT / 'etc' / 'prometheus' / 'nova-aggregate-mirror.rules.yaml'
PUBLISHED = 'https://base-of-runbook-url-is-not-set.invalid/'
ENDINGS = {'counter': '_total', 'info': '_info'}
LEVELS = {'warning': 'WARNING', 'error': 'ERROR', 'exception': 'ERROR',
          'critical': 'CRITICAL'}
ROW = re.compile(r'^   \* - (WARNING|ERROR|CRITICAL)\n     - ``(.+?)``$',
                 re.DOTALL | re.MULTILINE)
LABEL = re.compile(r'^\.\. _([\w-]+):$', re.MULTILINE)
VALUE = re.compile(r'%[sdg]')
WORD = re.compile(r'\b[A-Z]{1,9}\b')
LITERAL = re.compile('``([^`]+)``')
LOGS = re.compile(r'\blog(s|ged)?\b[^.`]*$')
"""The text before what a page says to be logged."""
OTHERS = {'Got no allocation candidates from the Placement API',
          'IndexError: list index out of range'}
"""Logged by nova and neutron."""
OPERATION = re.compile(r'^Aggregate ID(, host HOST)? \(request REQUEST\)')


def plain(text):
    """Return the text without line breaks and variable parts."""
    text = WORD.sub('*', VALUE.sub('*', text))
    return ' '.join(text.split())


def logged():
    """Yield level and text of each log line, with values as stars."""
    for path in sorted((ROOT / 'nova_aggregate_mirror').rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            arguments, log = node.args, node.func
            if ast.unparse(log) == 'metrics.Lasting':
                log, *arguments = arguments
            level = ast.unparse(log).removeprefix('LOG.')
            if level in LEVELS:
                yield LEVELS[level], said(arguments)


def said(arguments):
    text = ast.literal_eval(arguments[0])
    for number, value in enumerate(arguments[1:]):
        if isinstance(value, ast.Name) and value.id == 'GUARD':
            # The page has the name.
            parts = VALUE.split(text)
            before, after = ('%s'.join(parts[:number + 1]),
                             '%s'.join(parts[number + 1:]))
            text = before + 'AggregateMembershipFilter' + after
    return plain(text)


def known():
    """Return the names of all modules, classes and tests."""
    found = set()
    for path in (ROOT / 'tests').glob('**/test_*.py'):
        found.add(path.stem)
        for one in ast.parse(path.read_text()).body:
            if isinstance(one, ast.ClassDef):
                found.add('%s.%s' % (path.stem, one.name))
                found |= {'%s.%s.%s' % (path.stem, one.name, each.name)
                          for each in one.body
                          if isinstance(each, ast.FunctionDef)}
    return found


class TestDocumentation(testtools.TestCase):

    def test_links_of_readme_lead_to_files(self):
        links = re.findall(r'<(?!https:)([^<>\s]+)>`_',
                           (ROOT / 'README.rst').read_text())
        self.assertGreater(len(links), 10)
        self.assertEqual(
            [], [link for link in links if not (ROOT / link).is_file()])

    def test_each_program_has_a_man_page(self):
        setup = configparser.RawConfigParser()
        setup.read(ROOT / 'setup.cfg')
        programs = re.findall(
            r'^(\S+) =', setup['entry_points']['console_scripts'],
            re.MULTILINE)
        listed = CONF.read_text().partition('\nman_pages = ')[2]
        self.assertEqual(
            sorted(programs),
            re.findall(r"^ +\('(nova-[\w-]+)',$", listed, re.MULTILINE))

    def test_diagrams_are_current(self):
        """The diagrams are those that doc/pictures.py writes."""
        pictures = runpy.run_path(str(DOC / 'pictures.py'))['pictures']
        found = {path.name: path.read_text()
                 for path in (DOC / 'source' / 'pictures').iterdir()}
        self.assertEqual(pictures(), found)

    def test_no_command_installs_a_public_name(self):
        """No text tells root to install a name that anybody may register.

        The package comes from a file, a directory or a repository.
        """
        files = [ROOT / name for name in FILES]
        for folder in FOLDERS:
            files += [path for path in (ROOT / folder).rglob('*')
                      if path.is_file() and path.suffix != '.pyc']
        for path in files:
            # The parts of a message are on several lines.
            text = re.sub(r"'\n *'", '', path.read_bytes().decode(
                errors='replace'))
            self.assertEqual(
                [], [match[0] for match in PUBLIC.finditer(text)], path)

    def test_specifications_name_tests_that_exist(self):
        text = (PAGES.parent / 'contributor/specifications.rst').read_text()
        named = re.findall(r'``(test_\w+[\w.]*)``', text)
        self.assertGreater(len(named), 40)
        self.assertEqual(set(), set(named) - known())


class TestOperationsPages(testtools.TestCase):

    def test_each_line_of_the_log_is_explained(self):
        """The page also has no line that is not logged any more."""
        explained = [(level, plain(OPERATION.sub('%s', text)))
                     for level, text in ROW.findall(LOG)]
        self.assertEqual(sorted(logged()), sorted(explained))

    def test_quoted_lines_are_logged(self):
        """A reader looks for these words, on any level."""
        texts = set(OTHERS)
        for path in (ROOT / 'nova_aggregate_mirror').rglob('*.py'):
            texts |= {node.value for node in ast.walk(ast.parse(
                path.read_text())) if isinstance(node, ast.Constant)
                and isinstance(node.value, str)}
        quotes = set()
        for page in PAGES.parent.rglob('*.rst'):
            text = ' '.join(page.read_text().split())
            quotes |= {literal[1] for literal in LITERAL.finditer(text)
                       if LOGS.search(text[:literal.start()])}
        sentences = {quote for quote in quotes if quote.count(' ') > 2}
        self.assertThat(sentences, matchers.Not(matchers.HasLength(0)))
        self.assertEqual(set(), {
            sentence for sentence in sentences
            if not any(sentence in text for text in texts)})

    def test_each_metric_is_explained(self):
        figures = metrics.Metrics()
        figures.expect_audits(['zone'])
        shown = {metric.name + ENDINGS.get(metric.type, '')
                 for metric in figures.registry.collect()}
        explained = re.findall(r'``(%s\w+)``' % metrics.PREFIX, WATCH)
        self.assertEqual(
            {name for name in shown if name.startswith(metrics.PREFIX)},
            set(explained))

    def test_each_alert_leads_to_its_section(self):
        """Its runbook_url and the runbook's table lead to the same label."""
        groups = yaml.safe_load(RULES.read_text())['groups']
        for rule in itertools.chain(*(group['rules'] for group in groups)):
            url = rule['annotations']['runbook_url']
            self.assertTrue(url.startswith(PUBLISHED), url)
            page, _, label = url.removeprefix(PUBLISHED).partition('.html#')
            labels = LABEL.findall(
                (PAGES.parent / (page + '.rst')).read_text())
            self.assertIn(label, labels, rule['alert'])
            self.assertIn('   * - ``%s``\n     - :ref:`%s`\n' % (
                rule['alert'], label), RUNBOOK)
