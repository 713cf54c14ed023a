# SPDX-License-Identifier: Apache-2.0
"""The next steps that failures advise."""

import ast
from collections.abc import Iterator
import pathlib

import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror.limits import observations

ROOT = pathlib.Path(nova_aggregate_mirror.__file__).parent


def steps() -> Iterator[tuple[str, str]]:
    """List every text of a ``step`` argument, with its file."""
    for path in sorted(ROOT.rglob('*.py')):
        tree = ast.parse(path.read_text())
        constants = {
            target.id: node.value for node in tree.body
            if isinstance(node, ast.Assign) for target in node.targets
            if isinstance(target, ast.Name)}
        for call in ast.walk(tree):
            for keyword in getattr(call, 'keywords', ()):
                if keyword.arg == 'step':
                    for node in ast.walk(keyword.value):
                        if isinstance(node, ast.Name):
                            node = constants.get(node.id, node)
                        if isinstance(node, ast.Constant) and isinstance(
                                node.value, str):
                            yield path.name, node.value


class TestSteps(testtools.TestCase):

    def test_a_failure_advises_one_thing(self) -> None:
        """A step is one sentence, or a part of one."""
        texts = [*steps(), *(('observations', text) for text
                             in observations.STEPS.values())]
        self.assertLess(10, len(texts))
        for path, text in texts:
            self.assertEqual('', text.rstrip('. ').partition('. ')[2], path)
