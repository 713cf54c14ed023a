# SPDX-License-Identifier: Apache-2.0
"""The processes of the full cloud: for set-up, and the services."""

import json
import pathlib
import sys

from tests.cloud import config as small
from tests.cloud import processes
from tests.fullcloud import config
from tests.fullcloud import daemons
from tests.fullcloud import state

WORKERS = 2
# Nova's own commands still default to eventlet.
NATIVE = {'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'}


def set_up(kept: state.State) -> dict[str, processes.Process]:
    """Start the set-up of all services in parallel: tables and keys."""
    full = kept.config
    path = full.path
    tasks = {
        'keystone': processes.child(
            'keystone', path('keystone.conf'), full.password, full.auth_url,
            small.REGION),
        'nova': processes.child(
            'nova', path('nova.conf'), path('cell0.conf'),
            full.database_url('nova_cell0'), path('service_version')),
        'neutron': program('neutron-db-manage', '--config-file',
                           path('neutron.conf'), 'upgrade', 'heads'),
        'placement': processes.child('placement', path('placement.conf')),
        'glance': program('glance-manage', '--config-file',
                          path('glance-api.conf'), 'db_sync'),
        'journal': program('nova-aggregate-mirror-manage', '--config-file',
                           path('nova.conf'), 'db', 'sync'),
    }
    started = {}
    for name, argv in tasks.items():
        started[name] = processes.Process(
            'set-up of %s' % name, argv, kept.log('set-up-%s' % name), NATIVE)
        started[name].start()
    return started


def keystone(kept: state.State) -> daemons.Daemon:
    """Return keystone, the first service: the others need its tokens."""
    full = kept.config
    return _serve(kept, 'keystone', 'keystone.wsgi.api', full.keystone_port,
                  full.auth_url, {
                      'OS_KEYSTONE_CONFIG_DIR': str(full.directory),
                      'OS_KEYSTONE_CONFIG_FILES': full.path('keystone.conf')})


def apis(kept: state.State) -> list[daemons.Daemon]:
    """Return the other services with a REST API."""
    full = kept.config
    directory = str(full.directory)
    return [
        _serve(kept, 'placement', 'placement.wsgi.api', full.placement_port,
               full.placement_url, {'OS_PLACEMENT_CONFIG_DIR': directory}),
        _serve(kept, 'glance', 'glance.wsgi.api', full.glance_port,
               full.glance_url, {'OS_GLANCE_CONFIG_DIR': directory}),
        _serve(kept, 'neutron', 'neutron.wsgi.api', full.neutron_port,
               full.neutron_url, {
                   'OS_NEUTRON_CONFIG_DIR': directory,
                   'OS_NEUTRON_CONFIG_FILES': 'neutron.conf'},
               # Several workers would report addresses of segments to
               # placement in any order, which placement refuses and neutron
               # does not retry.
               workers=1),
        _nova_api(kept, 1, full.nova_port, full.nova_url),
        _nova_api(kept, 2, full.second_nova_port, full.second_nova_url)]


def workers(kept: state.State) -> list[daemons.Daemon]:
    """Return nova's and neutron's processes without a REST API."""
    full = kept.config
    conf = ('--config-file', full.path('nova.conf'))
    racks = {host: [config.PUBLIC, full.rack_of(host)]
             for host in full.host_names()}
    return [
        _daemon(kept, 'conductor', program('nova-conductor', *conf)),
        _daemon(kept, 'scheduler', program('nova-scheduler', *conf)),
        _daemon(kept, 'neutron-rpc', program(
            'neutron-rpc-server', '--config-file',
            full.path('neutron.conf'))),
        _daemon(kept, 'network-agents', _child(
            'network_agents', full.path('neutron.conf'), json.dumps(racks)))]


def computes(kept: state.State) -> list[daemons.Daemon]:
    """Return a nova-compute for each host."""
    found = []
    for host in kept.config.host_names():
        conf = kept.config.path('%s.conf' % host)
        nodes = kept.config.nodes_of(host)
        several = nodes if nodes != [host] else []
        found.append(_daemon(kept, host, _child(
            'compute', conf, str(kept.config.refusal), *several)))
    return found


def agents(kept: state.State) -> list[daemons.Daemon]:
    """Return this package's agents, one for each nova-api."""
    full = kept.config
    return [
        _daemon(kept, 'agent-%s' % number,
                program('nova-aggregate-mirror-agent', '--config-file',
                        full.path('controller-%s.conf' % number)),
                port=port, ready='http://127.0.0.1:%s/healthz' % port)
        for number, port in ((1, full.metrics_port),
                             (2, full.second_metrics_port))]


def program(name: str, *argv: str) -> list[str]:
    """Return the command line of a program of this Python environment."""
    return [str(pathlib.Path(sys.executable).with_name(name)), *argv]


def _child(*task: str) -> list[str]:
    path = pathlib.Path(__file__).with_name('child.py')
    return [sys.executable, '-P', str(path), *task]


def _nova_api(kept: state.State, number: int, port: int, url: str
              ) -> daemons.Daemon:
    name = 'nova-api-%d' % number
    return _serve(kept, name, 'nova.wsgi.osapi_compute', port, url, {
        'OS_NOVA_CONFIG_DIR': str(kept.directory),
        # The paste configuration has to come first.
        'OS_NOVA_CONFIG_FILES': '%s/etc/nova/api-paste.ini;%s' % (
            sys.prefix, 'controller-%d.conf' % number),
        # Longer than keystone's timeout: when keystone hangs, as it may
        # without its database, nova still gives its own answer.
    }, timeout=90)


def _serve(kept: state.State, name: str, module: str, port: int, url: str,
           environment: dict[str, str], workers: int = WORKERS,
           timeout: int = 60) -> daemons.Daemon:
    return _daemon(kept, name,
                   processes.uwsgi(module, port, workers, timeout),
                   environment, port=port, ready=url)


def _daemon(kept: state.State, name: str, argv: list[str],
            environment: dict[str, str] | None = None, port: int = 0,
            ready: str = '') -> daemons.Daemon:
    return daemons.Daemon(name, argv, kept.log(name), environment or {},
                          port, ready)
