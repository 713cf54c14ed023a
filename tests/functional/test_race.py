# SPDX-License-Identifier: Apache-2.0
"""Concurrent nova-api processes, an agent, and other placement clients.

Nova's own methods take turns; what this package does before and after them
does not. Nova's databases are SQLite files here: if two workers remove and
add the same host at the same time, stock nova answers 500 to one.
"""

import collections
import functools
import multiprocessing
import os
import pathlib
import random
import time
import uuid

import fixtures as base_fixtures
from nova.compute import api as compute_api
import requests
import testtools

from tests import databases
from tests import fixtures
from tests import placement_service
from tests import processes

WORKERS = 8
SECONDS = float(os.environ.get('AGGREGATE_MIRROR_TEST_RACE_SECONDS', 15))
# The longest duration, for machines so slow that not every kind of response
# was seen by then.
LONGEST = 20 * SECONDS
REST = 0.5
# Nova's responses when another worker has just added or removed the host.
ANSWERS = {'add_host': {200, 409}, 'remove_host': {200, 404}}
KINDS = [(action, status) for action, statuses in ANSWERS.items()
         for status in sorted(statuses)]
WRITERS = (('add_aggregate',),
           ('add_aggregate', 'set_inventory', 'set_traits'),
           ('add_aggregate_without_generation',))
WITHOUT_GENERATION = 'placement 1.1'


class Writer:
    """Another placement client that changes providers all the time.

    :param mutex: shared by the writers of aggregates: a writer without a
        generation would otherwise undo the changes of the others
    """

    def __init__(self, url, mutex, chance):
        self._url = url
        self._mutex = mutex
        self._chance = chance
        self._session = requests.Session()
        # Ignore the proxy settings of the machine that runs the tests.
        self._session.trust_env = False
        self.written = []
        """Provider and aggregate, of what was written with a generation."""

    def call(self, method, provider, what, body=None,
             version=placement_service.MICROVERSION):
        return self._session.request(
            method, '%s/resource_providers/%s/%s' % (
                self._url, provider, what),
            json=body, timeout=60, headers={
                'X-Auth-Token': placement_service.TOKEN,
                'OpenStack-API-Version': version,
                'Accept': 'application/json'})

    def write(self, provider, what, change):
        """Read, change and write with the generation, until it succeeds."""
        while True:
            state = self.call('GET', provider, what).json()
            change(state)
            answer = self.call('PUT', provider, what, state)
            if answer.status_code != 409:
                answer.raise_for_status()
                return

    def add_aggregate(self, provider):
        foreign = str(uuid.uuid4())
        with self._mutex:
            self.write(provider, 'aggregates', lambda state: state[
                'aggregates'].append(foreign))
        self.written.append((provider, foreign))

    def add_aggregate_without_generation(self, provider):
        """Write as neutron-lib does, with microversion 1.1."""
        with self._mutex:
            state = self.call('GET', provider, 'aggregates',
                              version=WITHOUT_GENERATION).json()
            self.call('PUT', provider, 'aggregates',
                      state['aggregates'] + [str(uuid.uuid4())],
                      version=WITHOUT_GENERATION).raise_for_status()

    def set_inventory(self, provider):
        self.write(provider, 'inventories', lambda state: state.update(
            inventories={'VCPU': {'total': self._chance.randint(1, 99)}}))

    def set_traits(self, provider):
        traits = self._chance.sample(
            ('HW_CPU_X86_SSE', 'HW_CPU_X86_AVX', 'COMPUTE_NODE'), 2)
        self.write(provider, 'traits',
                   lambda state: state.update(traits=traits))


class TestRace(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.mutex = multiprocessing.get_context('fork').Lock()
        self.seen = multiprocessing.get_context('fork').Array(
            'b', len(KINDS), lock=False)
        for path in pathlib.Path(fixtures.CONF.state_path).glob('*.sqlite'):
            # Nova's readers must not lock its writer out.
            databases.execute('sqlite:///%s' % path,
                              'PRAGMA journal_mode = WAL')
        self.useFixture(fixtures.StockNova())
        turn = multiprocessing.get_context('fork').Lock()
        for name in ('add_host_to_aggregate', 'remove_host_from_aggregate'):
            self.take_turns(name, turn)
        self.useFixture(fixtures.MirroredNova())
        # A placement that all of them share is slow at times, and a worker in
        # back-off would not take part in the race.
        self.cloud.nova.conf.config(
            inline_backoff=0.0, max_removed_share=1.0,
            group='aggregate_mirror')
        self.aggregates = [self.cloud.create_aggregate('aggregate%d' % number)
                           for number in range(4)]
        self.hosts = [self.cloud.create_host('host%d' % number,
                                             nodes=1 + number % 2)
                      for number in range(12)]
        self.nodes = [node for host in self.hosts for node in host.nodes]

    def take_turns(self, name, turn):
        stock = getattr(compute_api.AggregateAPI, name)

        @functools.wraps(stock)
        def in_turn(*args, **kwargs):
            with turn:
                return stock(*args, **kwargs)

        self.useFixture(base_fixtures.MonkeyPatch(
            'nova.compute.api.AggregateAPI.' + name, in_turn))

    def goes_on(self, began):
        """Check whether to continue: some response has not been seen yet."""
        now = time.monotonic()
        return now < began + SECONDS or (
            not all(self.seen) and now < began + LONGEST)

    def nova_api(self, number, began):
        """Run a worker that adds and removes its own and other hosts."""
        chance = random.Random(number)
        own = self.hosts[number % len(self.hosts)]
        answers = collections.Counter()
        while self.goes_on(began):
            action = chance.choice(list(ANSWERS))
            host = own if chance.random() < 0.5 else chance.choice(self.hosts)
            answer = self.cloud.nova.request(
                'POST', '/os-aggregates/%d/action'
                % chance.choice(self.aggregates).id,
                {action: {'host': host.name}})
            kind = action, answer.status_code
            answers[kind] += 1
            if kind in KINDS:
                self.seen[KINDS.index(kind)] = True
        return answers

    def write(self, number, began, changes):
        chance = random.Random(number)
        writer = Writer(self.cloud.placement.url, self.mutex, chance)
        while self.goes_on(began):
            getattr(writer, chance.choice(changes))(chance.choice(self.nodes))
            # Let the other writers get the lock, too.
            time.sleep(0.01)
        return writer.written

    def work(self, began):
        """Run an agent that drains and syncs all the time."""
        worker = fixtures.Agent()
        while self.goes_on(began):
            worker.drain()
            worker.sync()
            # Without a pause it would starve the other placement clients.
            time.sleep(REST)

    def test_everything_at_once(self):
        """All writes are there afterwards, and no call failed."""
        began = time.monotonic()
        work = [functools.partial(self.nova_api, number, began)
                for number in range(WORKERS)]
        work += [functools.partial(self.work, began)] + [
            functools.partial(self.write, number, began, changes)
            for number, changes in enumerate(WRITERS)]
        *answers, _agent, written, more, _none = processes.at_once(
            len(work), lambda number: work[number]())
        written += more
        answers = sum(answers, collections.Counter())
        self.assertEqual(set(KINDS), set(answers))

        worker = fixtures.Agent()
        worker.drain()
        self.assertEqual([], worker.journal.rows.all())
        # A write without a generation is repaired by the next sync.
        worker.sync()
        self.assertEqual([], self.cloud.drift())
        lost = [(provider, foreign) for provider, foreign in written
                if foreign not in self.cloud.placement.aggregates(provider)]
        self.assertEqual([], lost)
        self.assertNotEqual([], written)
