# SPDX-License-Identifier: Apache-2.0
"""Integration tests on the full cloud, which all of them share."""

import pathlib
import unittest

import testtools


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite,
               _pattern: str | None) -> unittest.TestSuite:
    """Load the tests that need no agents first, and chaos last.

    The agents thus stop once. Chaos leaves relays in the cloud, and an
    aggregate of another tool in placement.
    """
    folder = pathlib.Path(__file__).parent
    for path in sorted(folder.glob('test_*.py')):
        tests.addTests(loader.loadTestsFromName(
            '%s.%s' % (__name__, path.stem)))
    return unittest.TestSuite(
        sorted(testtools.iterate_tests(tests), key=_turn))


def _turn(test: object) -> tuple[bool, bool]:
    return (getattr(test, 'last', False),
            not getattr(test, 'without_agents', False))
