# SPDX-License-Identifier: Apache-2.0
"""Random SIGKILLs of nova-api and of two agents that share only a database.

Children of this process are nova-api: they have its code, nova's databases on
disk, and placement behind a socket. The agents are separate processes, each
with its own state_path. ``AGGREGATE_MIRROR_KILLS`` is the number of kills; if
it is set, placement must also be in sync within the promised time.
"""

import collections
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import time

import fixtures as base_fixtures
from nova import context as nova_context
from nova import objects
import testscenarios
import testtools
from testtools import content

from nova_aggregate_mirror.journal.db import engine
from tests import databases
from tests import fixtures
from tests.functional import test_agent
from tests import placement_service

CONF = fixtures.CONF
KILLS = os.environ.get('AGGREGATE_MIRROR_KILLS')
COUNT = int(KILLS or 10)
SEED = int(os.environ.get('AGGREGATE_MIRROR_SEED', 0)) or time.time_ns()
# Seconds. The promise is leader_lease + 2 x inline_timeout and a few more.
LEASE = 3
INLINE = 1.0
PROMISED = LEASE + 2 * INLINE + 5
PATIENCE = 120
# Concurrent requests, each on a host of its own.
AT_ONCE = 6
CALLS = 5
NOVA_CONF = """
[DEFAULT]
state_path = %(state)s
[api_database]
connection = %(api)s
[aggregate_mirror]
metrics_port = 0
sync_interval = 86400
leader_lease = %(lease)d
inline_timeout = %(inline)g
[aggregate_mirror_database]
connection = %(journal)s
[placement]
auth_type = admin_token
endpoint = %(placement)s
token = %(token)s
"""


class Agent:
    """An agent process, which is restarted after it was killed."""

    def __init__(self, directory, conf):
        self.conf = directory / 'nova.conf'
        self.conf.write_text(conf)
        self._log = directory / 'log'
        self.start()

    def start(self):
        with open(self._log, 'ab') as log:
            self._process = subprocess.Popen(
                [*test_agent.COMMAND, '--config-file', str(self.conf)],
                stdout=log, stderr=log)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def log(self):
        return self._log.read_text()


class TestKills(testscenarios.WithScenarios, testtools.TestCase):

    # An SQLite journal is for a single host.
    scenarios = [one for one in databases.SCENARIOS if one[0] != 'sqlite']

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.addDetail('seed', content.text_content(str(SEED)))
        self.journal = databases.create(self, self.kind)
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        for group, name, value in (
                ('aggregate_mirror_database', 'connection', self.journal),
                ('aggregate_mirror', 'inline_timeout', INLINE)):
            CONF.set_override(name, value, group)
            self.addCleanup(CONF.clear_override, name, group)
        engine.Database(CONF).migrate()
        self.zones = [self.cloud.create_aggregate('zone-%d' % number)
                      for number in range(3)]
        self.hosts = [self.cloud.create_host('h%d' % number,
                                             nodes=1 + number % 2)
                      for number in range(AT_ONCE)]
        self.agents = [self.start_agent() for _ in range(2)]
        self.kills = collections.Counter()
        self.seconds = []

    def start_agent(self):
        directory = pathlib.Path(self.useFixture(base_fixtures.TempDir()).path)
        agent = Agent(directory, NOVA_CONF % {
            'state': directory, 'lease': LEASE, 'inline': INLINE,
            'api': CONF.api_database.connection, 'journal': self.journal,
            'placement': self.cloud.placement.url,
            'token': placement_service.TOKEN})
        self.addCleanup(agent.kill)
        self.addOnException(lambda _error: self.addDetail(
            str(agent.conf), content.text_content(agent.log())))
        return agent

    def some_operation(self, host):
        """Add or remove a host, depending on its membership."""
        zone = self.random.choice(self.zones)
        members = objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), zone.uuid).hosts
        call = (self.cloud.remove_host if host.name in members
                else self.cloud.add_host)
        return lambda: call(zone, host)

    def usual_duration(self):
        """Measure the median duration of a call in seconds."""
        seconds = []
        for _call in range(CALLS):
            operation = self.some_operation(self.hosts[0])
            start = time.monotonic()
            operation()
            seconds.append(time.monotonic() - start)
        return statistics.median(seconds)

    def killed(self, operations, longest):
        """Run each in a child that is killed at a random moment."""
        fork = multiprocessing.get_context('fork')
        children = [fork.Process(target=operation, daemon=True)
                    for operation in operations]
        for child in children:
            child.start()
        end = time.monotonic()
        moments = sorted(self.random.uniform(0, longest) for _ in children)
        for child, moment in zip(children, moments):
            child.join(max(0.0, end + moment - time.monotonic()))
            child.kill()
        for child in children:
            child.join()
            self.kills['nova-api'] += child.exitcode < 0

    def healed(self):
        """Wait until placement equals nova; record how long that took."""
        start = time.monotonic()
        while True:
            # Each commit of a killed child lands before this read.
            drift = self.cloud.drift()
            seconds = time.monotonic() - start
            if not drift:
                self.seconds.append(seconds)
                return
            self.assertLess(seconds, PATIENCE, drift)
            time.sleep(0.05)

    def test_hosts(self):
        """Placement equals nova soon after a process was killed."""
        self.healed()
        longest = 1.5 * AT_ONCE * self.usual_duration()
        while self.kills.total() < COUNT:
            victim = None
            if self.random.random() < 0.3:
                victim = self.random.choice(self.agents)
                victim.kill()
                self.kills['agent'] += 1
            self.killed([self.some_operation(host) for host in self.hosts],
                        longest)
            self.healed()
            if victim:
                victim.start()
        self.report()
        if KILLS:
            self.assertLess(max(self.seconds), PROMISED)

    def report(self):
        """Report how long placement took to equal nova."""
        text = '%s: %s; placement equal to nova after %.1f s (median), ' \
            '%.1f s (longest of %d)' % (
                self.kind, dict(self.kills), statistics.median(self.seconds),
                max(self.seconds), len(self.seconds))
        self.addDetail('kills', content.text_content(text))
        if KILLS:
            print(text, flush=True)
