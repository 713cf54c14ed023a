# SPDX-License-Identifier: Apache-2.0
"""Integration tests on the full cloud, which all of them share."""

from collections import abc
import pathlib
import unittest


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite,
               _pattern: str | None) -> unittest.TestSuite:
    """Load the tests that need no agents first, and chaos last.

    The agents thus stop once. Chaos leaves relays in the cloud, and an
    aggregate of another tool in placement.
    """
    folder = pathlib.Path(__file__).parent
    modules = [loader.loadTestsFromName('%s.%s' % (__name__, path.stem))
               for path in sorted(folder.glob('test_*.py'))]
    tests.addTests(sorted(_flat(modules), key=_turn))
    return tests


def _turn(test: object) -> tuple[bool, bool]:
    return (getattr(test, 'last', False),
            not getattr(test, 'without_agents', False))


def _flat(suites: 'list[unittest.TestSuite]'
          ) -> abc.Iterator[unittest.TestCase]:
    for suite in suites:
        for member in suite:
            if isinstance(member, unittest.TestSuite):
                yield from _flat([member])
            else:
                yield member
