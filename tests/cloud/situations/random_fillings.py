# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud fillings``: a host is emptied, a zone is filled.

Each move is made in the order of the prediction, after the one before has
ended and nova-compute has reported it. The cloud has one worker of
nova-scheduler, which takes the first of the hosts with the largest weight.
"""

import argparse
from collections import abc
import contextlib
import random
from typing import Any

from tests.cloud import cloud
from tests.cloud import forks
from tests.cloud import processes
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
SCHEDULERS = schedulers.STOCK, schedulers.OURS


def main(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Compare predictions with nova; return 0 if all are equal."""
    if not set(HOSTS) <= set(running.config.host_names()):
        raise processes.CloudError(
            'the cloud has too few hosts; start one with "up --hosts %d"'
            % (len(HOSTS) + 1))
    running.forked = forks.Clients(running.programs)
    configurations = schedulers.Schedulers(running)
    different = 0
    try:
        with reports.frequent(running, HOSTS):
            for number in sorted(range(chosen.count), key=_scheduler):
                configurations.use(_scheduler(number))
                with contextlib.ExitStack() as stack:
                    trial = Trial(scene.Scene(
                        running, configurations, stack.callback))
                    trial.play(random.Random('%s-%d' % (chosen.seed, number)))
                print('%3d  %s' % (number, trial), flush=True)
                different += bool(trial.problems)
    finally:
        configurations.use('')
        running.forked.close()
    print('%d fillings, %d different' % (chosen.count, different))
    return 1 if different else 0


def _scheduler(number: int) -> str:
    return SCHEDULERS[number % 2]


class Trial:
    """Moves of all servers of a host, and creations, as predicted.

    ``destinations`` is where nova put each server in its turn; ``-`` if
    nowhere. One more prediction is needed for each other host of equal weight.
    """

    def __init__(self, at: scene.Scene) -> None:
        self._scene = at
        self.operation = self.summary = self.fitting = ''
        self.destinations: list[str] = []
        self.predictions = self.created = 0
        self.problems: list[str] = []

    def __str__(self) -> str:
        problems = '  DIFFERENT: ' * bool(self.problems)
        return '%-8s  %s  nova %s  predictions %d  |  %s  nova %d%s' % (
            self.operation, self.summary.partition(';')[0],
            ' '.join(self.destinations), self.predictions,
            self.fitting.partition(';')[0], self.created,
            problems + '; '.join(self.problems))

    def play(self, choice: random.Random) -> None:
        """Fill the hosts; then empty the first, and fill a zone."""
        at = self._scene
        filled = filling.Filling(at, choice)
        filled.fill()
        filled.confine()
        reports.wait(at, *HOSTS)
        self.operation = choice.choice(OPERATIONS)
        if self.operation == EVACUATE:
            hosts.lose(at, SOURCE)
        self._move_all()
        smallest = min(filled.flavors, key=lambda name: filled.flavors[name])
        self._count(smallest, choice.choice(filled.zones))

    def _move_all(self) -> None:
        """Make the moves until one differs from what was predicted."""
        rows = self._predict()
        for row in rows:
            if row['kind'] == NO_HOST:
                self._check_alone(row)
        while rows and not self.problems:
            row = rows.pop(0)
            outcome = self._move(row)
            destination = ''.join(outcome.hosts)
            self.destinations.append(destination or '-')
            if not _fits(row, outcome):
                explanation = row['destination'] or row['reason']
                self.problems.append('%s: explained %s, nova %s' % (
                    row['name'], explanation, outcome))
            elif destination != row['destination']:
                rows = self._predict()

    def _predict(self) -> list[dict[str, Any]]:
        found = self._scene.explain([
            '--servers-of', SOURCE,
            *['--for', self.operation] * bool(self.operation)])
        rows: list[dict[str, Any]] = found.document['servers']
        self.summary = self.summary or found.summary
        self.predictions += 1
        if found.status != any(row['kind'] != FOUND for row in rows):
            self.problems.append('exit status %d' % found.status)
        return rows

    def _check_alone(self, row: abc.Mapping[str, Any]) -> None:
        """Compare what is said of a server with its own explanation."""
        alone = self._scene.explain([
            '--server', row['server'], '--for', row['operation']])
        if bool(row['first']) == bool(alone.status):
            self.problems.append(
                '%s: explained "%s" if it goes first, and alone: %s' % (
                    row['name'], row['first'], alone.summary))

    def _move(self, row: abc.Mapping[str, Any]) -> scene.Outcome:
        """Make a move, and wait until nova-compute has reported it."""
        at = self._scene
        # What cannot be moved has no operation.
        operation = row['operation'] or self.operation or LIVE
        outcome = servers.Move(at, row['server'], operation).make()
        if outcome.hosts and operation == COLD:
            servers.confirm(at, row['server'])
        changed = set(outcome.hosts)
        if changed and operation != EVACUATE:
            changed.add(SOURCE)
        reports.wait(at, *sorted(changed))
        return outcome

    def _count(self, flavor: str, zone: str) -> None:
        """Create servers until nova finds no host, or one too many."""
        at = self._scene

        def create() -> scene.Outcome:
            return servers.Create(
                at, flavor, zone, values=filling.NO_NETWORK).make()

        found = at.explain(['--flavor', flavor, '--zone', zone, '--project',
                            at.nova.get_project_id(), '--count', 'all'])
        self.fitting, number = found.summary, found.document['count']
        outcome = create()
        while outcome.hosts and self.created <= number:
            self.created += 1
            reports.wait(at, *outcome.hosts)
            outcome = create()
        if self.created != number or scene.NO_HOST not in outcome.message:
            self.problems.append('explained %d servers, nova %s after %d' % (
                number, outcome, self.created))
        if found.status != (not number):
            self.problems.append('exit status %d' % found.status)


def _fits(row: abc.Mapping[str, Any], outcome: scene.Outcome) -> bool:
    """Check whether nova has done what a row of the prediction says."""
    if row['kind'] == FOUND:
        possible = {row['destination'], *row['same_weight']}
        return bool(outcome.hosts) and outcome.hosts <= possible
    refused = scene.NO_HOST in outcome.message
    return not outcome.hosts and refused == (row['kind'] == NO_HOST)
