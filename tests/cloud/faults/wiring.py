# SPDX-License-Identifier: Apache-2.0
"""Relays between the services of a cloud: connections that can be cut."""

from collections import abc
import pathlib
import signal
import time

import sqlalchemy as sa

from tests.cloud import cloud
from tests.cloud import config_files
from tests.cloud.faults import users
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import sql

NOVA, AGENTS = 'chaos-%d.conf', 'chaos-agents.conf'
MODES = ('mirror', 'observe')
SETTINGS = 'OS_NOVA_CONFIG_FILES'
# Rarely enough that the journal has to do the repair; often enough that what
# only the full sync repairs is repaired soon.
SYNC_INTERVAL = 30
REQUESTS = 'requests-of-agents'


def prepare(running: cloud.Cloud, without: abc.Collection[str] = (),
            observed: bool = False) -> None:
    """Put relays between each nova-api and the services it uses; they stay.

    :param without: ``mirror`` for a nova that mirrors aggregates itself,
        ``agents`` for a journal that is not drained
    :param observed: whether nova mirrors by itself, and each request of an
        agent, which only observes, is recorded
    """
    config = running.config
    urls = {'placement': config.url('placement'),
            'database': config.database_url('nova_api'),
            'journal': config.database_url('journal')}
    mode = MODES[observed or 'mirror' in without]
    for number in users.CONTROLLERS:
        placement, database, journal = (
            _relay(running, '%s-of-%d' % (party, number), url)
            for party, url in urls.items())
        name = NOVA % number
        config_files.write_file(config, name, {
            'placement': {'endpoint_override': placement},
            'api_database': {'connection': database},
            'aggregate_mirror_database': {'connection': journal},
            'aggregate_mirror': {'mode': mode}})
        nova = running.process('nova-api-%d' % number)
        files = [file for file in nova.environment[SETTINGS].split(';')
                 if file != name]
        nova.environment[SETTINGS] = ';'.join([*files, name])
    _configure_agents(running, observed)
    # An agent that is killed leaves its lease to expire.
    running.restart('nova-api-1', 'nova-api-2', *cloud.AGENTS)
    if {'mirror', 'agents'} & {*without}:
        running.kill(*cloud.AGENTS)


def _configure_agents(running: cloud.Cloud, observed: bool) -> None:
    """Make full syncs rare, or observed."""
    options = {'aggregate_mirror': {
        'mode': MODES[observed], 'sync_interval': str(SYNC_INTERVAL)}}
    if observed:
        options['aggregate_mirror']['max_removed_share'] = '1'
        options['placement'] = {'endpoint_override': _relay(
            running, 'placement-of-agents', running.config.url('placement'),
            running.state.log(REQUESTS))}
    config_files.write_file(running.config, AGENTS, options)
    path = running.config.path(AGENTS)
    for name in cloud.AGENTS:
        agent = running.process(name)
        if path not in agent.argv:
            agent.argv += ['--config-file', path]


def switch(running: cloud.Cloud) -> float:
    """Let all mirror what they observed; return when agents were told."""
    for name in (*(NOVA % number for number in users.CONTROLLERS), AGENTS):
        path = pathlib.Path(running.config.path(name))
        path.write_text(path.read_text().replace(
            'mode = observe', 'mode = mirror'))
    running.restart('nova-api-1', 'nova-api-2')
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
    target = sa.engine.make_url(url).port
    try:
        relay = running.process(name)
    except LookupError:
        port, = loopback.free_ports(1)
        argv = programs.script('relay.py', str(port), str(target),
                               *filter(None, [log]))
        relay = processes.Process(
            name, argv, running.state.log(name), {}, port)
    if not relay.alive():
        running.state.start(relay).wait_ready()
    return sql.changed(url, port=relay.port)
