# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud fillings``: a host is emptied, a zone is filled.

Each move is made in the order of the prediction, after the one before has
ended and nova-compute has reported it. The cloud has one worker of
nova-scheduler, which takes the first of the hosts with the largest weight.
"""

import argparse
from collections import abc
import dataclasses
import functools
import random
from typing import Any

from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud.situations import comparisons
from tests.cloud.situations import filling
from tests.cloud.situations import hosts
from tests.cloud.situations import reports
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

SOURCE, HOSTS = filling.SOURCE, filling.HOSTS
LIVE, COLD, EVACUATE = 'live-migrate', 'migrate', 'evacuate'
FOUND, NO_HOST = 'found', 'no_host'
# What is asked for; '' is what the state of each server needs.
OPERATIONS = '', '', '', COLD, EVACUATE


@dataclasses.dataclass
class Trial:
    """Predictions beside what nova has done."""

    number: int
    operation: str
    summary: str = ''
    """Of the first prediction for the servers of the host."""
    destinations: list[str] = dataclasses.field(default_factory=list)
    """Where nova put each server in its turn; ``-`` if nowhere."""
    predictions: int = 0
    """How many were needed: one more for each other host of equal weight."""
    fitting: str = ''
    """Of the prediction of how many servers fit."""
    created: int = 0
    problems: list[str] = dataclasses.field(default_factory=list)

    @property
    def equal(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        problems = '; '.join(self.problems)
        return '%3d  %-8s  %s  nova %s  predictions %d  |  %s  nova %d%s' % (
            self.number, self.operation, self.summary.partition(';')[0],
            ' '.join(self.destinations), self.predictions,
            self.fitting.partition(';')[0], self.created,
            '' if self.equal else '  DIFFERENT: ' + problems)


def main(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Compare the fillings that are left; return 0 if all are equal."""
    if not set(HOSTS) <= set(running.config.host_names()):
        raise processes.CloudError(
            'the cloud has too few hosts; start one with "up --hosts %d"'
            % (len(HOSTS) + 1))
    with reports.Reports(running, HOSTS) as reporting:
        return comparisons.repeat(
            running, chosen, Trial, functools.partial(
                _compare, reporting), _scheduler)


def _scheduler(number: int) -> str:
    return (schedulers.STOCK, schedulers.OURS)[number % 2]


def _compare(reporting: reports.Reports, at: scene.Scene, number: int,
             choice: random.Random) -> Trial:
    filled = filling.Filling(at, choice)
    filled.fill()
    filled.confine()
    reporting.wait(at, *HOSTS)
    trial = Trial(number, choice.choice(OPERATIONS))
    if trial.operation == EVACUATE:
        hosts.lose(at, SOURCE)
    played = _Played(at, reporting, trial)
    played.move()
    smallest = min(filled.flavors, key=lambda flavor: flavor.vcpus)
    played.count(smallest.id, choice.choice(filled.zones))
    return trial


class _Played:
    """Moves of all servers of a host, and creations, as predicted."""

    def __init__(self, at: scene.Scene, reporting: reports.Reports,
                 trial: Trial) -> None:
        self._scene = at
        self._reporting = reporting
        self._trial = trial

    def move(self) -> None:
        """Make the moves until one differs from what was predicted."""
        trial, rows = self._trial, self._predict()
        for row in rows:
            if row['kind'] == NO_HOST:
                self._check_alone(row)
        while rows and trial.equal:
            row = rows.pop(0)
            outcome = self._move(row)
            destination = ''.join(outcome.hosts)
            trial.destinations.append(destination or '-')
            if not _fits(row, outcome):
                explanation = row['destination'] or row['reason']
                trial.problems.append('%s: explained %s, nova %s' % (
                    row['name'], explanation, outcome))
            elif destination != row['destination']:
                rows = self._predict()

    def _predict(self) -> list[dict[str, Any]]:
        trial, arguments = self._trial, ['--servers-of', SOURCE]
        if trial.operation:
            arguments += ['--for', trial.operation]
        found = self._scene.explain(arguments)
        rows: list[dict[str, Any]] = found.document['servers']
        trial.summary = trial.summary or found.summary
        trial.predictions += 1
        if found.status != any(row['kind'] != FOUND for row in rows):
            trial.problems.append('exit status %d' % found.status)
        return rows

    def _check_alone(self, row: abc.Mapping[str, Any]) -> None:
        """Compare what is said of a server with its own explanation."""
        alone = self._scene.explain([
            '--server', row['server'], '--for', row['operation']])
        if bool(row['first']) == bool(alone.status):
            self._trial.problems.append(
                '%s: explained "%s" if it goes first, and alone: %s' % (
                    row['name'], row['first'], alone.summary))

    def _move(self, row: abc.Mapping[str, Any]) -> scene.Outcome:
        """Make a move, and wait until nova-compute has reported it."""
        at = self._scene
        # What cannot be moved has no operation.
        operation = row['operation'] or self._trial.operation or LIVE
        outcome = servers.Move(at, row['server'], operation).make()
        if outcome.hosts and operation == COLD:
            servers.confirm(at, row['server'])
        changed = set(outcome.hosts)
        if changed and operation != EVACUATE:
            changed.add(SOURCE)
        self._reporting.wait(at, *sorted(changed))
        return outcome

    def count(self, flavor: str, zone: str) -> None:
        """Create servers until nova finds no host, or one too many."""
        at, trial = self._scene, self._trial

        def create() -> scene.Outcome:
            return servers.Create(
                at, flavor, zone, values=filling.NO_NETWORK).make()

        found = at.explain(['--flavor', flavor, '--zone', zone, '--project',
                            at.nova.get_project_id(), '--count', 'all'])
        trial.fitting, number = found.summary, found.document['count']
        outcome = create()
        while outcome.hosts and trial.created <= number:
            trial.created += 1
            self._reporting.wait(at, *outcome.hosts)
            outcome = create()
        if trial.created != number or scene.NO_HOST not in outcome.message:
            trial.problems.append('explained %d servers, nova %s after %d' % (
                number, outcome, trial.created))
        if found.status != (not number):
            trial.problems.append('exit status %d' % found.status)


def _fits(row: abc.Mapping[str, Any], outcome: scene.Outcome) -> bool:
    """Check whether nova has done what a row of the prediction says."""
    if row['kind'] == FOUND:
        possible = {row['destination'], *row['same_weight']}
        return bool(outcome.hosts) and outcome.hosts <= possible
    refused = scene.NO_HOST in outcome.message
    return not outcome.hosts and refused == (row['kind'] == NO_HOST)
