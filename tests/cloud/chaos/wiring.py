# SPDX-License-Identifier: Apache-2.0
"""Relays between the services of a cloud: connections that can be cut."""

from collections.abc import Collection

import sqlalchemy as sa

from tests.cloud import cloud
from tests.cloud import config_files
from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs

CONTROLLERS = (1, 2)
WIRES = ('placement', 'database', 'journal')
SETTINGS = 'OS_NOVA_CONFIG_FILES'
# Rarely enough that the journal has to do the repair; often enough that what
# only the full sync repairs is repaired soon.
SYNC_INTERVAL = 30


def relays() -> list[str]:
    """Return the names of all relays."""
    return ['%s-of-%s' % (
        wire, number) for wire in WIRES for number in CONTROLLERS]


def prepare(running: cloud.Cloud, without: Collection[str] = ()) -> None:
    """Put relays between each nova-api and the services it uses; they stay.

    :param without: ``mirror`` for a nova that mirrors aggregates itself,
        ``agents`` for a journal that is not drained
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
            'aggregate_mirror': (
                {'hooks': ''} if 'mirror' in without else {})}
        nova = running.process('nova-api-%s' % number)
        name = 'chaos-%s.conf' % number
        config_files.write_file(running.config, name, options)
        nova.environment[SETTINGS] = ';'.join(
            [*_others(nova.environment[SETTINGS].split(';')), name])
        restarted += [nova, _seldom(running, 'agent-%s' % number)]
    for each in restarted:
        each.kill()
        running.state.start(each)
    for each in restarted:
        each.wait_ready()
    if {'mirror', 'agents'} & set(without):
        for number in CONTROLLERS:
            running.process('agent-%s' % number).kill()


def revive(running: cloud.Cloud) -> None:
    """Start every process that does not run."""
    gone = [each for each in running.state.processes if not each.alive()]
    for each in gone:
        running.state.start(each)
    for each in gone:
        each.wait_ready()


def _relay(running: cloud.Cloud, name: str, url: str) -> str:
    """Start a relay unless it runs; return the URL through it."""
    there = sa.engine.make_url(url)
    known = {each.name: each for each in running.state.processes}
    if name not in known:
        port, = loopback.free_ports(1)
        known[name] = processes.Process(
            name, programs.script('relay.py', str(port), str(there.port)),
            running.state.log(name), {}, port)
    if not known[name].alive():
        running.state.start(known[name]).wait_ready()
    return there.set(port=known[name].port).render_as_string(
        hide_password=False)


def _seldom(running: cloud.Cloud, name: str) -> processes.Process:
    """Make an agent's full sync rare; return its process."""
    agent = running.process(name)
    path = running.config.path('chaos-agents.conf')
    config_files.write_file(running.config, 'chaos-agents.conf', {
        'aggregate_mirror': {'sync_interval': str(SYNC_INTERVAL)}})
    if path not in agent.argv:
        agent.argv += ['--config-file', path]
    return agent


def _others(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith('chaos-')]
