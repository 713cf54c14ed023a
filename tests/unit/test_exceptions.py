# SPDX-License-Identifier: Apache-2.0
"""Failures: their kinds, exit statuses, and the text of their parts."""

from collections import abc

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status

# Programs compare these: a change needs a release note.
KINDS = {
    'cell_unavailable', 'contradiction', 'deadline_exceeded',
    'generation_conflict', 'invalid_configuration',
    'journal_locked', 'journal_not_asked', 'journal_unavailable',
    'malformed_answer', 'missing_credentials', 'mirror_error',
    'not_authorized', 'not_tried', 'nova_unavailable', 'out_of_time',
    'permanent', 'provider_not_found', 'removals_refused',
    'request_rejected', 'retriable', 'service_failed', 'service_unreachable',
    'stopped', 'unexpected_nova', 'unknown_name', 'wrong_database',
    'wrong_nova', 'wrong_placement'}


def classes(root: type) -> abc.Iterator[type]:
    yield root
    for cls in root.__subclasses__():
        yield from classes(cls)


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

    def test_lasting_failure(self) -> None:
        """It is the same one when its text has another request's ID."""
        key, other, of_another = (
            exceptions.ServiceFailed(
                'answered 500: req-%d' % number, party).failure.key
            for number, party in enumerate(
                ('placement', 'placement', 'glance')))
        self.assertEqual(key, other)
        self.assertNotEqual(key, of_another)


class TestExitStatus(testtools.TestCase):

    def test_each_status_has_a_text(self) -> None:
        """But that of a shell for a reader that ended first."""
        numbers = {value for value in vars(exit_status).values()
                   if isinstance(value, int)}
        self.assertEqual(
            numbers - {exit_status.BROKEN_PIPE}, {*exit_status.TEXTS})

    def test_each_error_is_in_the_manual_of_a_sync(self) -> None:
        for error in classes(exceptions.MirrorError):
            for unwritten in False, True:
                self.assertIn(exit_status.of(error(''), unwritten),
                              exit_status.SYNC, error)
