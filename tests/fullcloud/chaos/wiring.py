# SPDX-License-Identifier: Apache-2.0
"""What a cloud has for faults besides its services: wires that can be cut."""

from collections.abc import Collection
import pathlib
import sys

import sqlalchemy as sa

from tests.cloud import config
from tests.cloud import processes
from tests.fullcloud import cloud
from tests.fullcloud import daemons

RELAY = pathlib.Path(__file__).parent.parent / 'relay.py'
CONTROLLERS = (1, 2)
WIRES = ('placement', 'database', 'journal')
SETTINGS = 'OS_NOVA_CONFIG_FILES'
# Seldom enough that it is the journal which has to heal; often enough that
# what is the full sync's to heal need not be waited for.
SYNC_INTERVAL = 30


def relays() -> list[str]:
    """The names of all relays."""
    return [f'{wire}-of-{number}' for wire in WIRES for number in CONTROLLERS]


def prepare(running: cloud.Cloud, without: Collection[str] = ()) -> None:
    """Put relays between each nova-api and what it uses; they stay.

    :param without: ``mirror`` for a nova that mirrors aggregates itself,
        ``agents`` for one whose journal nobody reads
    """
    urls = {'placement': running.config.placement_url,
            'database': running.config.database_url('nova_api'),
            'journal': running.config.database_url('journal')}
    restarted = []
    for number in CONTROLLERS:
        wires = {wire: _relay(running, f'{wire}-of-{number}', url)
                 for wire, url in urls.items()}
        options = {
            'placement': {'endpoint_override': wires['placement']},
            'api_database': {'connection': wires['database']},
            'aggregate_mirror_database': {'connection': wires['journal']},
            'aggregate_mirror': (
                {'hooks': ''} if 'mirror' in without else {})}
        nova = running.daemon(f'nova-api-{number}')
        name = f'chaos-{number}.conf'
        config.write_file(running.config, name, options)
        nova.environment[SETTINGS] = ';'.join(
            [*_others(nova.environment[SETTINGS].split(';')), name])
        restarted += [nova, _seldom(running, f'agent-{number}')]
    for each in restarted:
        each.kill()
        running.state.start(each)
    for each in restarted:
        each.wait_ready()
    if {'mirror', 'agents'} & set(without):
        for number in CONTROLLERS:
            running.daemon(f'agent-{number}').kill()


def revive(running: cloud.Cloud) -> None:
    """Start what does not run, so that the cloud is whole."""
    gone = [each for each in running.state.daemons if not each.alive()]
    for each in gone:
        running.state.start(each)
    for each in gone:
        each.wait_ready()


def _relay(running: cloud.Cloud, name: str, url: str) -> str:
    """Start a relay unless it is there; the URL through it."""
    there = sa.engine.make_url(url)
    known = {each.name: each for each in running.state.daemons}
    if name not in known:
        port, = processes.free_ports(1)
        known[name] = daemons.Daemon(
            name, [sys.executable, '-P', str(RELAY), str(port),
                   str(there.port)], running.state.log(name), {}, port)
    if not known[name].alive():
        running.state.start(known[name]).wait_ready()
    return there.set(port=known[name].port).render_as_string(
        hide_password=False)


def _seldom(running: cloud.Cloud, name: str) -> daemons.Daemon:
    """Have an agent compare everything only now and then."""
    agent = running.daemon(name)
    path = running.config.path('chaos-agents.conf')
    config.write_file(running.config, 'chaos-agents.conf', {
        'aggregate_mirror': {'sync_interval': str(SYNC_INTERVAL)}})
    if path not in agent.argv:
        agent.argv += ['--config-file', path]
    return agent


def _others(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith('chaos-')]
