# SPDX-License-Identifier: Apache-2.0
"""What runs inside the cloud's child processes: set-up and serving.

Run by path, never imported: the environment of the services must not see the
checkout, or a stock nova would find the package that lies in it.
"""

from collections.abc import Callable
from collections.abc import Sequence
import importlib
import json
import os
import pathlib
import runpy
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from typing import Any

# What a release has that does not have the module yet: a program.
PROGRAMS = {'keystone.wsgi.api': 'keystone-wsgi-public',
            'nova.wsgi.osapi_compute': 'nova-api-wsgi',
            'placement.wsgi.api': 'placement-api'}


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


def placement(conf: str) -> None:
    """Make placement's tables."""
    program = importlib.import_module('placement.cmd.manage')
    sys.argv = ['placement-manage', '--config-file', conf, 'db', 'sync']
    program.main()


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
    application = _logged(_application(module))
    for _frame in range(int(frames)):
        application = _deeper(application)
    waitress.serve(application,
                   host='127.0.0.1', port=int(port), threads=int(threads))


def _application(module: str) -> Callable:
    """The WSGI application of a module, or of the program before it."""
    try:
        return importlib.import_module(module).application
    except ModuleNotFoundError as exc:
        # Only if it is the module that is not there.
        if not exc.name or not f'{module}.'.startswith(f'{exc.name}.'):
            raise
    program = pathlib.Path(sys.executable).with_name(PROGRAMS[module])
    return runpy.run_path(str(program), run_name='wsgi')['application']


def _logged(application: Callable) -> Callable:
    """Log each request, which keystone does not do by itself."""
    def logged(environ: Any, start_response: Any) -> Any:
        print(environ['REQUEST_METHOD'], environ['PATH_INFO'],
              file=sys.stderr, flush=True)
        return application(environ, start_response)

    return logged


def serve_processes(module: str, port: str, count: str, timeout: str
                    ) -> None:
    """Serve the WSGI application of ``module`` with so many processes.

    This process only waits for uwsgi, which would not notice that the parent
    of all has died.
    """
    # A signal goes to the whole group: uwsgi ends, and then this.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with socket.create_server(('127.0.0.1', int(port))) as listening:
        # Inherited by each connection. Without it, which no front end of a
        # real cloud is, answers of some sizes wait 40 ms to be acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sys.exit(subprocess.call(
            [pathlib.Path(sys.executable).with_name('uwsgi'),
             '--http', f'fd://{listening.fileno()}', '--http-keepalive',
             '--http-auto-chunked', '--http-timeout', timeout,
             '--module', f'{module}:application',
             '--processes', count, '--master', '--lazy-apps',
             '--enable-threads', '--need-app', '--die-on-term',
             '--buffer-size', '65535',
             # The services log their requests themselves.
             '--disable-logging'],
            stdin=subprocess.DEVNULL, pass_fds=[listening.fileno()]))


def measure(result: str, *command: str) -> None:
    """Run a command, and write as JSON into a file what it took.

    The peak of a process's memory begins at that of the process which started
    it, so that only a small one can measure.
    """
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _pid, status, usage = os.wait4(process.pid, 0)
    with open(result, 'w') as output:
        json.dump({'status': os.waitstatus_to_exitcode(status),
                   'seconds': time.monotonic() - start,
                   'cpu_seconds': usage.ru_utime + usage.ru_stime,
                   # Linux counts in KiB.
                   'peak_mib': usage.ru_maxrss / 1024}, output)


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
    # Who gave it no pipe does not want that.
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        threading.Thread(target=_die_with_parent, daemon=True).start()
    tasks = {'keystone': keystone, 'placement': placement, 'nova': nova,
             'serve': serve, 'serve_processes': serve_processes,
             'agent': agent, 'measure': measure}
    tasks[sys.argv[1]](*sys.argv[2:])


if __name__ == '__main__':
    main()
