# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven in its DevTools protocol over two pipes."""

import base64
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
from typing import Any

import fixtures
import testtools

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome',
            'google-chrome-stable')
OPTIONS = ('--headless=new', '--no-sandbox', '--disable-gpu',
           '--disable-dev-shm-usage', '--disable-background-networking',
           '--no-first-run', '--no-default-browser-check',
           # No name is resolved.
           '--host-resolver-rules=MAP * ~NOTFOUND', '--remote-debugging-pipe')


class Chromium(fixtures.Fixture):
    """A browser with one tab; ``find`` returns the program."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def _setUp(self) -> None:
        home = self.useFixture(fixtures.TempDir()).path
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # It reads from 3 and writes to 4, whichever our descriptors are.
        script = 'exec 3<&%d 4>&%d; exec "$@"' % (theirs_in, theirs_out)
        self._process = subprocess.Popen(
            ['bash', '-c', script, 'chromium', self._program, *OPTIONS,
             '--user-data-dir=%s' % home], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out), start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.addCleanup(self._end)
        self._numbers = itertools.count(1)
        self._left = b''
        self.events: list[dict[str, Any]] = []
        """Events received while waiting for a response."""
        self._session: dict[str, str] = {}
        target = self.call('Target.createTarget', url='about:blank')
        self._session = {'sessionId': self.call(
            'Target.attachToTarget', targetId=target['targetId'],
            flatten=True)['sessionId']}
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    def _end(self) -> None:
        # Including all processes that it has started.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and wait for its response."""
        number = next(self._numbers)
        message = json.dumps({'id': number, 'method': method,
                              'params': params, **self._session})
        os.write(self._out, message.encode() + b'\0')
        while True:
            message = self._read()
            if message.get('id') == number:
                if 'error' in message:
                    raise AssertionError('%s: %s' % (method, message['error']))
                return message['result']
            self.events.append(message)

    def open(self, path: pathlib.Path) -> None:
        """Load a file, and wait until it is loaded."""
        del self.events[:]
        self.call('Page.navigate', url=path.as_uri())
        while not any(event.get('method') == 'Page.loadEventFired'
                      for event in self.events):
            self.events.append(self._read())

    def look(self, width: int, height: int, scheme: str = 'light') -> None:
        """Emulate a window of this size with a preferred color scheme."""
        self.call('Emulation.setDeviceMetricsOverride', width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': scheme}])

    def press(self, key: str, code: int, text: str = '') -> None:
        """Press a key and release it."""
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, text=text,
                      windowsVirtualKeyCode=code)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; await a promise."""
        answer = self.call('Runtime.evaluate', expression=expression,
                           returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise AssertionError(answer['exceptionDetails'])
        return answer['result'].get('value')

    def screenshot(self, path: pathlib.Path) -> None:
        path.write_bytes(base64.b64decode(self.call(
            'Page.captureScreenshot', format='png')['data']))

    def told(self, method: str) -> list[dict[str, Any]]:
        """Return the events of a kind since the page was opened."""
        return [event['params'] for event in self.events
                if event.get('method') == method]

    def _read(self) -> dict[str, Any]:
        while b'\0' not in self._left:
            part = os.read(self._in, 1 << 16)
            if not part:
                raise AssertionError('%s has ended' % self._program)
            self._left += part
        message, self._left = self._left.split(b'\0', 1)
        return json.loads(message)


def find(test: testtools.TestCase) -> str:
    """Return the program; skip the test if no browser is installed."""
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    test.skipTest('no Chromium: apt-get install chromium')
