# SPDX-License-Identifier: Apache-2.0
"""The check of the internals of nova-api and nova-conductor."""

import functools

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import api_internals


def foreign(function):
    """Decorate a method in a way that no decorator of nova has."""
    @functools.wraps(function)
    def inner(self, context, instance):
        getattr(self, function.__name__)(context, instance)
    return inner


class TestCheck(testtools.TestCase):

    def test_installed_nova(self):
        """Every nova under test meets the requirements."""
        api_internals.check()

    def test_differences(self):
        """All of them are reported at once.

        The body of a method must never be called.
        """
        for name, value in (
                ('resize', fixtures.MonkeyPatch.delete),
                ('rebuild', lambda self: None),
                ('evacuate', foreign(api_internals.api.API.evacuate)),
                ('_validate_numa_rebuild', fixtures.MonkeyPatch.delete)):
            self.useFixture(fixtures.MonkeyPatch(
                'nova.compute.api.API.' + name, value))
        error = self.assertRaises(
            exceptions.UnexpectedNova, api_internals.check)
        self.assertEqual(
            'API has no _validate_numa_rebuild; ' + '; '.join(
                'API.%s has no decorators of a known form' % method
                for method in ('resize', 'evacuate', 'rebuild')), str(error))
