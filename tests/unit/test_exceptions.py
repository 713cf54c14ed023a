# SPDX-License-Identifier: Apache-2.0
"""Failures: their kinds, and the text that is made of their parts."""

import ast
from collections.abc import Iterator
import pathlib

import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror import exceptions

# Programs compare these: a change needs a release note.
KINDS = {
    'cell_unavailable', 'contradiction', 'deadline_exceeded', 'forbidden',
    'generation_conflict', 'invalid_configuration', 'journal_damaged',
    'journal_locked', 'journal_unavailable', 'malformed_answer',
    'missing_credentials', 'missing_package', 'mirror_error',
    'not_authorized', 'not_tried', 'nova_unavailable', 'out_of_time',
    'permanent', 'provider_not_found', 'removals_refused',
    'request_rejected', 'retriable', 'service_failed', 'service_unreachable',
    'stopped', 'unexpected_nova', 'unknown_name', 'wrong_database',
    'wrong_nova', 'wrong_placement'}


def classes(root: type) -> Iterator[type]:
    yield root
    for cls in root.__subclasses__():
        yield from classes(cls)


def steps() -> Iterator[tuple[str, str]]:
    """Yield the text of each ``step`` in the package, and where it is."""
    for path in pathlib.Path(nova_aggregate_mirror.__file__).parent.rglob(
            '*.py'):
        tree = ast.parse(path.read_text())
        names = {target.id: node.value for node in tree.body
                 if isinstance(node, ast.Assign) for target in node.targets
                 if isinstance(target, ast.Name)}
        for keyword in ast.walk(tree):
            if isinstance(keyword, ast.keyword) and keyword.arg == 'step':
                value = keyword.value
                for text in ast.walk(names.get(value.id, value) if isinstance(
                        value, ast.Name) else value):
                    if isinstance(text, ast.Constant):
                        yield str(path), str(text.value)


class TestFailure(testtools.TestCase):

    def test_kinds_are_stable(self) -> None:
        """Programs depend on them, not on the texts."""
        self.assertEqual(KINDS, {
            cls('x').failure.kind
            for cls in classes(exceptions.MirrorError)})

    def test_text(self) -> None:
        """Party, observation, occasion, consequence, then one step."""
        self.assertEqual(
            'placement refused the connection (GET /); it waits: start it',
            str(exceptions.ServiceUnreachable(
                'refused the connection', 'placement', 'GET /', 'it waits',
                'start it')))
        self.assertEqual('no host h1', str(exceptions.UnknownName(
            'no host h1')))
        self.assertEqual(r'placement said \x1b[2J', str(
            exceptions.ServiceFailed('said \x1b[2J', 'placement')))

    def test_lasting_failure(self) -> None:
        """It is the same one when its text has another request's ID."""
        one, other = (exceptions.ServiceFailed(
            'answered 500: req-%d' % number, 'placement')
            for number in range(2))
        self.assertEqual(one.failure.key, other.failure.key)
        self.assertNotEqual(one.failure.key, exceptions.ServiceFailed(
            'answered 500: req-0', 'glance').failure.key)

    def test_one_step_at_most(self) -> None:
        """No text tells an operator to check several things."""
        texts = list(steps())
        self.assertGreater(len(texts), 4)
        for path, text in texts:
            for several in '. ', '; ', ' and check', 'Check', 'check ':
                self.assertNotIn(several, text, path)
