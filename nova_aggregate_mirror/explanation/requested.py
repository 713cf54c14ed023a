# SPDX-License-Identifier: Apache-2.0
"""The query that nova builds for a flavor and an image: pure, no I/O.

Only what nova does without options, and in every supported release.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import re

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explanation import query
from nova_aggregate_mirror.source import api_requests

VCPU, PCPU = 'VCPU', 'PCPU'
DISABLED = '!COMPUTE_STATUS_DISABLED'
HYPERTHREADING = 'HW_CPU_HYPERTHREADING'
DEDICATED = 'dedicated'

_EXTRA_SPEC = re.compile(r'(resources|trait)([a-zA-Z0-9_-]{0,64}):(.+)')
# Nova adds resources or traits for these extra specs and image properties.
_TRANSLATED = frozenset({
    'accel:device_profile', 'hw:ephemeral_encryption', 'hw:firmware_stateless',
    'hw:maxphysaddr_mode', 'hw:mem_encryption',
    'hw:pci_numa_affinity_policy', 'hw:pmem', 'hw:sound_model',
    'hw:tpm_model', 'hw:tpm_version', 'hw:virtio_packed_ring',
    'os:secure_boot', 'pci_passthrough:alias'})


@dataclasses.dataclass(frozen=True)
class Requested:
    """What is asked for a server."""

    flavor: api_requests.Flavor
    properties: Mapping[str, str]
    """Those of the image."""
    from_volume: bool = False
    """Whether the root disk is a volume."""
    project: str = ''
    zone: str = ''

    def setting(self, name: str) -> str:
        """Return an extra spec, or the image property that stands for it."""
        return self.flavor.extra_specs.get(
            name, self.properties.get(name.replace(':', '_', 1), ''))

    @property
    def traits(self) -> frozenset[str]:
        """The traits that flavor and image require."""
        return frozenset(_traits(self.properties, 'required')) | {
            name for group in _groups(self.flavor).values()
            for name in group.traits if not name.startswith('!')}

    @property
    def not_explained(self) -> list[str]:
        """What nova translates to further resources or traits."""
        found = {name for name in _TRANSLATED if self.setting(name)}
        policy = self.setting('hw:cpu_policy')
        return sorted(found | {'hw:cpu_policy=mixed'} if policy == 'mixed'
                      else found)


@dataclasses.dataclass
class _Group:
    """A request group of the flavor; traits start with ! if forbidden."""

    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    traits: set[str] = dataclasses.field(default_factory=set)


def queries(requested: Requested, aggregates: Iterable[query.Condition]
            ) -> list[query.Query]:
    """Build the queries for a request; nova takes the candidates of each.

    A second query has shared processors in place of dedicated ones.

    :param aggregates: further conditions
    :raises InvalidConfiguration: an extra spec of the flavor is invalid
    """
    further = list(aggregates)
    found = [_query(requested, further, pinned=True)]
    if requested.setting('hw:cpu_policy') == DEDICATED:
        found.append(_query(requested, further, pinned=False))
    return found


def _query(requested: Requested, further: list[query.Condition],
           pinned: bool) -> query.Query:
    flavor = requested.flavor
    groups = _groups(flavor)
    main = groups.setdefault('', _Group())
    from_image = set(_traits(requested.properties, 'required'))
    main.traits |= from_image
    if pinned:
        _pin(requested, main)
    asked = {name for group in groups.values() for name in group.resources}
    if not asked & {VCPU, PCPU}:
        main.resources[VCPU] = flavor.vcpus
    disk = flavor.ephemeral_gb + -(-flavor.swap_mb // 1024) + (
        0 if requested.from_volume else flavor.root_gb)
    for name, amount in (('MEMORY_MB', flavor.memory_mb), ('DISK_GB', disk)):
        if name not in asked:
            main.resources[name] = amount
    found = []
    for suffix, group in sorted(groups.items()):
        amounts = ['%s:%d' % each for each in sorted(group.resources.items())
                   if each[1]]
        if amounts:
            found.append((query.RESOURCES + suffix, ','.join(amounts)))
        if group.traits:
            found.append((query.REQUIRED + suffix,
                          ','.join(sorted(group.traits))))
    policy = flavor.extra_specs.get('group_policy')
    if policy in ('none', 'isolate'):
        found.append((query.POLICY, policy))
    by = {(one.key, one.value): one.asked_by for one in further}
    return query.parse(
        [*found, (query.ROOT, DISABLED), *by],
        lambda one: by.get((one.key, one.value)) or _source(one, from_image))


def _source(condition: query.Condition, from_image: set[str]) -> str:
    if query.kind(condition) == query.ROOT:
        return 'nova'
    return 'image' if (condition.key == query.REQUIRED and
                       condition.value in from_image) else 'flavor'


def _pin(requested: Requested, main: _Group) -> None:
    """Ask for dedicated processors, and for their threads."""
    if requested.setting('hw:cpu_policy') == DEDICATED:
        emulator = requested.flavor.extra_specs.get(
            'hw:emulator_threads_policy')
        main.resources.setdefault(
            PCPU, requested.flavor.vcpus + (emulator == 'isolate'))
    threads = {'isolate': '!' + HYPERTHREADING, 'require': HYPERTHREADING}
    wanted = threads.get(requested.setting('hw:cpu_thread_policy'))
    if wanted:
        main.traits.add(wanted)


def _groups(flavor: api_requests.Flavor) -> dict[str, _Group]:
    """Return the request groups of the extra specs by their suffix."""
    found: dict[str, _Group] = {}
    for name, value in flavor.extra_specs.items():
        parsed = _EXTRA_SPEC.fullmatch(name)
        if not parsed:
            continue
        kind, suffix, subject = parsed.groups()
        group = found.setdefault(suffix, _Group())
        if kind == 'resources':
            group.resources[subject] = _amount(flavor, name, value)
        elif value == 'required':
            group.traits.add(subject)
        elif value == 'forbidden':
            group.traits.add('!' + subject)
    return found


def _amount(flavor: api_requests.Flavor, name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(
            'flavor %s has extra spec %s = %s, which is not a number: correct '
            'it with "openstack flavor set --property"' % (
                flavor.name, name, value)) from exc


def _traits(properties: Mapping[str, str], value: str) -> list[str]:
    return [name.removeprefix('trait:') for name, one in properties.items()
            if name.startswith('trait:') and one == value]
