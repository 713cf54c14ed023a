# SPDX-License-Identifier: Apache-2.0
"""Wait of a command until placement has hosts in all their aggregates."""

import argparse
from collections import abc
import contextlib
import dataclasses
import shlex
import sys
import time

from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import survey

TIMEOUT = 300
# Least seconds between two attempts. Nova-api cannot list the compute nodes of
# a single host, and needs some seconds to list thousands.
INTERVAL = 1.0
LEAST, LAST = 3.0, 10.0
"""Limits of the seconds that an attempt at the end may take."""
# Most seconds of an attempt. Nova-api may wait 60 seconds for a cell, twice.
LONGEST = 150.0
PATIENCE = 30.0
"""Seconds to wait for a provider while placement answers other requests."""


def add_timeout(parser: argparse.ArgumentParser, metavar: str) -> None:
    parser.add_argument(
        '--timeout', type=cli.number(cli.LONGEST),
        default=TIMEOUT, metavar=metavar,
        help='maximum time to wait in seconds, from 1 to %d; the default is '
             '%d; an attempt at its end may take as long again, but at least '
             '%d and at most %d seconds' % (
                 cli.LONGEST, TIMEOUT, LEAST, LAST))


def run(nova: reconcile.Source, placement: client.Client,
        hosts: frozenset[str], timeout: float, repair: str,
        now: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep) -> int:
    """Wait until every compute node is in all aggregates of its host.

    What is newly missing is printed at once. Retriable errors are retried
    until the timeout, but for a refused account.

    :param timeout: seconds after which no further attempt is made
    :param repair: a command that syncs the host that is appended
    :returns: the exit status
    :raises MirrorError: a permanent error of nova or placement, or a refusal
    """
    cloud = provider_writes.Context(journal.Ledger(), nova, placement)
    began, nodes = now(), frozenset[str]()
    reported: abc.Set[object] = frozenset()
    while True:
        start = now()
        allowed = min(LONGEST, began + timeout - start)
        with deadline.within(max(LEAST, min(LAST, timeout), allowed)):
            sync = full_sync.of_hosts(cloud, hosts, nodes, PATIENCE)
            seconds = now() - began
            if seconds >= timeout:
                sync = _diagnosed(cloud, sync)
        errors = [sync.not_compared] if sync.not_compared else (
            sync.outcome.failed.values())
        for error in errors:
            # A contradiction passes if nova is moving a node between hosts.
            may_pass = not isinstance(error, exceptions.Permanent) or (
                isinstance(error, exceptions.Contradiction))
            if error.is_refusal or not may_pass:
                raise error
        missing = _missing(sync, hosts, repair)
        if not missing or seconds >= timeout:
            break
        # A failure stays the same while its text changes.
        current = {
            (problem.subject, problem.key): problem for problem in missing}
        cli.tell(cli.first_lines(
            str(problem) if problem.failure else problem.text
            for key, problem in current.items() if key not in reported))
        reported = current.keys()
        # Placement can be asked for these before nova is read. One that nova
        # does not have any more is searched for in all cells, but only once.
        nodes = sync.nova.nodes_of(hosts) & (
            sync.outcome.missing | sync.outcome.current.keys())
        sleep(min(max(INTERVAL, now() - start), timeout - seconds))
    if missing:
        cli.tell(['Timeout after %.0f s' % seconds,
                  *cli.first_lines(map(str, missing))])
        return min(problem.status for problem in missing)
    _report(sync, seconds)
    return exit_status.OK


def _diagnosed(cloud: provider_writes.Context, sync: result.Result
               ) -> result.Result:
    """Add why hosts lack compute nodes or providers, as a sync reports it.

    Only this asks all cells, and placement for names and, if no compute node
    of the hosts has a provider, for all providers.
    """
    nova = sync.nova
    if sync.outcome.pending and not sync.outcome.current:
        # After another error, what is missing is printed without its cause.
        error = exceptions.failure_of(lambda: survey.check_placement(
            cloud.placement, cloud.placement.providers(),
            cloud.nova.read_all()))
        if isinstance(error, exceptions.WrongPlacement):
            raise error
    if nova.unmapped_or_nodeless() and not nova.obstacles:
        with contextlib.suppress(exceptions.NovaUnavailable):
            nova = dataclasses.replace(
                nova, obstacles=cloud.nova.read_all().obstacles)
    full_sync.add_contradictions(sync.outcome, survey.name_conflicts(
        cloud.nova, cloud.placement, sync.outcome.pending, nova))
    return dataclasses.replace(sync, nova=nova)


def _report(sync: result.Result, seconds: float) -> None:
    """Print what each host is in, and which associations are stale."""
    names = sync.nova.aggregates
    for host, uuids in sorted(sync.nova.members.items()):
        count = plurals.count(len(uuids), 'aggregate')
        text = ', '.join(sorted(
            '%s (%s)' % (names[uuid], uuid) for uuid in uuids))
        cli.tell(['Host %s: placement has it in %s after %.0f s: %s' % (
            host, count, seconds, text)], sys.stdout)
    cli.tell(cli.first_lines(
        'Stale: %s: run a full sync with --prune' % association
        for association in sync.select(result.State.STALE)))


def _missing(sync: result.Result, hosts: frozenset[str], repair: str
             ) -> list[problems.Problem]:
    """List what keeps the hosts from being in all their aggregates."""
    missing, memberless = list(sync.problems), frozenset[str]()
    if nova := sync.outcome.truth:
        memberless = hosts.difference(nova.members, *(
            aggregate.hosts for aggregate in nova.invalid_aggregates))
    for host in sorted(memberless):
        step = 'run "openstack aggregate add host AGGREGATE %s"'
        missing.append(problems.Problem(
            host, 'Nova has no host %s in any aggregate' % host,
            step=step % shlex.quote(host), status=exit_status.COULD_NOT_RUN))
    for association in sync.select(result.State.MISSING):
        host = shlex.quote(association.hosts[0])
        missing.append(problems.Problem(
            str(association), 'Missing: %s' % association,
            'run "%s %s"' % (repair, host), exit_status.DRIFT))
    return missing
