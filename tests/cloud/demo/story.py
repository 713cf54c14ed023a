# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a cloud, the story played in it, and the verdict."""

import argparse
from collections import abc
import contextlib
import importlib.metadata
import pathlib
import sys
import sysconfig
import textwrap
import time

from keystoneauth1 import exceptions

from tests.cloud import cloud
from tests.cloud.demo import steps
from tests.cloud.demo import terminal
from tests.cloud import environment
from tests.cloud import forks
from tests.cloud import loopback
from tests.cloud import options
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import small

PACKAGE = 'nova-aggregate-mirror'
WIDTH = 79
WIDTHS = 44, 12, 12, 6
VERDICTS = {
    True: 'Stock nova harms users as told. With this package: ./tools/demo',
    False: 'Every expectation held. Without this package: ./tools/demo '
           '--stock'}


@contextlib.contextmanager
def _running() -> abc.Iterator[cloud.Cloud]:
    """Start a cloud whose nova-api process has all services of nova."""
    others, = loopback.free_ports(1)
    url = 'http://127.0.0.1:%d' % others

    def server(module: str, port: int, threads: int) -> list[str]:
        if module != 'nova.wsgi.osapi_compute':
            return programs.waitress(module, port, threads)
        hosts = ['cmp-%d' % number for number in range(1, 6)]
        return programs.child('nova_services', str(port), str(others), *hosts)

    with small.running(
            server=server, tell=environment.tell,
            nova_options={
                'DEFAULT': {'compute_driver': 'fake.Restartable'},
                'neutron': {'endpoint_override': url, 'auth_type': 'none'},
                'glance': {'endpoint_override': url},
                'scheduler': {'limit_tenants_to_placement_aggregate': 'True'}}
    ) as started:
        started.nova().post('/flavors', json={'flavor': {
            'id': '1', 'name': 'tiny', 'vcpus': 1, 'ram': 64, 'disk': 1}})
        yield started


def play(scene: steps.Scene) -> int:
    """Play the story; return the number of steps that did not go as told."""
    _print_row('', 'Step', 'Expected', 'Observed', 'Result')
    _print_row('', *('-' * width for width in WIDTHS))
    failures = 0
    for number, step in enumerate(steps.STORY, start=1):
        try:
            outcome = step(scene)
        except (exceptions.ClientException, LookupError,
                processes.CloudError) as exc:
            outcome = steps.Outcome('', 'cannot go on', evidence=[str(exc)])
        result = outcome.result(scene.stock)
        failures += result == 'FAIL'
        _print_row(number, str(step.__doc__), outcome.expected,
                   outcome.observed, result)
        for line in outcome.evidence:
            print(textwrap.fill(line, WIDTH, initial_indent='    ',
                                subsequent_indent='      '))
        sys.stdout.flush()
    return failures


def _print_row(number: object, *cells: str) -> None:
    row = ['%2s' % number, *map(str.ljust, cells, WIDTHS)]
    print(' '.join(row).rstrip())


def _check_package(stock: bool) -> None:
    """Check that the package is installed, or for stock nova is not."""
    # Only what is installed: the checkout may hold the metadata of a build.
    found = any(importlib.metadata.distributions(
        name=PACKAGE, path=[sysconfig.get_path('purelib')]))
    if found == stock:
        raise processes.CloudError('%s is %s in %s' % (
            PACKAGE, 'installed' if found else 'not installed', sys.prefix))


def _keep(running: cloud.Cloud, stock: bool) -> None:
    """Leave the cloud up until the user interrupts it."""
    openrc = terminal.write_openrc(running)
    services = terminal.Services(running)
    print('\nThe cloud keeps running. To use it in another terminal:\n',
          '    . %s\n' % openrc,
          'There "openstack" is an administrator, and "sudo" and "systemctl" '
          'mean',
          'this cloud: "systemctl restart nova-api" restarts its nova-api.',
          'For a client of your own, type this line before ". '
          '~/mirror-client/bin/activate".\n',
          'Configuration: %s' % running.config.nova_conf,
          'Logs:          %s/log' % running.config.directory,
          'Metrics:       port %s, not 9184' % running.config.ports['agent-1'],
          sep='\n')
    if stock:
        print('To install the package, follow '
              'doc/source/install/virtual-environment.rst there.')
    else:
        print('Why gold-3 is in ERROR: sudo -u nova nova-aggregate-mirror-'
              'manage scheduling explain --server gold-3')
    print('Ctrl-C stops the cloud.', flush=True)
    services.serve()


def _demonstrate(chosen: argparse.Namespace) -> int:
    _check_package(chosen.stock)
    with _running() as running, contextlib.closing(
            forks.Clients(running.programs)) as forked:
        running.forked = forked
        if not chosen.stock:
            environment.tell('Starting the agent')
            running.start('agent-1')
        environment.tell('The cloud runs %s this package' % (
            'without' if chosen.stock else 'with'))
        failures = play(steps.Scene(running, chosen.stock, chosen.verbose))
        verdict = VERDICTS[chosen.stock]
        if failures:
            verdict = '%d of %d steps did not go as told.' % (
                failures, len(steps.STORY))
        print(verdict)
        seconds = time.monotonic() - environment.BEGAN
        print('Took %.0f s. %s stays on disk until ./tools/demo --clean' % (
            seconds, pathlib.Path(sys.prefix).name), flush=True)
        if chosen.keep:
            _keep(running, chosen.stock)
    return 1 if failures else 0


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
    except cloud.ERRORS as exc:
        print('The demonstration cannot run: %s' % exc, file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
