# SPDX-License-Identifier: Apache-2.0
"""What a removed cloud may have left on its machine."""

import contextlib
import pathlib

import amqp
import psutil

from tests.cloud import statefile
from tests import databases

PATIENCE = 10
# Not reachable from other machines.
LOOPBACK = {'127.0.0.1', '::1', '::ffff:127.0.0.1'}


class Footprint:
    """What a cloud uses of its machine: processes, folders and servers."""

    def __init__(self, state: statefile.State) -> None:
        self.processes = _processes(state)
        self._state = state

    def reachable(self) -> list[str]:
        """List listening sockets that are not on loopback."""
        found = []
        for process in self.processes:
            # A child may have ended meanwhile.
            with contextlib.suppress(psutil.NoSuchProcess):
                found += ['%s %s' % (process.name(), socket.laddr)
                          for socket in process.net_connections('inet')
                          if socket.status == psutil.CONN_LISTEN
                          and socket.laddr.ip not in LOOPBACK]
        return found

    def wait(self) -> None:
        """Give killed children time to end."""
        psutil.wait_procs([*self.processes, *_working(self._state)],
                          timeout=PATIENCE)

    def left(self) -> list[str]:
        """Describe everything that is still there."""
        return [*('process %s' % each for each
                  in {*self.processes, *_working(self._state)}
                  if _runs(each)),
                *('%s %s' % (each.kind, each.name)
                  for each in self._state.resources
                  if _EXISTS[each.kind](each))]


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return (process.is_running()
                and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _processes(state: statefile.State) -> list[psutil.Process]:
    """Return the processes and all processes that they started."""
    found = []
    for each in state.processes:
        if each.alive():
            process = psutil.Process(each.pid)
            found += [process, *process.children(recursive=True)]
    return found


def _working(state: statefile.State) -> list[psutil.Process]:
    """Return processes of any origin that work in the cloud's folders."""
    folders = [state.directory,
               *(pathlib.Path(each.name) for each in state.resources
                 if each.kind == 'folder')]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            where = pathlib.Path(process.cwd())
            if any(where.is_relative_to(each.resolve()) for each in folders):
                found.append(process)
    return found


def _is_database(resource: statefile.Resource) -> bool:
    # Without its server the database is removed too.
    return databases.answers(resource.where) and (resource.name,) in map(
        tuple, databases.execute(resource.where, 'SHOW DATABASES'))


def _is_virtual_host(resource: statefile.Resource) -> bool:
    try:
        with amqp.Connection('127.0.0.1:5672', virtual_host=resource.name):
            return True
    except amqp.exceptions.NotAllowed:
        return False


_EXISTS = {
    'database': _is_database, 'virtual host': _is_virtual_host,
    'folder': lambda resource: pathlib.Path(resource.name).exists()}
