# SPDX-License-Identifier: Apache-2.0
"""Compute hosts with inventory, some of them in an isolated aggregate."""

from collections import abc
import dataclasses
import json
from typing import Any
import uuid

from nova import context
from nova import objects
import os_traits

from benchmarks import workload
from tests.cloud import cloud
from tests.cloud import seed
from tests.cloud import sql

ZONES, MEMBERSHIPS = 20, 3
"""Number of aggregates, and of aggregates per host."""
BOUND = 20
"""Number of hosts in the aggregate that the flavor is bound to."""
CPUS, MEMORY_MB, DISK_GB = 64, 262144, 2000
NODE_TRAITS = 60
SCOPE = 'aggregate_instance_extra_specs:'
BOUND_SPECS = {SCOPE + 'bound': 'true'}

Groups = abc.Sequence[tuple[abc.Mapping[str, str], abc.Sequence[str]]]

_INVENTORY = (
    'INSERT INTO inventories (resource_provider_id, resource_class_id, total,'
    ' reserved, min_unit, max_unit, step_size, allocation_ratio)'
    ' SELECT p.id, c.id, :total, 0, 1, :total, 1, :ratio'
    ' FROM resource_providers p, resource_classes c WHERE c.name = :name')
_TRAITS = (
    'INSERT INTO resource_provider_traits (resource_provider_id, trait_id)'
    ' SELECT p.id, t.id FROM resource_providers p, traits t'
    ' WHERE t.name IN :traits')
_ASSOCIATIONS = (
    'INSERT INTO resource_provider_aggregates'
    ' (resource_provider_id, aggregate_id)'
    ' SELECT p.id, a.id FROM resource_providers p, placement_aggregates a'
    ' WHERE a.uuid = :uuid AND p.name IN :hosts')


def spread(names: abc.Sequence[str], count: int) -> list[str]:
    """Select ``count`` evenly spaced names."""
    return [names[(2 * number + 1) * len(names) // (2 * count)]
            for number in range(count)]


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Compute nodes of a cloud, and the providers of the bound aggregate."""

    nodes: abc.Sequence[seed.Node]
    bound: frozenset[str]
    """UUIDs of the providers that the bound flavor may use."""

    @property
    def hosts(self) -> list[str]:
        return [node.host for node in self.nodes]


def seeded(running: cloud.Cloud, hosts: int, groups: Groups = ()) -> Fleet:
    """Seed hosts and aggregates; groups have metadata and member hosts."""
    size = workload.Size(hosts, MEMBERSHIPS, ZONES)
    nodes = running.seed_hosts(size.host_names())
    _grow(running)
    _equip(running)
    members = dict(size.members())
    metadata = {aggregate: {'rack': 'rack-%02d' % number}
                for number, aggregate in enumerate(members)}
    bound = spread(size.host_names(), BOUND)
    for values, chosen in (*groups, ({'bound': 'true'}, bound)):
        aggregate = str(uuid.uuid4())
        members[aggregate], metadata[aggregate] = list(chosen), dict(values)
    seed.aggregates(running.config, members, metadata)
    _mirror(running, members)
    return Fleet(nodes, frozenset(
        node.uuid for node in nodes if node.host in bound))


def stored(memory_mb: int, project: str, zone: str | None = None,
           extra_specs: abc.Mapping[str, str] = {},
           image: abc.Mapping[str, Any] = {}) -> tuple[str, str]:
    """Return a flavor and a request with it, as nova stores them."""
    objects.register_all()
    flavor = objects.Flavor(
        id=memory_mb, name='memory-%d' % memory_mb, flavorid=str(memory_mb),
        vcpus=1, memory_mb=memory_mb, root_gb=1, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, disabled=False, is_public=True,
        extra_specs=dict(extra_specs), projects=[])
    spec = objects.RequestSpec.from_components(
        context.get_admin_context(), str(uuid.uuid4()), dict(image), flavor,
        None, None, {}, None, zone, project_id=project)
    kept = {'cur': flavor.obj_to_primitive(), 'old': None, 'new': None}
    return json.dumps(kept), json.dumps(spec.obj_to_primitive())


def _grow(running: cloud.Cloud) -> None:
    """Set the fields of nova's compute nodes as libvirt reports them."""
    objects.register_all()
    values = _reported()
    sql.execute(
        running.config.database_url('nova'), 'UPDATE compute_nodes SET '
        + ', '.join('%s = :%s' % (name, name) for name in values), **values)


def _reported() -> dict[str, Any]:
    free = MEMORY_MB - 512
    return {
        'vcpus': CPUS, 'memory_mb': MEMORY_MB, 'local_gb': DISK_GB,
        'memory_mb_used': 512, 'free_ram_mb': free, 'free_disk_gb': DISK_GB,
        'disk_available_least': DISK_GB - 50, 'hypervisor_type': 'QEMU',
        'hypervisor_version': 8002000, 'host_ip': '192.0.2.1',
        'current_workload': 0, 'running_vms': 0, 'metrics': '[]',
        'cpu_allocation_ratio': 4.0, 'ram_allocation_ratio': 1.0,
        'disk_allocation_ratio': 1.0, 'numa_topology': _numa(),
        'updated_at': '2026-01-01 00:00:00',
        'stats': json.dumps({'failed_builds': '0'}),
        'cpu_info': json.dumps({
            'arch': 'x86_64', 'model': 'Icelake-Server-noTSX',
            'vendor': 'Intel', 'maxphysaddr': None,
            'topology': {'cells': 2, 'sockets': 1, 'cores': CPUS // 4,
                         'threads': 2},
            'features': [trait.lower() for trait in _traits('HW_CPU_X86_')]}),
        'supported_instances': json.dumps([
            [arch, kind, 'hvm'] for arch in ('i686', 'x86_64')
            for kind in ('qemu', 'kvm')])}


def _numa() -> str:
    """Return a topology of two cells, with threads and three page sizes."""
    half = CPUS // 2
    return objects.NUMATopology(cells=[
        objects.NUMACell(
            id=cell, socket=cell, memory=MEMORY_MB // 2, memory_usage=0,
            cpu_usage=0, cpuset=set(range(cell * half, (cell + 1) * half)),
            pcpuset=set(), pinned_cpus=set(),
            siblings=[{cell * half + one, cell * half + one + half // 2}
                      for one in range(half // 2)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=MEMORY_MB * 512 // size, used=0)
                for size in (4, 2048, 1048576)],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False))
        for cell in range(2)])._to_json()


def _traits(prefix: str) -> list[str]:
    return sorted(one for one in os_traits.get_traits()
                  if one.startswith(prefix) and 'STATUS' not in one)


def _equip(running: cloud.Cloud) -> None:
    """Set the inventories and traits of the providers."""
    traits = ['OWNER_NOVA', *_traits('COMPUTE_')[:NODE_TRAITS // 2],
              *_traits('HW_CPU_X86_')[:NODE_TRAITS // 2]]
    placement = running.config.database_url('placement')
    for name, total, ratio in (('VCPU', CPUS, 4.0),
                               ('MEMORY_MB', MEMORY_MB, 1.0),
                               ('DISK_GB', DISK_GB, 1.0)):
        sql.execute(placement, _INVENTORY, name=name, total=total, ratio=ratio)
    sql.execute(placement, _TRAITS, traits=traits)


def _mirror(running: cloud.Cloud, members: abc.Mapping[str, abc.Sequence[str]]
            ) -> None:
    """Write the associations of a full sync; REST would take minutes."""
    placement = running.config.database_url('placement')
    sql.insert(placement, 'placement_aggregates', [
        {'uuid': aggregate} for aggregate in members])
    for aggregate, hosts in members.items():
        sql.execute(
            placement, _ASSOCIATIONS, uuid=aggregate, hosts=list(hosts))
