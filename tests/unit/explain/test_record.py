# SPDX-License-Identifier: Apache-2.0
"""Note on syncs between the failure of a server and its explanation."""

import dataclasses

import testtools

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain.request import record
from nova_aggregate_mirror.journal import full_syncs

FAILED = '1970-01-01T00:01:40Z'
FAULT = explanation.RecordEntry(FAILED, 'fault', '', 'No valid host')
RECORD = explanation.ServerRecord('error', '', '', [FAULT])
LEFT = explanation.Verdict('node', 'host', explanation.Reason(
    explanation.ACCEPTABLE, 'acceptable'), 0)
ANSWER = explanation.Answer({}, [], [LEFT], record=RECORD)
SYNC = full_syncs.Entry('agent', 'api1', 99.0, 101.5, 2.5, added=2)


class TestLaterSyncs(testtools.TestCase):

    def notes(self, *syncs, **changes):
        return record.later_syncs(dataclasses.replace(
            ANSWER, record=dataclasses.replace(RECORD, **changes)), syncs)

    def test_all_changes_since_the_failure(self):
        """The note has both times, and the sum of the changes."""
        later = dataclasses.replace(SYNC, ended_at=200.0, added=1, removed=3)
        self.assertEqual([
            'The server failed at 1970-01-01T00:01:40Z. Full syncs that ended '
            'after that, the last at 1970-01-01T00:03:20Z, changed placement: '
            '3 associations added, 3 removed. This answer is that of now.'],
            self.notes(later, SYNC))

    def test_failed_action(self):
        """A move that failed leaves the server in its state."""
        event = explanation.RecordEntry(
            FAILED, 'migrate: cold_migrate', '', 'Error')
        self.assertEqual(1, len(self.notes(
            SYNC, state='active', entries=[FAULT, event])))

    def test_syncs_that_changed_nothing_since(self):
        """Nothing is noted of older ones, or of an observing agent."""
        for changes in ({'added': 0}, {'mode': 'observe'},
                        {'ended_at': 100.9}):
            self.assertEqual([], self.notes(
                dataclasses.replace(SYNC, **changes)), changes)

    def test_server_that_did_not_fail(self):
        """A fault may be older than what the server recovered by."""
        success = explanation.RecordEntry(
            FAILED, 'reboot: compute_reboot_instance', 'host', 'Success')
        self.assertEqual([], self.notes(
            SYNC, state='active', entries=[FAULT, success]))

    def test_answer_without_a_host_or_a_server(self):
        """The failure is explained by the answer, or there is none."""
        for changes in {'verdicts': []}, {'record': None}:
            self.assertEqual([], record.later_syncs(
                dataclasses.replace(ANSWER, **changes), [SYNC]), changes)
