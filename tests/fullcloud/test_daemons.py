# SPDX-License-Identifier: Apache-2.0
"""Processes identified by a pid in a file."""

import contextlib
import os
import pathlib
import socket
import sys

import fixtures
import psutil
import testtools

from tests.cloud import processes
from tests.fullcloud import daemons

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'input()'],
                         stdin=subprocess.PIPE)
print(child.pid, flush=True)
child.wait()
"""
# Its child keeps the port open for a while after its end.
LISTENER = """
import os, socket, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', %d))
here, there = os.pipe()
if os.fork():
    time.sleep(600)
os.setsid()
os.close(there)
listener.listen()
os.read(here, 1)
time.sleep(0.5)
"""


def reap(pid):
    """Wait for a child, unless Popen has already done that.

    Popen does so when its object is collected after the end of the process.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


class TestDaemon(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def daemon(self, text, port=0):
        """Start a Python program that runs until the test ends."""
        made = daemons.Daemon('it', [sys.executable, '-c', text],
                              str(self.folder / 'it.log'), {}, port)
        made.start()
        self.addCleanup(reap, made.pid)
        self.addCleanup(made.kill)
        return made

    def test_killed_with_its_children(self):
        """Stopping a process also kills its children."""
        daemon = self.daemon(PARENT)
        log = pathlib.Path(daemon.log)
        daemon.wait(log.read_text, 'did not tell its child')
        child = psutil.Process(int(log.read_text()))
        daemons.stop([daemon])
        self.assertFalse(daemon.alive())
        child.wait(timeout=10)

    def test_killed_it_leaves_its_port(self):
        """The port of a killed process is free at once."""
        port, = processes.free_ports(1)
        daemon = self.daemon(LISTENER % port, port)
        daemon.wait_ready()
        daemon.kill()
        socket.create_server(('127.0.0.1', port)).close()

    def test_another_process_with_its_number_lives(self):
        """Another process with that pid is not alive, and not stopped."""
        other = self.daemon('import time; time.sleep(600)')
        daemon = daemons.Daemon(**vars(other) | {
            'created': other.created - 100})
        self.assertFalse(daemon.alive())
        daemons.stop([daemon])
        self.assertTrue(other.alive())

    def test_death_is_told_with_the_log(self):
        """The error has the reason, and the path of the log."""
        daemon = self.daemon('import sys; sys.exit("no room left")')
        error = self.assertRaises(processes.CloudError, daemon.wait,
                                  lambda: False, 'did not answer')
        self.assertIn('it has died', str(error))
        self.assertIn('no room left', str(error))
        self.assertIn(daemon.log, str(error))
