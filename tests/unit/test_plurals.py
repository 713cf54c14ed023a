# SPDX-License-Identifier: Apache-2.0
"""Counts in words."""

import testtools

from nova_aggregate_mirror import plurals


class TestWording(testtools.TestCase):

    def test_noun_agrees_in_number(self):
        """Zero takes the plural, too; some plurals are irregular."""
        for nouns, expected in (
                (['host'], ['0 hosts', '1 host', '2 hosts']),
                (['of us', 'of them'], ['0 of them', '1 of us', '2 of them'])):
            self.assertEqual(expected, [
                plurals.count(number, *nouns) for number in range(3)])

    def test_some_names(self):
        """They are sorted and limited."""
        self.assertEqual('a, b', plurals.some(['b', 'a']))
        self.assertEqual('1, 2, 3, 4, 5', plurals.some('54321', 5))
        self.assertEqual('1, 2, 3, 4, 5 and 2 more',
                         plurals.some('7654321', 5))
