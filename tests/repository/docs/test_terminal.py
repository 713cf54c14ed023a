# SPDX-License-Identifier: Apache-2.0
"""systemctl and sudo on a cloud's terminal; the cloud is a recorder."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest

try:
    from tests.cloud.demo import terminal
    from tests.cloud import processes
except ImportError as exc:
    raise unittest.SkipTest('no cloud without %s' % exc.name) from exc


class Recorder:
    """A cloud that records what is done with its processes."""

    def __init__(self, directory, running):
        self.config = types.SimpleNamespace(
            directory=directory, path=lambda name: str(directory / name))
        self.running = set(running)
        self.calls = []

    def environment(self):
        return {'OS_USERNAME': "o'admin"}

    def process(self, name):
        return types.SimpleNamespace(
            alive=lambda: name in self.running,
            send=lambda number: self.calls.append((number, name)))

    def start(self, name):
        if name == 'placement':
            raise processes.CloudError('placement died while starting')
        self.calls.append(('start', name))
        self.running.add(name)

    def stop(self, name):
        self.calls.append(('stop', name))
        self.running.remove(name)


class TestTerminal(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))

    def serve(self, *running):
        self.cloud = Recorder(self.directory, running)
        self.openrc = terminal.write_openrc(self.cloud)
        self.services = services = terminal.Services(self.cloud)
        serving = threading.Thread(target=services.serve, daemon=True)
        serving.start()
        self.addCleanup(serving.join)
        self.addCleanup(services.close)

    def type(self, line):
        """Run a line in a shell with openrc; return status and output."""
        done = subprocess.run(
            ['bash', '-c', '. %s; %s' % (self.openrc, line)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_services_start_and_stop_once(self):
        """As with systemd, a running service is not started again."""
        self.serve('nova-api-1')
        agent = terminal.AGENT
        for line in ('daemon-reload', 'restart nova-api',
                     'enable %s' % agent, 'enable --now %s' % agent,
                     'start %s.service' % agent, 'reload %s' % agent,
                     'disable --now %s' % agent, 'stop %s' % agent):
            self.assertEqual((0, ''), self.type('systemctl ' + line), line)
        self.assertEqual(
            [('stop', 'nova-api-1'), ('start', 'nova-api-1'),
             ('start', 'agent-1'), (signal.SIGHUP, 'agent-1'),
             ('stop', 'agent-1')], self.cloud.calls)

    def test_an_agent_that_runs_already(self):
        self.serve('agent-1')
        self.type('systemctl enable --now %s' % terminal.AGENT)
        self.assertEqual([], self.cloud.calls)

    def test_errors_are_reported(self):
        self.serve()
        status, said = self.type('systemctl restart nova-compute')
        self.assertEqual(1, status)
        self.assertIn('knows start', said)
        status, said = self.type('systemctl restart placement')
        self.assertEqual((1, 'placement died while starting\n'),
                         (status, said.replace('\n\n', '\n')))

    def test_stopped_cloud(self):
        """systemctl fails after that, and never acts on the machine."""
        self.serve()
        self.services.close()
        status, said = self.type('systemctl restart nova-api')
        self.assertEqual(1, status)
        self.assertIn('the cloud does not run any more', said)

    def test_sudo(self):
        """Any user's home has nova.conf; sudo's own options are ignored."""
        self.serve()
        self.assertEqual(
            (0, "%s -n o'admin\n" % self.directory),
            self.type('sudo -E -u nova bash -c \'echo $HOME -n '
                      '"$OS_USERNAME"\''))

    def test_the_environment(self):
        self.serve()
        self.assertEqual((0, '%s\n' % sys.prefix), self.type('echo $NOVA'))
