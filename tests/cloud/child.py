# SPDX-License-Identifier: Apache-2.0
"""The tasks of the cloud's child processes: set-up and serving.

Run by path, never imported: the checkout must not be on the services' path, or
a stock nova would find the package in it.
"""

from collections import abc
import contextlib
import importlib
import importlib.metadata
import inspect
import json
import os
import pathlib
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from typing import Any
import uuid

# Waitress accepts a hundred by default, and then leaves everybody waiting:
# clouds that share a placement keep more.
CONNECTIONS = 1000
# The modules of a nova-api with this package, and of the agent.
TEMPLATE = (
    # The validators that this loads find this package, which then installs
    # its hooks when the forked nova-api creates its AggregateAPI.
    'nova.api.openstack.compute', 'nova.api.openstack.wsgi_app',
    'nova.compute.api', 'nova_aggregate_mirror.hooks.mirror',
    'nova_aggregate_mirror.hooks.attach', 'nova_aggregate_mirror.cmd.agent',
    'nova_aggregate_mirror.agent.metrics_server', 'keystonemiddleware',
    'keystonemiddleware.auth_token', 'openstack.connection',
    'openstack.placement.v1._proxy', 'nova.scheduler.client.report',
    'nova_aggregate_mirror.journal.db.models', 'pymysql', 'psycopg2',
    'waitress', 'outage_moments')


def _die_with_parent() -> None:
    # The parent holds the other end of this pipe and never writes: the read
    # returns when the parent has died, even by SIGKILL.
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)


def _fork(main: abc.Callable[[], int | None], argv: abc.Sequence[str]) -> int:
    """Run an imported program in a fork, in no time; return its pid."""
    if pid := os.fork():
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

    A request has the command line, the variables, the directory and the files
    of standard output and standard error; the answer is the exit status.

    :param entry_points: the prefix of the groups of entry points to load: some
        clients load all of their commands each time
    :param shell: the module with the ``main`` of the client
    :param modules: further modules that it uses if they are installed: the
        demonstration has no driver of a database server
    """
    main = importlib.import_module(shell).main
    takes_arguments = bool(inspect.signature(main).parameters)
    for name in modules:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    extension = importlib.import_module('stevedore.extension')
    for group in importlib.metadata.entry_points().groups:
        if group.startswith(entry_points):
            extension.ExtensionManager(group)

    def run(argv: list[str], environment: dict[str, str], directory: str,
            outputs: list[str]) -> int | None:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(directory)
        _redirect(*outputs)
        sys.argv = argv
        # Novaclient would take the arguments that it was imported with.
        return main(argv[1:]) if takes_arguments else main()

    def exit_status(pid: int) -> int:
        _pid, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    _serve_forks(run, exit_status)


def template(plugin: str) -> None:
    """Fork nova-apis and agents, which end with this process.

    A nova-api takes seconds of processor time to import its modules, and a
    fraction of that to start. A request has a task with its arguments, the
    variables and the log; the answer is the process ID.
    """
    sys.path.insert(0, plugin)
    # Nova decides about threads before anything else is imported.
    importlib.import_module('nova.monkey_patch').patch(backend='threading')
    for name in TEMPLATE:
        importlib.import_module(name)
    # Reading the entry points of all packages takes a second.
    importlib.import_module('stevedore.extension').ExtensionManager(
        'nova_aggregate_mirror.hooks')
    # Killed forks leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()

    def run(task: list[str], environment: dict[str, str], log: str) -> None:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.update(environment)
        _redirect(log, log)
        threading.Thread(target=_die_with, args=(own,), daemon=True).start()
        TASKS[task[0]](*task[1:])

    _serve_forks(run, lambda pid: pid)


def _die_with(parent: int) -> None:
    # The descriptor is readable when the process has died.
    select.select([os.pidfd_open(parent)], [], [])
    os.killpg(0, signal.SIGKILL)


def _serve_forks(run: abc.Callable[..., int | None],
                 answer: abc.Callable[[int], int]) -> None:
    """Fork a process for each request, until the socket closes.

    A request is a line of JSON, the answer a line with a number.

    :param run: gets the values of a request, and returns an exit status
    :param answer: returns the answer about a process ID
    """
    # A fork replaces this descriptor.
    with socket.socket(fileno=sys.stdin.fileno()) as there:
        requests, answers = there.makefile('r'), there.makefile('w')
        for request in requests:
            values = json.loads(request)
            pid = _fork(lambda: run(*values), sys.argv)
            answers.write('%d\n' % answer(pid))
            answers.flush()


def _redirect(*outputs: str) -> None:
    """Open files as standard output and standard error; have no input."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    for descriptor, opened in enumerate((
            os.open(os.devnull, os.O_RDONLY),
            *(os.open(path, flags, 0o600) for path in outputs))):
        os.dup2(opened, descriptor)
        os.close(opened)


def agent(*argv: str) -> None:
    """Run the agent of the installed package."""
    program = importlib.import_module('nova_aggregate_mirror.cmd.agent')
    sys.argv[1:] = argv
    sys.exit(program.main())


def serve(module: str, port: str, threads: str, frames: str = '0') -> None:
    """Serve the WSGI application of ``module`` on the loopback interface."""
    # Services read sys.argv for configuration files when they are imported.
    del sys.argv[1:]
    application = _logged(module, port)
    for _frame in range(int(frames)):
        application = _deeper(application)
    _listen(application, port, threads)


def _listen(application: abc.Callable, port: str, threads: str) -> None:
    importlib.import_module('waitress').serve(
        application, host='127.0.0.1', port=int(port), threads=int(threads),
        connection_limit=CONNECTIONS)


def nova_services(port: str, others: str, *hosts: str) -> None:
    """Serve nova-api, and run nova's other services in the same process.

    They need no message broker: oslo.messaging's fake driver connects the
    services of one process.

    :param others: the port of the image and network services, which have one
        image and nothing else
    :param hosts: each has a nova-compute with a fake driver
    """
    del sys.argv[1:]
    application = _logged('nova.wsgi.osapi_compute', port)
    threading.Thread(
        target=_listen, args=(_others, others, '1'), daemon=True).start()
    # It also has to exist at the second start, and a fake driver writes none.
    importlib.import_module('nova.virt.node').get_local_node_uuid()
    _lock_early()
    _wait_for_placement()
    _start_nova('conductor', '')
    _start_nova('scheduler', '')
    _add_fake_driver()
    for host in hosts:
        _start_nova('compute', host)
    importlib.import_module('nova.objects.host_mapping').discover_hosts(
        importlib.import_module('nova.context').get_admin_context())
    # A port that listens: the compute hosts can be used.
    _listen(application, port, '4')


def _lock_early() -> None:
    """Let transactions in an SQLite file wait for each other.

    One that reads before it writes fails at once if another wrote meanwhile.
    """
    engine = importlib.import_module('sqlalchemy.engine')
    event = importlib.import_module('sqlalchemy.event')

    @event.listens_for(engine.Engine, 'before_cursor_execute', retval=True)
    def begin(_connection: Any, _cursor: Any, statement: str, values: Any,
              *_rest: Any) -> tuple[str, Any]:
        if statement == 'BEGIN':
            statement = 'BEGIN IMMEDIATE'
        return statement, values


def _wait_for_placement() -> None:
    """Wait for the accounts: nova never asks again after a refusal."""
    conf = importlib.import_module('nova.conf').CONF
    loading = importlib.import_module('keystoneauth1.loading')
    exceptions = importlib.import_module('keystoneauth1.exceptions')
    auth = loading.load_auth_from_conf_options(conf, 'placement')
    session = loading.load_session_from_conf_options(
        conf, 'placement', auth=auth)
    while True:
        with contextlib.suppress(exceptions.ClientException):
            session.get('/', endpoint_filter={'service_type': 'placement'})
            return
        auth.invalidate()
        time.sleep(0.1)


def _start_nova(name: str, host: str) -> None:
    service = importlib.import_module('nova.service')
    rpcapi = importlib.import_module('nova.%s.rpcapi' % name)
    service.Service.create(host=host or None, binary='nova-%s' % name,
                           topic=rpcapi.RPC_TOPIC).start()


def _add_fake_driver() -> None:
    fake = importlib.import_module('nova.virt.fake')

    class Restartable(fake.FakeDriver):
        def get_available_resource(self, nodename: str) -> dict[str, Any]:
            return {**super().get_available_resource(nodename),
                    'uuid': str(uuid.uuid5(uuid.NAMESPACE_DNS, nodename))}

        def get_nodenames_by_uuid(self, refresh: bool = False
                                  ) -> dict[str, str]:
            return {self.get_available_resource(name)['uuid']: name
                    for name in self.get_available_nodes()}

    # Nova loads drivers from its own modules only.
    fake.Restartable = Restartable


def _others(environ: Any, start_response: Any) -> list[bytes]:
    """Answer as an image service with any image, and as an empty network."""
    *_rest, kind, name = environ['PATH_INFO'].split('/')
    image = {'id': name, 'name': 'empty', 'status': 'active', 'size': 0,
             'min_ram': 0, 'min_disk': 0, 'container_format': 'bare',
             'disk_format': 'raw', 'visibility': 'public', 'tags': []}
    answers = {'images': image, 'schemas': {
        'name': 'image', 'properties': {key: {} for key in image}}}
    answer = answers.get(kind, {name: []})
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps(answer).encode()]


def _logged(module: str, port: str) -> abc.Callable:
    """Log each request of a WSGI module, which keystone does not do itself.

    While there is a file ``unavailable-PORT``, answer as a load balancer
    without a server does.
    """
    application = importlib.import_module(module).application

    def logged(environ: Any, start_response: Any) -> Any:
        print(environ['REQUEST_METHOD'], environ['PATH_INFO'],
              file=sys.stderr, flush=True)
        if os.path.exists('unavailable-%s' % port):
            start_response('503 Service Unavailable', [])
            return [b'']
        return application(environ, start_response)

    return logged


def serve_processes(module: str, port: str, count: str, timeout: str) -> None:
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
        command = [
            str(pathlib.Path(sys.executable).with_name('uwsgi')),
            '--http', 'fd://%s' % listening.fileno(), '--http-keepalive',
            '--http-auto-chunked', '--http-timeout', timeout,
            '--module', '%s:application' % module,
            '--processes', count, '--master', '--lazy-apps',
            '--enable-threads', '--need-app', '--die-on-term',
            '--buffer-size', '65535',
            # The services log their requests themselves.
            '--disable-logging']
        sys.exit(subprocess.call(
            command, stdin=subprocess.DEVNULL, pass_fds=[listening.fileno()]))


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


def _deeper(application: abc.Callable) -> abc.Callable:
    """Add a stack frame that only calls the application.

    CPython keeps frames in chunks of memory. A loop whose calls cross the end
    of a chunk maps and unmaps a chunk each time and takes many times as long,
    because of its stack depth alone.
    """
    def deeper(environ: Any, start_response: Any) -> Any:
        return application(environ, start_response)

    return deeper


TASKS = {function.__name__: function for function in (
    keystone, nova, placement, clients, template, agent, serve,
    serve_processes, nova_services, measure)}


def main() -> None:
    """Run the task that the command line names."""
    # A parent that provides no pipe does not want this.
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        # A signal that the task waits for must not end this thread.
        before = signal.pthread_sigmask(
            signal.SIG_BLOCK, signal.valid_signals())
        threading.Thread(target=_die_with_parent, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    TASKS[sys.argv[1]](*sys.argv[2:])


if __name__ == '__main__':
    main()
