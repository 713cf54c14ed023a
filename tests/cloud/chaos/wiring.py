# SPDX-License-Identifier: Apache-2.0
"""Relays between the services of a cloud: connections that can be cut."""

from collections import abc
import pathlib
import signal
import time

import sqlalchemy as sa

from tests.cloud import cloud
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs

CONTROLLERS = (1, 2)
AGENTS = 'chaos-agents.conf'
WIRES = ('placement', 'database', 'journal')
SETTINGS = 'OS_NOVA_CONFIG_FILES'
# Rarely enough that the journal has to do the repair; often enough that what
# only the full sync repairs is repaired soon.
SYNC_INTERVAL = 30
REQUESTS = 'requests-of-agents'


def relays() -> list[str]:
    """Return the names of all relays."""
    return ['%s-of-%s' % (
        wire, number) for wire in WIRES for number in CONTROLLERS]


def prepare(running: cloud.Cloud, without: abc.Collection[str] = (),
            mode: str = 'mirror') -> None:
    """Put relays between each nova-api and the services it uses; they stay.

    :param without: ``mirror`` for a nova that mirrors aggregates itself,
        ``agents`` for a journal that is not drained
    :param mode: ``observe`` also records each request of an agent
    """
    restarted = []
    for number in CONTROLLERS:
        urls = {'placement': running.config.placement_url,
                'database': running.config.database_url('nova_api'),
                'journal': running.config.database_url('journal')}
        wires = {wire: _relay(running, '%s-of-%s' % (wire, number), url)
                 for wire, url in urls.items()}
        options = {
            'placement': {'endpoint_override': wires['placement']},
            'api_database': {'connection': wires['database']},
            'aggregate_mirror_database': {'connection': wires['journal']},
            'aggregate_mirror': {
                'mode': 'observe' if 'mirror' in without else mode}}
        nova = running.process('nova-api-%s' % number)
        name = 'chaos-%s.conf' % number
        config_files.write_file(running.config, name, options)
        nova.environment[SETTINGS] = ';'.join(
            [*_others(nova.environment[SETTINGS].split(';')), name])
        _configure_agent(running, 'agent-%s' % number, mode)
        restarted += [nova.name, 'agent-%s' % number]
    # An agent that is killed leaves its lease to expire.
    running.restart(*restarted)
    if {'mirror', 'agents'} & set(without):
        running.kill(*cloud.AGENTS)


def revive(running: cloud.Cloud) -> None:
    """Start every process that does not run."""
    running.start(*(process.name for process in running.state.processes))


def switch(running: cloud.Cloud) -> float:
    """Let nova-api and the agents mirror what they have observed.

    :returns: when the agents were told to reload, in monotonic seconds
    """
    for name in [*('chaos-%s.conf' % number for number in CONTROLLERS),
                 AGENTS]:
        path = pathlib.Path(running.config.path(name))
        path.write_text(path.read_text().replace(
            'mode = observe', 'mode = mirror'))
    running.restart(*('nova-api-%s' % number for number in CONTROLLERS))
    start = time.monotonic()
    for name in cloud.AGENTS:
        running.process(name).send(signal.SIGHUP)
    return start


def requests(running: cloud.Cloud) -> list[str]:
    """Return method and path of each request of an observing agent."""
    log = pathlib.Path(running.state.log(REQUESTS))
    return log.read_text().splitlines() if log.exists() else []


def _relay(running: cloud.Cloud, name: str, url: str, log: str = '') -> str:
    """Start a relay unless it runs; return the URL through it."""
    there = sa.engine.make_url(url)
    known = {each.name: each for each in running.state.processes}
    if name not in known:
        port, = loopback.free_ports(1)
        known[name] = processes.Process(
            name, programs.script(
                'relay.py', str(port), str(there.port), *filter(None, [log])),
            running.state.log(name), {}, port)
    if not known[name].alive():
        running.state.start(known[name]).wait_ready()
    return there.set(port=known[name].port).render_as_string(
        hide_password=False)


def _configure_agent(running: cloud.Cloud, name: str, mode: str) -> None:
    """Make an agent's full sync rare, or observed."""
    agent = running.process(name)
    path = running.config.path(AGENTS)
    options = {'aggregate_mirror': {
        'mode': mode, 'sync_interval': str(SYNC_INTERVAL)}}
    if mode == 'observe':
        options['aggregate_mirror']['max_removed_share'] = '1'
        options['placement'] = {'endpoint_override': _relay(
            running, 'placement-of-agents', running.config.placement_url,
            running.state.log(REQUESTS))}
    config_files.write_file(running.config, AGENTS, options)
    if path not in agent.argv:
        agent.argv += ['--config-file', path]


def _others(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith('chaos-')]
