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

from tests.cloud import loopback
from tests.cloud import processes

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


class TestProcess(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def process(self, text, port=0):
        """Start a Python program that runs until the test ends."""
        made = processes.Process('it', [sys.executable, '-c', text],
                                 str(self.folder / 'it.log'), {}, port)
        made.start()
        self.addCleanup(reap, made.pid)
        self.addCleanup(made.kill)
        return made

    def test_killed_with_its_children(self):
        """Stopping a process also kills its children."""
        process = self.process(PARENT)
        log = pathlib.Path(process.log)
        process.wait(log.read_text, 'did not tell its child')
        child = psutil.Process(int(log.read_text()))
        processes.stop([process])
        self.assertFalse(process.alive())
        child.wait(timeout=10)

    def test_port_of_a_killed_process_is_free(self):
        """The port of a killed process is free at once."""
        port, = loopback.free_ports(1)
        process = self.process(LISTENER % port, port)
        process.wait_ready()
        process.kill()
        socket.create_server(('127.0.0.1', port)).close()

    def test_another_process_with_its_pid_is_not_killed(self):
        """Another process with that pid is not alive, and not stopped."""
        other = self.process('import time; time.sleep(600)')
        process = processes.Process(**other.to_dict() | {
            'created': other.created - 100})
        self.assertFalse(process.alive())
        processes.stop([process])
        self.assertTrue(other.alive())

    def test_death_is_reported_with_the_log(self):
        """The error has the reason, and the path of the log."""
        process = self.process('import sys; sys.exit("no room left")')
        error = self.assertRaises(processes.CloudError, process.wait,
                                  lambda: False, 'did not answer')
        self.assertIn('it has died', str(error))
        self.assertIn('no room left', str(error))
        self.assertIn(process.log, str(error))
