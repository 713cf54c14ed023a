# SPDX-License-Identifier: Apache-2.0
"""The tasks of the cloud's child processes: set-up and serving.

Run by path, never imported: the checkout must not be on the services' path, or
a stock nova would find the package in it.
"""

from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import importlib
import importlib.metadata
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

# The program that serves the same application in a release that does not have
# the module yet.
PROGRAMS = {'keystone.wsgi.api': 'keystone-wsgi-public',
            'nova.wsgi.osapi_compute': 'nova-api-wsgi',
            'placement.wsgi.api': 'placement-api'}


def _die_with_parent() -> None:
    # The parent holds the other end of this pipe and never writes: the read
    # returns when the parent has died, even by SIGKILL.
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)


def _fork(main: Callable[[], int | None], argv: Sequence[str]) -> int:
    """Run a command of an imported program in a fork; return its pid.

    A fork costs nothing; importing keystone or nova takes seconds.
    """
    pid = os.fork()
    if pid:
        return pid
    sys.argv = list(argv)
    # This ends the fork: nothing above catches SystemExit.
    sys.exit(main())


def _wait(*pids: int) -> None:
    left = set(pids)
    while left:
        pid, status = os.wait()
        left.discard(pid)
        if os.waitstatus_to_exitcode(status):
            # Further output of the other commands would bury this error in the
            # log.
            os.killpg(0, signal.SIGKILL)


def keystone(conf: str, password: str, url: str, region: str) -> None:
    """Create keystone's database and keys, administrator and catalog."""
    cli = importlib.import_module('keystone.cmd.cli')

    def manage(*argv: str) -> int:
        command = ['keystone-manage', '--config-file', conf, *argv]
        return _fork(lambda: cli.main(argv=command), command)

    # Any existing account will do: the files belong to the current user.
    owner = ('--keystone-user', str(os.getuid()),
             '--keystone-group', str(os.getgid()))
    _wait(manage('fernet_setup', *owner), manage('db_sync'))
    _wait(manage('bootstrap', '--bootstrap-password', password,
                 '--bootstrap-region-id', region,
                 '--bootstrap-public-url', url,
                 '--bootstrap-internal-url', url,
                 '--bootstrap-admin-url', url))


def nova(conf: str, cell0_conf: str, cell0: str, version_file: str) -> None:
    """Create nova's databases and cells; write nova's service version."""
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
    """Create placement's tables."""
    program = importlib.import_module('placement.cmd.manage')
    sys.argv = ['placement-manage', '--config-file', conf, 'db', 'sync']
    program.main()


def clients(entry_points: str, shell: str, *modules: str) -> None:
    """Run command lines of a client, each in a fork, until the socket closes.

    A request is a line of JSON: the command line, the variables, the directory
    and the files of standard output and standard error. The answer is a line
    with the exit status.

    :param entry_points: the prefix of the groups of entry points to load: some
        clients load all of their commands each time
    :param shell: the module with the ``main`` of the client
    :param modules: further modules that it uses if they are installed: the
        demonstration has no driver of a database server
    """
    main = importlib.import_module(shell).main
    for name in modules:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    extension = importlib.import_module('stevedore.extension')
    for group in importlib.metadata.entry_points().groups:
        if group.startswith(entry_points):
            extension.ExtensionManager(group)
    with socket.socket(fileno=sys.stdin.fileno()) as there:
        requests, answers = there.makefile('r'), there.makefile('w')
        for request in requests:
            argv, environment, directory, outputs = json.loads(request)
            pid = _fork(lambda: _client(
                main, argv[1:], environment, directory, outputs), argv)
            status = os.waitpid(pid, 0)[1]
            answers.write('%d\n' % os.waitstatus_to_exitcode(status))
            answers.flush()


def _client(main: Callable[[Sequence[str]], int | None], argv: Sequence[str],
            environment: dict[str, str], directory: str,
            outputs: Sequence[str]) -> int | None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, path in enumerate(outputs, start=1):
        with open(path, 'w') as output:
            os.dup2(output.fileno(), number)
    return main(argv)


def agent(*argv: str) -> None:
    """Run the agent of the installed package."""
    program = importlib.import_module('nova_aggregate_mirror.cmd.agent')
    sys.exit(program.main(list(argv)))


def serve(module: str, port: str, threads: str, frames: str = '0') -> None:
    """Serve the WSGI application of ``module`` on the loopback interface.

    :param frames: the number of stack frames to add below the application, see
        ``_deeper``
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
    """Import a module's WSGI application, or that of the older program."""
    try:
        return importlib.import_module(module).application
    except ModuleNotFoundError as exc:
        # Only the module itself may be missing, not one of its imports.
        if not exc.name or not ('%s.' % module).startswith('%s.' % exc.name):
            raise
    program = pathlib.Path(sys.executable).with_name(PROGRAMS[module])
    return runpy.run_path(str(program), run_name='wsgi')['application']


def _logged(application: Callable) -> Callable:
    """Log each request, which keystone does not do itself."""
    def logged(environ: Any, start_response: Any) -> Any:
        print(environ['REQUEST_METHOD'], environ['PATH_INFO'],
              file=sys.stderr, flush=True)
        return application(environ, start_response)

    return logged


def serve_processes(module: str, port: str, count: str, timeout: str
                    ) -> None:
    """Serve the WSGI application of ``module`` with ``count`` processes.

    This process only waits for uwsgi, which would not notice the death of the
    process that started the cloud.
    """
    # A signal goes to the whole group: uwsgi ends, and then this process.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with socket.create_server(('127.0.0.1', int(port))) as listening:
        # Connections inherit this option. Without it, answers of some sizes
        # wait 40 ms for an acknowledgement, which front ends of real clouds
        # avoid.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sys.exit(subprocess.call(
            [pathlib.Path(sys.executable).with_name('uwsgi'),
             '--http', 'fd://%s' % listening.fileno(), '--http-keepalive',
             '--http-auto-chunked', '--http-timeout', timeout,
             '--module', '%s:application' % module,
             '--processes', count, '--master', '--lazy-apps',
             '--enable-threads', '--need-app', '--die-on-term',
             '--buffer-size', '65535',
             # The services log their requests themselves.
             '--disable-logging'],
            stdin=subprocess.DEVNULL, pass_fds=[listening.fileno()]))


def measure(result: str, *command: str) -> None:
    """Run a command, and write its resource usage into a JSON file.

    A process's peak memory starts at that of its parent, so only a small
    process can measure it.
    """
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _pid, status, usage = os.wait4(process.pid, 0)
    with open(result, 'w') as output:
        json.dump({'status': os.waitstatus_to_exitcode(status),
                   'seconds': time.monotonic() - start,
                   'cpu_seconds': usage.ru_utime + usage.ru_stime,
                   # Linux reports KiB.
                   'peak_mib': usage.ru_maxrss / 1024}, output)


def _deeper(application: Callable) -> Callable:
    """Add a stack frame that only calls the application.

    CPython keeps frames in chunks of memory. A loop whose calls cross the end
    of a chunk maps and unmaps a chunk each time and takes many times as long,
    because of its stack depth alone.
    """
    def deeper(environ: Any, start_response: Any) -> Any:
        return application(environ, start_response)

    return deeper


def main() -> None:
    """Run the task that the command line names."""
    # A parent that provides no pipe does not want this.
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        threading.Thread(target=_die_with_parent, daemon=True).start()
    tasks = {'keystone': keystone, 'placement': placement, 'nova': nova,
             'serve': serve, 'serve_processes': serve_processes,
             'agent': agent, 'measure': measure, 'clients': clients}
    tasks[sys.argv[1]](*sys.argv[2:])


if __name__ == '__main__':
    main()
