# SPDX-License-Identifier: Apache-2.0
"""Nova's host filters, and limits on the number of candidates."""

import json

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

HOST, OTHER = 'compute-1', 'compute-2'
SPEC = 'aggregate_instance_extra_specs:'

Rounds = scene.Rounds
Situation = scene.Situation


def image(at: scene.Scene) -> Rounds:
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    yield scene.Round(
        servers.Create(at, wanted, zone,
                       furnish.image(at, hw_architecture='aarch64')),
        HOST, 'filter', 'unable to run the image', 'compare architecture',
        'create the server with another image',
        servers.Create(at, wanted, zone))


def capability(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    spec = 'capabilities:hypervisor_type'
    yield scene.Round(
        servers.Create(at, furnish.flavor(at, specs={spec: 'QEMU'}), zone),
        HOST, 'filter', 'without a capability that the flavor requires',
        'compare the flavor\'s extra specs',
        'create the server with a flavor for this hypervisor',
        servers.Create(at, furnish.flavor(at, specs={spec: 'fake'}), zone))


def numa(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, HOST)
    spec = {'hw:numa_nodes': '1'}
    yield scene.Round(
        servers.Create(at, furnish.flavor(at, specs=spec), zone), HOST,
        'filter', 'unable to fit the NUMA topology', 'compare hw:numa_nodes',
        'create the server with a flavor without NUMA topology',
        furnish.creation(at, zone))


def pci(at: scene.Scene) -> Rounds:
    """The alias has to be configured in the nova-api that is used."""
    zone = furnish.zone(at, HOST)
    alias = json.dumps(
        {'name': 'card', 'vendor_id': '15b3', 'product_id': '1018'})
    nova = at.enter(at.cloud.another_nova_api(
        'nova-api-pci', {'pci': {'alias': alias}}))
    wanted = furnish.flavor(at, specs={'pci_passthrough:alias': 'card:1'})
    yield scene.Round(
        servers.Create(at, wanted, zone, nova=nova), HOST, 'filter',
        'without a free PCI device that matches',
        'see [pci] device_spec of the host and the alias of the flavor',
        'create the server with a flavor without PCI device',
        furnish.creation(at, zone))


def anti_affinity(at: scene.Scene) -> Rounds:
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    group = furnish.group(at, 'anti-affinity')
    servers.boot(at, wanted, HOST, zone, hints={'group': group})
    soft = furnish.group(at, 'soft-anti-affinity')
    yield scene.Round(
        servers.Create(at, wanted, zone, hints={'group': group}), HOST,
        'filter', 'with a server of the same group', 'soft-anti-affinity',
        'use a group with soft-anti-affinity',
        servers.Create(at, wanted, zone, hints={'group': soft}))


def affinity(at: scene.Scene) -> Rounds:
    wanted, group = furnish.flavor(at), furnish.group(at, 'affinity')
    servers.boot(at, wanted, OTHER, 'nova:' + OTHER, hints={'group': group})
    hosts.disable(at, OTHER)
    zone = furnish.zone(at, HOST)
    another = furnish.group(at, 'affinity')
    yield scene.Round(
        servers.Create(at, wanted, zone, hints={'group': group}), HOST,
        'filter', 'not the host of the server group', 'another group',
        'use another group',
        servers.Create(at, wanted, zone, hints={'group': another}))


def different_host(at: scene.Scene) -> Rounds:
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    first = servers.boot(at, wanted, HOST, zone)
    yield scene.Round(
        servers.Create(at, wanted, zone, hints={'different_host': first}),
        HOST, 'filter', 'with a server to keep apart from',
        'change the hint different_host', 'create the server without the '
        'hint', servers.Create(at, wanted, zone))


def same_host(at: scene.Scene) -> Rounds:
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    elsewhere = servers.boot(at, wanted, OTHER, 'nova:' + OTHER)
    yield scene.Round(
        servers.Create(at, wanted, zone, hints={'same_host': elsewhere}), HOST,
        'filter', 'without the server to join', 'change the hint same_host',
        'create the server without the hint', servers.Create(at, wanted, zone))


def hint(at: scene.Scene) -> Rounds:
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    yield scene.Round(
        servers.Create(at, wanted, zone, hints={
            'query': '["<", "$free_ram_mb", 1]'}),
        HOST, 'filter', 'excluded by the hint query',
        'change the hint query', 'create the server with another hint',
        servers.Create(at, wanted, zone, hints={
            'query': '[">", "$free_ram_mb", 1]'}))


def _few(at: scene.Scene, then: str, action: str, note: str = '') -> Rounds:
    """Placement may return one host, and it is not the suitable one."""
    key = at.name('key')
    # The other hosts are excluded, so that placement returns one of two.
    name = hosts.custom_trait(at)
    for host in (HOST, OTHER):
        hosts.add_trait(at, host, name)
    specs = {'trait:' + name: 'required', SPEC + key: 'fast'}
    wanted = servers.Create(at, furnish.flavor(at, specs=specs))
    # Which of them is up to placement: the other one is suitable.
    suitable = _beyond(at, name)
    furnish.aggregate(at, suitable, **{key: 'fast'})
    yield scene.Round(
        wanted, suitable, 'cut', 'beyond max_placement_results',
        'raise [scheduler] max_placement_results', action, note=note)
    at.schedulers.use(then)


def _beyond(at: scene.Scene, trait: str) -> str:
    """Return the host that placement does not return if it may return one."""
    found = at.placement.get(
        '/allocation_candidates?resources=VCPU:1,MEMORY_MB:64,DISK_GB:1'
        '&required=%s&limit=1' % trait).json()['provider_summaries']
    [first] = [host for host in (HOST, OTHER)
               if hosts.provider(at, host) in found]
    return OTHER if first == HOST else HOST


STOCK = schedulers.STOCK

SITUATIONS = (
    Situation('architecture', 'The host cannot run the image', image),
    Situation('capability', 'The flavor requires another hypervisor',
              capability),
    Situation('anti-affinity', 'The host has a server of the anti-affinity '
              'group', anti_affinity),
    Situation('affinity', 'The host of the affinity group is disabled',
              affinity),
    Situation('numa', 'The host has no NUMA topology: NUMATopologyFilter',
              numa, STOCK),
    Situation('pci', 'The host has no PCI device: PciPassthroughFilter', pci,
              STOCK),
    Situation('different-host', 'The hint different_host', different_host,
              STOCK),
    Situation('same-host', 'The hint same_host', same_host, STOCK),
    Situation('query', 'The hint query', hint, STOCK),
    Situation('few', 'max_placement_results excludes the suitable host',
              lambda at: _few(at, STOCK, 'raise max_placement_results'),
              schedulers.FEW),
    Situation('few-narrowed', 'The same, resolved by the request filter',
              lambda at: _few(at, schedulers.FEW_OURS,
                              'enable request_filters'), schedulers.FEW),
    Situation('short', 'max_member_of_bytes is too small for the query',
              lambda at: _few(at, schedulers.FEW_OURS,
                              'raise max_member_of_bytes',
                              'raise [aggregate_mirror] max_member_of_bytes'),
              schedulers.SHORT))
