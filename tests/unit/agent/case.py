# SPDX-License-Identifier: Apache-2.0
"""A journal and the parts of an agent, with in-memory nova and placement."""

import threading

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror import exceptions
from tests import patience
from tests.unit import doubles

REFUSED = exceptions.ServiceUnreachable('refused')
TIMEOUT = patience.seconds(120)


class Recorder:
    """A recorder in place of the agent's metrics."""

    def __init__(self):
        self.calls = []
        self._changed = threading.Condition()

    def __getattr__(self, name):
        def call(*args, **kwargs):
            with self._changed:
                self.calls.append((name, *args, *kwargs.values()))
                self._changed.notify_all()

        return call

    def last(self, name):
        return [call[1:] for call in self.calls if call[0] == name][-1]

    def wait_for(self, *expected):
        """Wait until these calls were made, in any order, from now on."""
        with self._changed:
            start = len(self.calls)
            if not self._changed.wait_for(
                    lambda: all(one in self.calls[start:]
                                for one in expected),
                    TIMEOUT):
                raise AssertionError('%s are not in %s' % (
                    expected, self.calls[start:]))


class AgentTest(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.figures = Recorder()
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.options = self.conf.aggregate_mirror
        self.drain = self.new_drain()

    def new_drain(self):
        return drain.Drain(
            self.conf, self.journal.rows, self.reconciler, self.figures,
            now=lambda: self.clock)

    def break_all(self, error=REFUSED):
        for node in self.nova.nodes:
            self.placement.broken['GET', node] = error
        self.placement.broken['PROBE', ''] = error

    def left(self):
        return self.journal.rows.all()
