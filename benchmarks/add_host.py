# SPDX-License-Identifier: Apache-2.0
"""add-host and remove-host through REST, with and without hooks.

Two nova-api processes share a cloud: the first with this package's hooks and
journal, the second with nova's own mirroring. They are called in turn,
sequentially, and with them the bare requests. The ratio is computed per pair,
with new processes for each pair; above 1 this package is faster.

Each pair runs at a different stack depth. CPython allocates frames in chunks
of 16 KB, and a loop that calls across the end of a chunk takes many times as
long: depending on the depth, this cost nova 5 of 45 ms.
"""

from collections import abc
import contextlib
import functools
import statistics
import time
import uuid

from keystoneauth1 import adapter

from benchmarks import agent_pass
from benchmarks import figures
from benchmarks import floor
from benchmarks import services
from tests.cloud import cloud
from tests.cloud import programs
from tests.cloud import seed

WARM_UP = 5
CHUNK_OF_FRAMES = 117
"""Number of empty frames that fill a chunk of CPython 3.11."""
ACTIONS = ('add_host', 'remove_host')
WALL = 'wall, ms'


def timed(call: abc.Callable[[], object]) -> float:
    """Return the duration of a call, in milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


class Calls:
    """Times of calls, which ``act`` makes, given the action and the host."""

    def __init__(self, act: abc.Callable[[str, str], object]) -> None:
        self.requests = 0.0
        """Placement requests per call."""
        self.times: dict[str, list[float]] = {action: [] for action in ACTIONS}
        self._act = act

    def call(self, host: str) -> None:
        """Add a host and remove it again, and record both durations."""
        for action in ACTIONS:
            self.times[action].append(
                timed(functools.partial(self._act, action, host)))

    def median(self, action: str) -> float:
        """Return the median call in milliseconds, without the warm-up."""
        return statistics.median(self.times[action][WARM_UP:])


def bare(running: cloud.Cloud, nodes: list[seed.Node]) -> Calls:
    """Return the bare requests to placement."""
    client, aggregate = floor.Floor(running), str(uuid.uuid4())
    providers = {node.host: node.uuid for node in nodes}
    aggregates = dict(zip(ACTIONS, ([aggregate], []), strict=True))
    return Calls(lambda action, host: client.associate(
        providers[host], aggregates[action]))


@contextlib.contextmanager
def of_nova(nova: adapter.Adapter, name: str) -> abc.Iterator[Calls]:
    """Create an aggregate, to which a nova-api adds hosts meanwhile."""
    path = '/os-aggregates/%d' % nova.post(
        '/os-aggregates', json={'aggregate': {'name': name}}
    ).json()['aggregate']['id']
    yield Calls(lambda action, host: nova.post(
        path + '/action', json={action: {'host': host}}))
    nova.delete(path)


def measure_pair(running: cloud.Cloud, nodes: list[seed.Node], calls: int,
                 frames: int) -> figures.Pair:
    """Run both nova-api processes, and call them in turn."""
    hosts = [node.host for node in nodes]
    server = functools.partial(programs.waitress, frames=frames)
    with running.another_nova_api('ours', {}, server) as ours, \
            services.stock_nova_api(running, server) as theirs, \
            of_nova(ours, 'ours') as our_calls, \
            of_nova(theirs, 'stock') as their_calls:
        pair = figures.Pair(our_calls, their_calls, bare(running, nodes))
        order = [pair.ours, pair.theirs, pair.floor]
        for number in range(WARM_UP + calls):
            for each in order:
                each.call(hosts[number % len(hosts)])
            # A B C C B A: gradual changes of the load affect all alike.
            order.reverse()
        counter = floor.Traffic(running.state.log('placement'))
        for each in order:
            counter.since()
            for host in hosts:
                each.call(host)
            each.requests = len(counter.since()) / len(hosts) / len(ACTIONS)
    return pair


def measure(pairs: int, calls: int) -> str:
    """Run the benchmark."""
    lines = figures.Lines('stock nova')
    with services.running() as running:
        nodes = running.seed_hosts(
            ['bench-%02d' % number for number in range(20)])
        # It binds the journal to this nova. Until then, each call has to check
        # that the journal belongs to no other nova.
        agent_pass.Agent(running).stop()
        measured = [measure_pair(
            running, nodes, calls, CHUNK_OF_FRAMES * pair // pairs)
            for pair in range(pairs)]
    for action in ACTIONS:
        lines.compare(action.replace('_', '-'), measured, [figures.Figure(
            WALL, functools.partial(Calls.median, action=action), 1)])
    lines.compare('either', measured, [figures.Figure(
        'placement requests', lambda each: each.requests, 1)])
    return lines.table(
        'Adding or removing a host, pairs of %d calls: %d; journal in an '
        'SQLite file' % (calls, pairs))
