# SPDX-License-Identifier: Apache-2.0
"""Small clouds with a request each, for hypothesis to make up."""

from collections.abc import Iterable
import dataclasses
import itertools
from typing import Any

from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager
from oslo_utils.fixture import uuidsentinel

from nova_aggregate_mirror.source import metadata

HOSTS = tuple('host%d' % number for number in range(6))
AGGREGATES = tuple(getattr(uuidsentinel, 'aggregate%d' % number)
                   for number in range(5))
DEFAULT_ZONE = 'nova'

TENANTS = ('tenant-a', 'tenant-b', 'tenant-c', '')
ZONES = (DEFAULT_ZONE, 'east', 'west')
FLAVORS = ('m1.small', 'm1.large', 'M1.small')
SPECS = ('ssd', 'cpu', 'filter_tenant_id', 'trait:x')
VALUES = ('true', 'True', 'false', '8', '16', '7.5', 'sse sse2', '')
OPERATORS = ('=', '<in>', '<all-in>', '==', '!=', '>=', '<=', 's==', 's!=',
             's<', 's<=', 's>', 's>=', '<or>')
IMAGE: dict[str, tuple[Any, ...]] = {
    'hw_machine_type': ('pc', 'q35', ''),
    'hw_disk_bus': ('virtio', 'ide'),
    'hw_boot_menu': (True, False),
    'hw_cpu_sockets': (0, 2),
    'traits_required': (['HW_CPU_X86_SSE'],),
}
OF_IMAGES = ('pc', 'q35', 'virtio', 'True', 'False', '2', '0', '')


@dataclasses.dataclass(frozen=True)
class World:
    """Where hosts are, what aggregates say, and what a user asks for."""

    members: dict[str, frozenset[str]]
    """Host to the UUIDs of its aggregates."""

    metadata: dict[str, dict[str, str]]
    spec: dict[str, Any]
    namespace: str | None
    separator: str
    together: frozenset[frozenset[str]] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, 'together', frozenset(
            frozenset(pair) for within in self.members.values()
            for pair in itertools.combinations(within, 2)))

    def read(self, keys: metadata.Keys,
             paired: metadata.Keys = metadata.Keys(),
             texts: Iterable[str] = ()) -> metadata.Found:
        """Answer as MetadataSource does."""
        kinds = [metadata.Keys(names=frozenset({name}))
                 for name in paired.names]
        kinds.append(metadata.Keys(prefixes=paired.prefixes))
        pairs = {frozenset({one, other})
                 for kind in kinds
                 for one, has in self.metadata.items()
                 if any(key in kind and text in value
                        for key, value in has.items() for text in texts)
                 for other, others in self.metadata.items()
                 if any(key in kind for key in others)}
        return metadata.Found(
            {uuid: {key: value for key, value in has.items() if key in keys}
             for uuid, has in self.metadata.items()
             if any(key in keys for key in has)},
            self.together & pairs)

    def known(self, uuids: Iterable[str]) -> frozenset[str]:
        """Answer as MetadataSource does."""
        return frozenset(uuids) & self.metadata.keys()

    def host_states(self) -> list[host_manager.HostState]:
        """Hosts as nova-scheduler has them in its memory."""
        made = {uuid: objects.Aggregate(uuid=uuid, metadata=has)
                for uuid, has in self.metadata.items()}
        states = []
        for host, within in sorted(self.members.items()):
            state = host_manager.HostState(host, host, uuidsentinel.cell)
            state.aggregates = [made[uuid] for uuid in sorted(within)]
            states.append(state)
        return states

    def offered(self, spec: objects.RequestSpec) -> frozenset[str]:
        """Hosts that placement offers while it mirrors nova."""
        destination = spec.requested_destination or objects.Destination()
        return frozenset(
            host for host, within in self.members.items()
            if all(within & set(group.split(','))
                   for group in destination.aggregates or ())
            and not within & (destination.forbidden_aggregates or set()))


def request_spec(**asked: Any) -> objects.RequestSpec:
    """Make a request as the conductor makes one.

    :param asked: ``project``, ``flavor``, ``extra_specs``, ``zone``, ``image``
    """
    image = asked.get('image')
    return objects.RequestSpec(
        project_id=asked.get('project', 'tenant-a'),
        instance_uuid=uuidsentinel.instance,
        availability_zone=asked.get('zone'),
        image=None if image is None else objects.ImageMeta(
            properties=objects.ImageMetaProps(**image)),
        flavor=objects.Flavor(
            name=asked.get('flavor', 'm1.small'), vcpus=1, memory_mb=64,
            root_gb=1, ephemeral_gb=0, swap=0,
            extra_specs=asked.get('extra_specs', {})),
        is_bfv=False, num_instances=1, requested_resources=[],
        ignore_hosts=None, force_hosts=None, force_nodes=None,
        requested_destination=None, limits=None, retry=None,
        instance_group=None, scheduler_hints={}, numa_topology=None,
        pci_requests=None)


def _lists(values: Iterable[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(sorted(set(values))), min_size=1,
                    max_size=3).flatmap(lambda chosen: st.sampled_from(
                        (',', ', ', ' ,')).map(lambda comma: comma.join(
                            chosen)))


def _wanted() -> st.SearchStrategy[str]:
    """What a flavor may ask of a key, with all of nova's operators."""
    operands = st.lists(st.sampled_from(VALUES[:-1]), max_size=2)
    joined = st.tuples(st.sampled_from(OPERATORS), operands).map(
        lambda drawn: ' '.join((drawn[0], (
            ' <or> ' if drawn[0] == '<or>' else ' ').join(drawn[1]))).strip())
    return st.one_of(st.sampled_from(VALUES), joined)


TENANT_LISTS, IMAGE_LISTS = _lists(TENANTS), _lists(OF_IMAGES)
KEYS: dict[str, dict[str, st.SearchStrategy[str]]] = {
    'flavor_extra_specs': {
        'ssd': _lists(VALUES), 'cpu': _lists(VALUES), 'trait:x': st.just('')},
    'tenant_isolation': {
        'filter_tenant_id': TENANT_LISTS, 'filter_tenant_id_2': TENANT_LISTS,
        'filter_tenant': TENANT_LISTS},
    'image_properties': {
        'hw_machine_type': IMAGE_LISTS, 'hw_disk_bus': IMAGE_LISTS,
        'hw_boot_menu': IMAGE_LISTS, 'hw_cpu_sockets': IMAGE_LISTS,
        'hw.machine_type': IMAGE_LISTS,
        'traits_required': st.just("['HW_CPU_X86_SSE']")},
    'type_affinity': {'instance_type': _lists(FLAVORS)},
    'default_availability_zone': {'availability_zone': _lists(ZONES)},
}
"""Request filter to the keys that it reads, and some that it must not."""


def _spec() -> st.SearchStrategy[dict[str, Any]]:
    keys = st.sampled_from(SPECS).flatmap(lambda key: st.sampled_from(
        (key, 'aggregate_instance_extra_specs:' + key, 'hw:' + key)))
    return st.fixed_dictionaries({
        'project': st.sampled_from(TENANTS),
        'flavor': st.sampled_from(FLAVORS),
        'extra_specs': st.dictionaries(keys, _wanted(), max_size=3),
        'zone': st.sampled_from((None, DEFAULT_ZONE, *ZONES)),
        'image': st.one_of(st.none(), st.fixed_dictionaries({}, optional={
            name: st.sampled_from(values)
            for name, values in IMAGE.items()}))})


def worlds(filters: Iterable[str]) -> st.SearchStrategy[World]:
    """Worlds in which aggregates have the keys of these request filters."""
    keys = {key: value for name in filters
            for key, value in KEYS[name].items()}
    return st.builds(
        World,
        members=st.fixed_dictionaries({
            host: st.frozensets(st.sampled_from(AGGREGATES), max_size=3)
            for host in HOSTS}),
        metadata=st.fixed_dictionaries({
            uuid: st.fixed_dictionaries({}, optional=keys)
            for uuid in AGGREGATES}),
        spec=_spec(), namespace=st.sampled_from((None, None, 'hw', '')),
        separator=st.sampled_from(('.', '_')))
