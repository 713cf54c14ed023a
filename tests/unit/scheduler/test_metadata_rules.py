# SPDX-License-Identifier: Apache-2.0
"""Rules of flavor extra specs, one situation per test."""

from nova.scheduler.filters import extra_specs_ops
import testtools

from nova_aggregate_mirror.scheduler import metadata_rules


class TestExtraSpecs(testtools.TestCase):

    def matching(self, wanted, *values):
        rule, = metadata_rules.flavor_extra_specs(
            {'cpu': wanted}, {value: {'cpu': value} for value in values},
            extra_specs_ops.match)
        return rule.matching

    def test_both_spellings_of_a_key(self):
        """Each spelling is a rule of its own."""
        rules = metadata_rules.flavor_extra_specs(
            {'ssd': 'a', 'aggregate_instance_extra_specs:ssd': 'b'},
            {'1': {'ssd': 'a'}, '2': {'ssd': 'b'}}, extra_specs_ops.match)
        self.assertEqual([{'2'}, {'1'}], [rule.matching for rule in rules])

    def test_value_that_is_no_number(self):
        """It does not match, where nova's filter would raise."""
        self.assertRaises(ValueError, extra_specs_ops.match, 'many', '>= 8')
        self.assertEqual({'16'}, self.matching('>= 8', 'many', '16', '4'))

    def test_operator_without_operand(self):
        """It matches nothing."""
        self.assertRaises(IndexError, extra_specs_ops.match, '8', '<or>')
        self.assertEqual(frozenset(), self.matching('<or>', '8'))
