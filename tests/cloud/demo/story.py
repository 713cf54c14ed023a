# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a cloud, the story played in it, and the verdict."""

import argparse
from collections.abc import Callable
import contextlib
import importlib.metadata
import sys
import sysconfig
import time

from keystoneauth1 import exceptions
import sqlalchemy.exc

from tests.cloud import clients
from tests.cloud import cloud
from tests.cloud.demo import steps
from tests.cloud.demo import terminal
from tests.cloud import options
from tests.cloud import processes
from tests.cloud import small

PACKAGE = 'nova-aggregate-mirror'


def play(scene: steps.Scene) -> list[str]:
    """Play all steps of the story; return the lines of the failures."""
    failed = []
    for number, step in enumerate(steps.STORY, start=1):
        problems = _problems(step, scene)
        line = '%02d %s' % (number, step.__doc__)
        print('[FAIL]' if problems else '[ok]', line)
        complaints = ['       %s' % problem for problem in problems]
        print(*complaints, sep='\n', end='\n' if complaints else '')
        sys.stdout.flush()
        if problems:
            failed += [line, *complaints]
    return failed


def _problems(step: Callable[[steps.Scene], list[str]],
              scene: steps.Scene) -> list[str]:
    try:
        return step(scene)
    except (exceptions.ClientException, LookupError) as exc:
        return ['the step cannot continue: %s' % exc]


def _check_package(stock: bool) -> None:
    """Check that the package is installed, or for stock nova is not."""
    # Only what is installed: the checkout may hold the metadata of a build.
    found = any(importlib.metadata.distributions(
        name=PACKAGE, path=[sysconfig.get_path('purelib')]))
    if found and stock:
        raise processes.CloudError(
            '--stock, but %s is installed in %s' % (PACKAGE, sys.prefix))
    if not found and not stock:
        raise processes.CloudError(
            '%s is not installed in %s' % (PACKAGE, sys.prefix))


def _print_verdict(failed: list[str], stock: bool) -> None:
    if not failed:
        print('Every expectation held.')
        return
    print('Expectations that did not hold with stock nova:' if stock
          else 'Expectations that did not hold:')
    print(*failed, sep='\n')


def _keep(running: cloud.Cloud, stock: bool) -> None:
    """Leave the cloud up until the user interrupts it."""
    openrc = terminal.write_openrc(running)
    services = terminal.Services(running)
    print('\nThe cloud keeps running. To use it in another terminal:\n',
          '    . %s\n' % openrc,
          'There "openstack" is an administrator, and "sudo" and "systemctl" '
          'mean',
          'this cloud: "systemctl restart nova-api" restarts its nova-api.\n',
          'Configuration: %s' % running.config.nova_conf,
          'Logs:          %s/log' % running.config.directory,
          'Metrics:       port %s, not 9184' % running.config.ports['agent-1'],
          sep='\n')
    if stock:
        print('To install the package, follow '
              'doc/source/install/virtual-environment.rst there.')
    print('Ctrl-C stops the cloud.', flush=True)
    services.serve()


def _demonstrate(chosen: argparse.Namespace) -> int:
    started = time.monotonic()
    _check_package(chosen.stock)
    print('Starting keystone, placement and nova-api', flush=True)
    with small.running() as running:
        print('They answer after %.0f s' % (time.monotonic() - started,),
              flush=True)
        with contextlib.closing(clients.Clients(running.programs)) as forked:
            running.forked = forked
            failed = play(steps.Scene(
                running, chosen.stock, chosen.verbose))
        _print_verdict(failed, chosen.stock)
        print('Took %.0f s' % (time.monotonic() - started,), flush=True)
        if chosen.keep:
            _keep(running, chosen.stock)
    return 1 if failed else 0


def main() -> int:
    """Play the story as the command line says; return the exit status."""
    try:
        # tools/demo blocks the signals until here, where they end the program
        # without a traceback.
        processes.interruptible()
        return _demonstrate(options.demo(sys.argv[1:]))
    except KeyboardInterrupt:
        print('\nInterrupted; all started processes are stopped',
              file=sys.stderr)
        return 130
    except (processes.CloudError, exceptions.ClientException,
            sqlalchemy.exc.SQLAlchemyError, OSError) as exc:
        print('The demonstration cannot run: %s' % exc, file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
