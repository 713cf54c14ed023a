# SPDX-License-Identifier: Apache-2.0
"""The query for a flavor and an image, compared with that of nova."""

import urllib.parse

import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import request_filter
from nova.scheduler import utils
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explanation import query
from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.source import api_requests

SPECS = st.fixed_dictionaries({}, optional={
    'resources:VCPU': st.sampled_from(('0', '3')),
    'resources:MEMORY_MB': st.sampled_from(('0', '100')),
    'resources:CUSTOM_GOLD': st.just('1'),
    'resources1:VGPU': st.just('1'),
    'resources_disk:DISK_GB': st.just('5'),
    'trait:CUSTOM_A': st.sampled_from(('required', 'forbidden', 'maybe')),
    'trait1:CUSTOM_B': st.sampled_from(('required', 'forbidden')),
    'group_policy': st.sampled_from(('none', 'isolate', 'other')),
    'quota:cpu_shares': st.just('1'),
})
PINNING = st.one_of(st.just({}), st.fixed_dictionaries(
    {'hw:cpu_policy': st.just('dedicated')}, optional={
        'hw:cpu_thread_policy': st.sampled_from(
            ('prefer', 'isolate', 'require')),
        'hw:emulator_threads_policy': st.sampled_from(('share', 'isolate')),
    }))
PROPERTIES = st.fixed_dictionaries({}, optional={
    'trait:CUSTOM_I': st.just('required'), 'trait:CUSTOM_A': st.just(
        'required'), 'os_type': st.just('linux')})


def flavor(extra_specs={}, **sizes):
    return api_requests.Flavor(
        'm1', sizes.get('vcpus', 2), sizes.get('memory_mb', 64),
        sizes.get('root_gb', 1), sizes.get('ephemeral_gb', 0),
        sizes.get('swap_mb', 0), extra_specs)


def parameters(one):
    """Return the parameters of a query with sorted lists."""
    return sorted((key, value if key == query.MEMBER_OF else ','.join(
        sorted(value.split(',')))) for key, value in one.parameters())


class TestEquality(testtools.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        # Nova warns about what it ignores.
        self.useFixture(fixtures.FakeLogger())

    @hypothesis.settings(
        max_examples=300, deadline=None, derandomize=True, database=None)
    @hypothesis.given(
        specs=SPECS, pinning=PINNING, properties=PROPERTIES,
        root=st.sampled_from((0, 1)), swap=st.sampled_from((0, 1, 1024, 1025)),
        from_volume=st.booleans())
    def test_it_is_that_of_nova(self, specs, pinning, properties, root, swap,
                                from_volume):
        """For each alternative that nova queries."""
        if pinning:
            specs = {name: value for name, value in specs.items()
                     if 'VCPU' not in name}
        asked = requested.Requested(
            flavor({**specs, **pinning}, root_gb=root, swap_mb=swap),
            properties, from_volume)
        self.assertEqual(
            self.of_nova(asked),
            [parameters(one) for one in requested.queries(asked, [])])

    def of_nova(self, asked):
        one = asked.flavor
        spec = objects.RequestSpec(
            flavor=objects.Flavor(
                name=one.name, vcpus=one.vcpus, memory_mb=one.memory_mb,
                root_gb=one.root_gb, ephemeral_gb=one.ephemeral_gb,
                swap=one.swap_mb, extra_specs=dict(one.extra_specs)),
            image=objects.ImageMeta.from_dict(
                {'properties': dict(asked.properties)}),
            is_bfv=asked.from_volume, requested_resources=[])
        spec.request_level_params = objects.RequestLevelParams()
        request_filter.compute_status_filter(None, spec)
        found = [utils.ResourceRequest.from_request_spec(spec)]
        if found[0].cpu_pinning_requested:
            found.append(utils.ResourceRequest.from_request_spec(
                spec, enable_pinning_translate=False))
        queries = [query.parse(urllib.parse.parse_qsl(
            each.to_querystring())) for each in found]
        return [parameters(one) for one in queries]


class TestRequested(testtools.TestCase):

    def test_sources(self):
        """Each condition has what asked for it, in a fixed order."""
        [found] = requested.queries(requested.Requested(
            flavor({'trait:CUSTOM_A': 'required'}),
            {'trait:CUSTOM_I': 'required'}),
            [query.Condition('member_of', 'in:z', 'zone az-1')])
        self.assertEqual(
            [('resources', 'DISK_GB:1', 'flavor'),
             ('resources', 'MEMORY_MB:64', 'flavor'),
             ('resources', 'VCPU:2', 'flavor'),
             ('root_required', '!COMPUTE_STATUS_DISABLED', 'nova'),
             ('required', 'CUSTOM_A', 'flavor'),
             ('required', 'CUSTOM_I', 'image'),
             ('member_of', 'in:z', 'zone az-1')],
            [(one.key, one.value, one.asked_by)
             for one in found.conditions])

    def test_amount_that_is_not_a_number(self):
        """The error names the flavor and the extra spec."""
        error = self.assertRaises(
            exceptions.InvalidConfiguration, requested.queries,
            requested.Requested(flavor({'resources:VGPU': 'one'}), {}), [])
        self.assertIn('flavor m1 has extra spec resources:VGPU = one',
                      str(error))

    def test_what_nova_translates(self):
        """It is named, whether the flavor or the image has it."""
        self.assertEqual(
            ['hw:cpu_policy=mixed', 'hw:mem_encryption', 'hw:tpm_version'],
            requested.Requested(flavor({
                'hw:cpu_policy': 'mixed', 'hw:tpm_version': '2.0'}),
                {'hw_mem_encryption': 'true'}).not_explained)
        self.assertEqual([], requested.Requested(
            flavor({'hw:cpu_policy': 'shared'}), {}).not_explained)
