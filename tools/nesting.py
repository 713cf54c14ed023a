# SPDX-License-Identifier: Apache-2.0
"""Check how deep statements nest: ``python tools/nesting.py 1.0 DIRECTORY``.

The depth of a statement in a function is how many calls, operators,
comparisons, conditionals, displays, comprehensions, lambdas and subscripts
stand inside one another in it. Exit status 1 if more statements than the limit
nest five deep or more, the deepest of which are listed, or if more
comprehensions than allowed have two "for".
"""

import argparse
import ast
from collections import abc
import dataclasses
import operator
import pathlib
import sys

DEEP = 5
LISTED = 20

_COMPREHENSIONS = (
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEVELS = (
    *_COMPREHENSIONS, ast.Call, ast.BinOp, ast.BoolOp, ast.UnaryOp,
    ast.Compare, ast.IfExp, ast.Lambda, ast.List, ast.Tuple, ast.Set, ast.Dict,
    ast.Starred, ast.Subscript)
_STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Raise, ast.Return)
_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef


@dataclasses.dataclass
class Findings:
    """What the modules of some directories have."""

    statements: int = 0
    deep: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    """Depth and place of each statement that is ``DEEP`` or more."""
    loops: list[str] = dataclasses.field(default_factory=list)
    """Places of the comprehensions with two "for"."""

    @property
    def share(self) -> float:
        """Percentage of the statements that are deep."""
        return 100.0 * len(self.deep) / max(self.statements, 1)

    def add(self, path: pathlib.Path) -> None:
        """Add those of a module."""
        module = ast.parse(path.read_text(encoding='utf-8'))
        for statement in statements(module):
            self.statements += 1
            nested = depth(statement)
            if nested >= DEEP:
                self.deep.append((nested, '%s:%d' % (path, statement.lineno)))
        for node in ast.walk(module):
            if isinstance(node, _COMPREHENSIONS) and len(node.generators) > 1:
                self.loops.append('%s:%d' % (path, node.lineno))


def statements(node: ast.AST, in_function: bool = False
               ) -> abc.Iterator[ast.stmt]:
    """Yield the simple statements of functions, except docstrings."""
    in_function = in_function or isinstance(node, _FUNCTIONS)
    for child in ast.iter_child_nodes(node):
        is_text = isinstance(child, ast.Expr) and isinstance(
            child.value, ast.Constant)
        if in_function and isinstance(child, _STATEMENTS) and not is_text:
            yield child
        yield from statements(child, in_function)


def depth(node: ast.AST) -> int:
    """Return how many expressions stand inside one another in a node."""
    return max((depth(child) + isinstance(child, _LEVELS)
                for child in ast.iter_child_nodes(node)), default=0)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('limit', type=float, help='percentage of statements')
    parser.add_argument('directories', nargs='+', type=pathlib.Path)
    parser.add_argument(
        '--loops', type=int, default=0,
        help='comprehensions that may have two "for" (default: 0)')
    options = parser.parse_args()
    findings = Findings()
    for directory in options.directories:
        for path in sorted(directory.rglob('*.py')):
            findings.add(path)
    print('%d of %d statements (%.2f %%; limit %.1f %%) nest %d deep or more'
          % (len(findings.deep), findings.statements, findings.share,
             options.limit, DEEP))
    print('%d comprehensions (limit %d) have two "for"'
          % (len(findings.loops), options.loops))
    is_deep = findings.share > options.limit
    is_double = len(findings.loops) > options.loops
    if is_deep:
        deepest = sorted(
            findings.deep, key=operator.itemgetter(0), reverse=True)
        for nested, place in deepest[:LISTED]:
            print('%s: %d deep' % (place, nested))
    if is_double:
        for place in findings.loops:
            print('%s: two "for"' % place)
    return int(is_deep or is_double)


if __name__ == '__main__':
    sys.exit(main())
