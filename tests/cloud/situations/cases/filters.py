# SPDX-License-Identifier: Apache-2.0
"""Nova's host filters, and limits on the number of candidates."""

from tests.cloud.situations.cases import moves
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

HOST, OTHER = 'compute-1', 'compute-2'
SPEC = 'aggregate_instance_extra_specs:'

Round, Rounds, Situation = scene.Round, scene.Rounds, scene.Situation


def architecture(at: scene.Scene) -> Rounds:
    """The host cannot run the image"""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    image = furnish.image(at, hw_architecture='aarch64')
    yield Round(servers.Create(at, wanted, zone, image), HOST, 'filter',
                'unable to run the image', 'compare architecture',
                'create the server with another image',
                servers.Create(at, wanted, zone))


def capability(at: scene.Scene) -> Rounds:
    """The flavor requires another hypervisor"""
    zone, spec = furnish.zone(at, HOST), 'capabilities:hypervisor_type'
    yield Round(furnish.creation(at, zone, specs={spec: 'QEMU'}), HOST,
                'filter', 'without a capability that the flavor requires',
                'compare the flavor\'s extra specs',
                'create the server with a flavor for this hypervisor',
                furnish.creation(at, zone, specs={spec: 'fake'}))


def numa(at: scene.Scene) -> Rounds:
    """The host has no NUMA topology: NUMATopologyFilter"""
    zone = furnish.zone(at, HOST)
    yield Round(furnish.creation(at, zone, specs={'hw:numa_nodes': '1'}), HOST,
                'filter', 'unable to fit the NUMA topology',
                'compare hw:numa_nodes',
                'create the server with a flavor without NUMA topology',
                furnish.creation(at, zone))


def pci(at: scene.Scene) -> Rounds:
    """The host has no PCI device: PciPassthroughFilter"""
    zone = furnish.zone(at, HOST)
    # The alias has to be configured in the nova-api that is used.
    nova = at.enter(at.cloud.another_nova_api(
        'nova-api-pci', {'pci': {'alias': moves.ALIAS}}))
    wanted = furnish.creation(
        at, zone, specs={'pci_passthrough:alias': 'card:1'}, nova=nova)
    yield Round(wanted, HOST, 'filter',
                'without a free PCI device that matches',
                'see [pci] device_spec of the host and the alias of the '
                'flavor', 'create the server with a flavor without PCI device',
                furnish.creation(at, zone))


def _hint(at: scene.Scene, zone: str, wanted: str, before: dict[str, str],
          after: dict[str, str], reason: str, step: str, action: str) -> Round:
    """Return the round of a request with other hints in the end."""
    first, again = (servers.Create(at, wanted, zone, hints=hints)
                    for hints in (before, after))
    return Round(first, HOST, 'filter', reason, step, action, again)


def anti_affinity(at: scene.Scene) -> Rounds:
    """The host has a server of the anti-affinity group"""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    group, soft = (furnish.group(at, policy) for policy in (
        'anti-affinity', 'soft-anti-affinity'))
    servers.boot(at, wanted, HOST, zone, hints={'group': group})
    yield _hint(at, zone, wanted, {'group': group}, {'group': soft},
                'with a server of the same group', 'soft-anti-affinity',
                'use a group with soft-anti-affinity')


def affinity(at: scene.Scene) -> Rounds:
    """The host of the affinity group is disabled"""
    wanted, zone = furnish.flavor(at), furnish.zone(at, HOST)
    group, another = (furnish.group(at, 'affinity') for _number in range(2))
    servers.boot(at, wanted, OTHER, 'nova:' + OTHER, hints={'group': group})
    hosts.disable(at, OTHER)
    yield _hint(at, zone, wanted, {'group': group}, {'group': another},
                'not the host of the server group', 'another group',
                'use another group')


def different_host(at: scene.Scene) -> Rounds:
    """The hint different_host"""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    first = servers.boot(at, wanted, HOST, zone)
    yield _hint(at, zone, wanted, {'different_host': first}, {},
                'with a server to keep apart from',
                'change the hint different_host',
                'create the server without the hint')


def same_host(at: scene.Scene) -> Rounds:
    """The hint same_host"""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    elsewhere = servers.boot(at, wanted, OTHER, 'nova:' + OTHER)
    yield _hint(at, zone, wanted, {'same_host': elsewhere}, {},
                'without the server to join', 'change the hint same_host',
                'create the server without the hint')


def query(at: scene.Scene) -> Rounds:
    """The hint query"""
    yield _hint(at, furnish.zone(at, HOST), furnish.flavor(at),
                {'query': '["<", "$free_ram_mb", 1]'},
                {'query': '[">", "$free_ram_mb", 1]'},
                'excluded by the hint query', 'change the hint query',
                'create the server with another hint')


def _few(at: scene.Scene, then: str, action: str, note: str = '') -> Rounds:
    """Placement may return one host, and it is not the suitable one."""
    # The other hosts are excluded, so that placement returns one of two.
    key, name = at.name('key'), hosts.custom_trait(at, HOST, OTHER)
    wanted = furnish.creation(at, specs={
        'trait:' + name: 'required', SPEC + key: 'fast'})
    found = at.placement.get(
        '/allocation_candidates?resources=VCPU:1,MEMORY_MB:64,DISK_GB:1'
        '&required=%s&limit=1' % name).json()['provider_summaries']
    # Which of them is up to placement: the other one is suitable.
    [suitable] = [host for host in (HOST, OTHER)
                  if hosts.provider(at, host) not in found]
    furnish.aggregate(at, suitable, **{key: 'fast'})
    yield Round(wanted, suitable, 'cut', 'beyond max_placement_results',
                'raise [scheduler] max_placement_results', action, note=note)
    at.schedulers.use(then)


STOCK = schedulers.STOCK

SITUATIONS = (
    *scene.situations(architecture, capability, anti_affinity, affinity),
    *scene.situations(numa, pci, different_host, same_host, query,
                      scheduler=STOCK),
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
