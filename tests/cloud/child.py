# SPDX-License-Identifier: Apache-2.0
"""What runs inside the cloud's child processes: set-up and serving.

Run by path, never imported: the environment of the services must not see the
checkout, or a stock nova would find the package that lies in it.
"""

from collections.abc import Callable
from collections.abc import Sequence
import importlib
import os
import signal
import sys
import threading
from typing import Any


def _die_with_parent() -> None:
    # The parent holds the other end of this pipe and never writes: the read
    # returns when the parent is gone, whatever killed it.
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)


def _fork(main: Callable[[], int | None], argv: Sequence[str]) -> int:
    """Run a command of an already imported program; return its process id.

    A fork costs nothing, the imports of keystone or nova cost seconds.
    """
    pid = os.fork()
    if pid:
        return pid
    sys.argv = list(argv)
    # Ends the copy: nothing above catches it.
    sys.exit(main())


def _wait(*pids: int) -> None:
    left = set(pids)
    while left:
        pid, status = os.wait()
        left.discard(pid)
        if os.waitstatus_to_exitcode(status):
            # The others would bury in the log what this one said.
            os.killpg(0, signal.SIGKILL)


def keystone(conf: str, password: str, url: str, region: str) -> None:
    """Make keystone's database and keys, its administrator and its catalog."""
    cli = importlib.import_module('keystone.cmd.cli')

    def manage(*argv: str) -> int:
        command = ['keystone-manage', '--config-file', conf, *argv]
        return _fork(lambda: cli.main(argv=command), command)

    # Any account does as long as it exists: the keys belong to who runs this.
    owner = ('--keystone-user', str(os.getuid()),
             '--keystone-group', str(os.getgid()))
    _wait(manage('fernet_setup', *owner), manage('db_sync'))
    _wait(manage('bootstrap', '--bootstrap-password', password,
                 '--bootstrap-region-id', region,
                 '--bootstrap-public-url', url,
                 '--bootstrap-internal-url', url,
                 '--bootstrap-admin-url', url))


def nova(conf: str, cell0_conf: str, cell0: str, version_file: str) -> None:
    """Make nova's databases and cells; write nova's service version."""
    program = importlib.import_module('nova.cmd.manage')

    def manage(*argv: str) -> int:
        return _fork(program.main,
                     ['nova-manage', '--config-file', conf, *argv])

    _wait(manage('api_db', 'sync'),
          manage('db', 'sync', '--local_cell'),
          manage('--config-file', cell0_conf, 'db', 'sync', '--local_cell'))
    _wait(manage('cell_v2', 'map_cell0', '--database_connection', cell0))
    _wait(manage('cell_v2', 'create_cell', '--name', 'cell1'))
    service = importlib.import_module('nova.objects.service')
    with open(version_file, 'w') as output:
        output.write(str(service.SERVICE_VERSION))


def agent(conf: str) -> None:
    """Run the agent of the package that is installed."""
    program = importlib.import_module('nova_aggregate_mirror.cmd.agent')
    sys.exit(program.main(['--config-file', conf]))


def serve(module: str, port: str, threads: str, frames: str = '0') -> None:
    """Serve the WSGI application of ``module`` on the loopback interface.

    :param frames: how many frames of the stack to lay below the application,
        see ``_deeper``
    """
    waitress = importlib.import_module('waitress')
    # Services read sys.argv for configuration files when they are imported.
    del sys.argv[1:]
    application = importlib.import_module(module).application
    for _frame in range(int(frames)):
        application = _deeper(application)
    waitress.serve(application,
                   host='127.0.0.1', port=int(port), threads=int(threads))


def _deeper(application: Callable) -> Callable:
    """Add a frame that does nothing but to be on the stack.

    CPython keeps frames in chunks of memory. A loop whose calls happen to
    cross the end of a chunk maps and unmaps one each time, and takes many
    times as long: by where it happens to run, not by what it does.
    """
    def deeper(environ: Any, start_response: Any) -> Any:
        return application(environ, start_response)

    return deeper


def main() -> None:
    """Run the task that the command line names."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    tasks = {'keystone': keystone, 'nova': nova, 'serve': serve,
             'agent': agent}
    tasks[sys.argv[1]](*sys.argv[2:])


if __name__ == '__main__':
    main()
