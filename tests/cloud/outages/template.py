# SPDX-License-Identifier: Apache-2.0
"""A process that has imported nova, and forks nova-apis and agents.

A nova-api takes seconds of processor time to import its modules, and a
fraction of that to start. Run by path, never imported, like
``tests/cloud/child.py``.
"""

import importlib
import json
import os
import pathlib
import select
import signal
import socket
import sys
import threading

# The hooks that report each moment of a call.
PLUGIN = pathlib.Path(__file__).resolve().parent / 'plugin'
THREADS = 4
MODULES = (
    # The validators that this loads find this package, which then installs
    # its hooks when the forked nova-api creates its AggregateAPI.
    'nova.api.openstack.compute', 'nova.api.openstack.wsgi_app',
    'nova.compute.api', 'nova_aggregate_mirror.hooks.mirror',
    'nova_aggregate_mirror.hooks.attach', 'nova_aggregate_mirror.cmd.agent',
    'nova_aggregate_mirror.agent.metrics_server', 'keystonemiddleware',
    'keystonemiddleware.auth_token', 'openstack.connection',
    'openstack.placement.v1._proxy', 'nova.scheduler.client.report',
    'nova_aggregate_mirror.journal.db.migration', 'pymysql', 'psycopg2',
    'waitress', 'outage_moments')


def nova_api(port: str) -> None:
    """Serve nova's REST API."""
    module = importlib.import_module('nova.wsgi.osapi_compute')
    importlib.import_module('waitress').serve(
        module.application, host='127.0.0.1', port=int(port), threads=THREADS)


def agent(*argv: str) -> None:
    """Run the agent of the installed package."""
    importlib.import_module('nova_aggregate_mirror.cmd.agent').main(list(argv))


def _die_with(parent: int) -> None:
    # The descriptor is readable when the process has died.
    select.select([os.pidfd_open(parent)], [], [])
    os.killpg(0, signal.SIGKILL)


def _become(parent: int, task: str, arguments: list[str],
            environment: dict[str, str], log: str) -> None:
    """Do a task in a fork of this process."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(environment)
    for descriptor, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, log, os.O_WRONLY | os.O_APPEND),
            (2, log, os.O_WRONLY | os.O_APPEND)):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    # Services read sys.argv for configuration files.
    del sys.argv[1:]
    {'nova_api': nova_api, 'agent': agent}[task](*arguments)


def main() -> None:
    """Fork a process for each request, until the socket closes.

    A request is a line of JSON: task, arguments, variables and log. The answer
    is a line with the process ID.
    """
    sys.path.insert(0, str(PLUGIN))
    # Nova decides about threads before anything else is imported.
    importlib.import_module('nova.monkey_patch').patch(backend='threading')
    for name in MODULES:
        importlib.import_module(name)
    # Reading the entry points of all packages takes a second.
    importlib.import_module('stevedore.extension').ExtensionManager(
        'nova_aggregate_mirror.hooks')
    # Killed forks leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()
    there = socket.socket(fileno=os.dup(0))
    requests, answers = there.makefile('r'), there.makefile('w')
    for request in requests:
        pid = os.fork()
        if not pid:
            there.close()
            _become(own, *json.loads(request))
            return
        answers.write('%d\n' % pid)
        answers.flush()


if __name__ == '__main__':
    main()
