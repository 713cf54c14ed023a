# SPDX-License-Identifier: Apache-2.0
"""The recovery after an outage of placement.

While placement is unavailable, every host is added to an aggregate through a
real nova-api: with this package and a running agent, and with stock nova.
Stock nova's responses are ignored: the benchmark fails unless the hosts are
members in nova in both cases. The measurement starts at placement's first
response after the outage. With this package it ends when placement is in sync
with nova, without any action. Stock nova has no automatic repair, so that
"nova-manage placement sync_aggregates" is run immediately, as if an operator
had waited for it, and the measurement ends with the command. Placement must
then be in sync with nova in both cases. The bare requests are measured in turn
with them.
"""

import collections
from collections import abc
from concurrent import futures
import dataclasses
import functools
import statistics
import time

from keystoneauth1 import adapter

from benchmarks import add_host
from benchmarks import agent_pass
from benchmarks import commands
from benchmarks import figures
from benchmarks import floor
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud
from tests.cloud import processes
from tests import patience

AGGREGATES = 20
CLIENTS = 4
"""Parallel clients: as many as nova-api has threads."""
OK = 200
TIMEOUT = patience.seconds(600)
ANSWERED = 'add-host answered %d'


@dataclasses.dataclass(frozen=True)
class Run:
    """Figures of an outage and the recovery."""

    seconds: float
    """From placement's first response until it is in sync with nova."""
    placement_cpu_seconds: float
    """CPU time of placement meanwhile, without its database."""
    placement_requests: int
    by_journal: float = 0
    """Associations that the agent added for journal rows."""
    milliseconds: abc.Sequence[float] = (figures.UNKNOWN,)
    """Durations of the calls while placement was unavailable."""
    statuses: abc.Mapping[int, int] = dataclasses.field(default_factory=dict)
    """Number of their responses by HTTP status; none if nothing was called."""


FIGURES = (
    figures.Figure('add-host during the outage, ms',
                   lambda run: statistics.median(run.milliseconds)),
    figures.Figure('slowest add-host, ms', lambda run: max(run.milliseconds)),
    figures.Figure('until placement is in sync, s',
                   lambda run: run.seconds, 1),
    figures.PLACEMENT_CPU, figures.REQUESTS,
    figures.Figure('hosts mirrored by the journal',
                   lambda run: run.by_journal))


class Outage:
    """Outages with this package and stock nova, in the same cloud."""

    def __init__(self, running: cloud.Cloud, size: workload.Size) -> None:
        self._running = running
        self._placement = running.process('placement')
        self._load = workload.Workload(running, size)
        self._runner = commands.Commands(running)
        self._floor = floor.Floor(running)
        self._wanted = size.hosts * size.memberships

    def ours(self) -> Run:
        """Run an outage that the agent repairs from the journal."""
        self._load.disband()
        agent = agent_pass.Agent(self._running)
        try:
            calls = self._add_hosts(self._running.nova())
            self._wait('the journal has every operation', lambda: (
                agent.read().pending == self._wanted))
            before = agent.read().by_journal
            start, cpu = self._return()
            self._wait('placement is in sync with nova', lambda: (
                self._load.associations() == self._wanted))
            seconds = time.monotonic() - start
            cpu = self._placement.cpu_seconds() - cpu
            requests = len(self._runner.traffic.since())
            self._wait('the journal is empty', lambda: (
                not agent.read().pending))
            by_journal = agent.read().by_journal - before
        finally:
            agent.stop()
        self._load.check()
        return Run(seconds, cpu, requests, by_journal, *calls)

    def stock(self) -> Run:
        """Run an outage followed by nova-manage when placement answers."""
        self._load.disband()
        with services.stock_nova_api(self._running) as nova:
            calls = self._add_hosts(nova)
            _start, cpu = self._return()
            took = self._runner.sync(commands.STOCK)
        self._load.check()
        return Run(took.seconds, self._placement.cpu_seconds() - cpu,
                   took.placement_requests, 0, *calls)

    def floor(self) -> Run:
        """Send the bare requests, with nothing mirrored."""
        self._load.empty()
        run = self._floor.sync((), self._load.wanted())
        self._load.check()
        return Run(run.seconds, run.placement_cpu_seconds,
                   run.placement_requests, figures.UNKNOWN)

    def _add_hosts(self, nova: adapter.Adapter
                   ) -> tuple[list[float], abc.Mapping[int, int]]:
        """Add every host meanwhile; return the last two fields of ``Run``."""
        numbers = {each['uuid']: each['id'] for each in
                   nova.get('/os-aggregates').json()['aggregates']}
        paths = [('/os-aggregates/%d/action' % numbers[aggregate], host)
                 for aggregate, hosts in self._load.members.items()
                 for host in hosts]
        path, host = paths[0]
        for action in add_host.ACTIONS:
            # Nova-api has used placement before the outage.
            nova.post(path, json={action: {'host': host}})
        self._placement.stop()
        statuses: list[int] = []

        def add(path: str, host: str) -> None:
            statuses.append(nova.post(path, json={'add_host': {'host': host}},
                                      raise_exc=False).status_code)

        with futures.ThreadPoolExecutor(CLIENTS) as pool:
            times = list(pool.map(lambda one: add_host.timed(
                lambda: add(*one)), paths))
        members = sum(len(each['hosts']) for each in nova.get(
            '/os-aggregates').json()['aggregates'])
        if members != self._wanted:
            raise services.Void('Nova has %d of %d hosts in aggregates' % (
                members, self._wanted))
        return times, collections.Counter(statuses)

    def _return(self) -> tuple[float, float]:
        """Start placement; return its start and its CPU time."""
        self._running.start('placement')
        self._runner.traffic.since()
        return time.monotonic(), self._placement.cpu_seconds()

    def _wait(self, what: str, holds: abc.Callable[[], bool]) -> None:
        if not patience.wait(holds, TIMEOUT):
            raise processes.CloudError('\n'.join([
                'Timed out after %d s waiting until %s; the end of the '
                'agent\'s log:' % (TIMEOUT, what),
                *self._running.agent_lines()[-10:]]))


def _answered(run: Run, status: int) -> float:
    return run.statuses.get(status, 0) if run.statuses else figures.UNKNOWN


def measure(hosts: int, pairs: int) -> str:
    """Run the benchmark."""
    with services.running() as running:
        trial = Outage(running, workload.Size(hosts, 1, AGGREGATES))
        measured = figures.alternate(
            pairs, trial.ours, trial.stock, trial.floor)
    state, lines = '%d hosts' % hosts, figures.Lines(
        'stock nova, then nova-manage')
    lines.compare(state, measured, [figures.Figure(
        ANSWERED % status, functools.partial(_answered, status=status),
        compared=False)
        for status in sorted({OK}.union(*(
            run.statuses for pair in measured
            for run in (pair.theirs, pair.ours))))])
    lines.compare(state, measured, FIGURES)
    return lines.table(
        '%d hosts added during an outage of placement, %d parallel clients, '
        'pairs of outages: %d' % (hosts, CLIENTS, pairs))
