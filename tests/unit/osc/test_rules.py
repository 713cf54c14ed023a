# SPDX-License-Identifier: Apache-2.0
"""Rules on aggregate metadata, without nova's modules."""

import hypothesis
from hypothesis import strategies as st
from nova.scheduler.filters import extra_specs_ops
import testtools

from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.osc import rules
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api_requests

FLAVOR = api_requests.Flavor('m1', 1, 1, 1, 0, 0, {})
VALUES = st.sampled_from(('', '1', '2', '10', 'a', 'ab', '<or>', 'x y'))
OPERATORS = st.sampled_from((
    '=', '==', '!=', '>=', '<=', '<in>', '<all-in>', '<or>', 's==', 's!=',
    's<', 's<=', 's>', 's>=', '', 'other'))


def result(match, *arguments):
    """Return the result; nova's comparison may fail, which is no match."""
    try:
        return match(*arguments)
    except (ValueError, IndexError):
        return False


class TestMatch(testtools.TestCase):

    @hypothesis.settings(
        max_examples=2000, deadline=None, derandomize=True, database=None)
    @hypothesis.given(value=VALUES, name=OPERATORS, operands=st.lists(
        VALUES, max_size=3), separator=st.sampled_from((' ', ' <or> ')))
    def test_it_is_that_of_nova(self, value, name, operands, separator):
        """For each of its operators."""
        wanted = ' '.join([name, separator.join(operands)])
        self.assertEqual(result(extra_specs_ops.match, value, wanted),
                         result(rules.match, value, wanted), wanted)


class TestRules(testtools.TestCase):

    def of(self, name, metadata, properties={}, zone=''):
        return rules.of(name, requested.Requested(
            FLAVOR, properties, project='p', zone=zone), metadata)

    def test_image_properties(self):
        """Those that nova knows are compared."""
        [rule] = self.of('image_properties', {
            'a': {'os_type': 'linux'}, 'b': {'os_type': 'other'},
            'c': {'colour': 'red'}}, {'os_type': 'linux', 'colour': 'blue'})
        self.assertEqual((frozenset('a'), frozenset('ab')),
                         (rule.matching, rule.restricting))

    def test_tenant_aggregate(self):
        """A tenant without an aggregate is not restricted."""
        metadata = {'a': {'filter_tenant_id_1': 'p'},
                    'b': {'filter_tenant_id': 'p, q'}}
        [rule] = self.of('tenant_aggregate', metadata)
        self.assertEqual((frozenset('a'), True),
                         (rule.matching, rule.required))
        self.assertEqual([], self.of('tenant_aggregate', {'b': {}}))

    def test_default_zone(self):
        """Nova itself asks for a zone that an aggregate has."""
        metadata = {'a': {'availability_zone': 'az-1'}}
        name = 'default_availability_zone'
        self.assertEqual([], self.of(name, metadata))
        self.assertEqual([], self.of(name, metadata, zone='az-1'))
        [rule] = self.of(name, metadata, zone='nova')
        self.assertFalse(rule.passes({'a'}))

    def test_conditions(self):
        """What is forbidden comes first, and has the names of its rules."""
        asked = requested.Requested(FLAVOR, {}, project='p', zone='az-1')
        metadata = {'z': {'availability_zone': 'az-1'},
                    't': {'filter_tenant_id': 'q'},
                    'f': {'instance_type': 'm2'}}
        enforced = [rule for name in ('type_affinity', 'tenant_isolation')
                    for rule in rules.of(name, asked, metadata)]
        self.assertEqual(
            [('!in:f', 'flavor m1'), ('!in:t', 'tenant p'),
             ('in:z', 'zone az-1')],
            [(one.value, one.asked_by) for one in rules.conditions(
                asked, enforced, metadata, source.Nova({}, {}, {}))])
