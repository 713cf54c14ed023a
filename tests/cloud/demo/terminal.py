# SPDX-License-Identifier: Apache-2.0
"""The systemctl and sudo of an operator's terminal, for a cloud.

The documentation uses ``sudo -u nova`` and ``systemctl restart nova-api``. A
shell that has read the file ``openrc`` finds programs of these names that act
on this cloud; systemctl asks the process that runs it.
"""

from collections import abc
import contextlib
import pathlib
import shlex
import signal
import socket
import sys

from tests.cloud import cloud
from tests.cloud import processes

PROGRAMS = pathlib.Path(__file__).with_name('bin')
AGENT = 'nova-aggregate-mirror-agent'
UNITS = {'nova-api': 'nova-api-1', 'placement': 'placement', AGENT: 'agent-1'}
VERBS = ('start', 'stop', 'restart', 'reload', 'enable', 'disable')


def write_openrc(running: cloud.Cloud) -> pathlib.Path:
    """Write the file to source for using the cloud as administrator."""
    directory = running.config.directory
    variables = {**running.environment(), 'MIRROR_CLOUD': str(directory),
                 'NOVA': sys.prefix}
    lines = ['export %s=%s' % (name, shlex.quote(value))
             for name, value in sorted(variables.items())]
    path = '%s:%s' % (PROGRAMS, pathlib.Path(sys.prefix) / 'bin')
    lines.append('export PATH=%s:"$PATH"' % shlex.quote(path))
    # The client of a virtual environment that the user has activated.
    lines.append('PATH="${VIRTUAL_ENV:+$VIRTUAL_ENV/bin:}$PATH"')
    openrc = directory / 'openrc'
    openrc.write_text('\n'.join(lines) + '\n')
    return openrc


class Services:
    """The services of a cloud, by the names that systemctl uses."""

    def __init__(self, running: cloud.Cloud) -> None:
        self._cloud = running
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(running.config.path('systemd'))
        self._socket.listen()

    def serve(self) -> None:
        """Serve systemctl's requests until closed or interrupted."""
        # Closing the socket ends the loop.
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self._socket.accept()
                with connection, connection.makefile() as request:
                    answer = self.run(request.read().split('\n'))
                    # The user may have interrupted systemctl.
                    with contextlib.suppress(OSError):
                        connection.sendall(answer.encode())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def run(self, argv: abc.Sequence[str]) -> str:
        """Run a command line of systemctl; return the error, or ''."""
        options = {one for one in argv if one.startswith('-')}
        verb, *names = [one for one in argv if one not in options] or ['']
        names = [name.removesuffix('.service') for name in names]
        if verb == 'daemon-reload':
            return ''
        if verb not in VERBS or not names or set(names) - set(UNITS):
            return ('systemctl of this cloud knows %s, of %s\n' % (
                ', '.join(VERBS), ', '.join(sorted(UNITS))))
        if verb in ('enable', 'disable'):
            verb = ('start' if verb == 'enable' else 'stop')
            names = names if '--now' in options else []
        try:
            for name in names:
                self._change(verb, UNITS[name])
        except processes.CloudError as exc:
            return '%s\n' % exc
        return ''

    def _change(self, verb: str, name: str) -> None:
        runs = self._cloud.process(name).alive()
        if verb == 'reload' and runs:
            # Only the agent has this action.
            if name == UNITS[AGENT]:
                self._cloud.process(name).send(signal.SIGHUP)
        elif verb in ('stop', 'restart') and runs:
            self._cloud.stop(name)
        if verb == 'restart' or (verb == 'start' and not runs):
            self._cloud.start(name)
