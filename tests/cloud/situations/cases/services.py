# SPDX-License-Identifier: Apache-2.0
"""Nova-compute that is disabled, down or without a provider."""

from tests.cloud.situations import cells
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers
from tests.cloud.situations import situation

HOST = 'compute-1'
DISABLED = 'COMPUTE_STATUS_DISABLED'
RESTART = 'restart nova-compute on the host'

Rounds = situation.Rounds
Situation = situation.Situation


def disabled(at: scene.Scene) -> Rounds:
    # Nova-api refuses a zone whose hosts are all disabled.
    name = hosts.custom_trait(at)
    hosts.add_trait(at, HOST, name)
    hosts.disable(at, HOST)
    yield situation.Round(
        servers.Create(at, furnish.requiring(at, name)), HOST, 'disabled',
        'disabled', 'openstack compute service set --enable')


def forced_down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    hosts.force_down(at, HOST)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'down', 'forced down',
        'openstack compute service set --up')


def down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    hosts.kill(at, HOST)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'down', 'down',
        'start nova-compute on the host', 'start nova-compute')
    hosts.start(at, HOST)


def left_over(at: scene.Scene) -> Rounds:
    """Placement has the trait of a disabled host that is enabled."""
    zone = furnish.zone(at, HOST)
    hosts.add_trait(at, HOST, DISABLED)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'trait',
        'disabled in placement but not in nova', RESTART,
        'restart nova-compute')
    hosts.restart(at, HOST)
    at.wait_until(lambda: DISABLED not in hosts.traits(at, HOST),
                  'nova-compute has removed the trait')


def no_provider(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    provider = hosts.provider(at, HOST)
    at.placement.delete('/resource_providers/%s' % provider)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'no_provider',
        'without a resource provider', 'otherwise restart it',
        'restart nova-compute; the agent adds the provider to its aggregates')
    hosts.restart(at, HOST)
    hosts.wait_member(at, provider, furnish.uuid(at, zone))


def cell_down(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    database = cells.database(at)
    # Nova tries its first connection to a database for minutes.
    servers.boot(at, furnish.flavor(at), HOST, zone)
    database.fail('refuses')
    yield situation.Round(
        furnish.creation(at, zone), '', takes=HOST,
        summary='finds 0 of 0 hosts: nova shows no compute node',
        note='; its hosts are not explained',
        action='start the database of the cell')
    database.forward()


SITUATIONS = (
    Situation('disabled', 'Nova-compute is disabled', disabled),
    Situation('forced-down', 'Nova-compute is forced down', forced_down),
    Situation('down', 'Nova-compute does not run', down),
    Situation('left-over', 'Placement has a host disabled that nova has '
              'enabled', left_over),
    Situation('no-provider', 'The resource provider was deleted',
              no_provider),
    Situation('cell-down', 'The database of the cell does not answer',
              cell_down))
