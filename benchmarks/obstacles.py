# SPDX-License-Identifier: Apache-2.0
"""Hosts of a fleet that a request cannot have, each for one reason."""

from collections import abc
import itertools

from benchmarks import fleet
from tests.cloud import cloud
from tests.cloud import sql

ZONE, OTHER_ZONE = 'az-1', 'az-2'
TENANT, OTHER_TENANT = 'a' * 32, 'b' * 32
SPECS = {fleet.SCOPE + 'ssd': 'true'}

FULL, DISABLED, MISSING = 'full', 'disabled', 'missing'
ELSEWHERE, THEIRS, SLOW = 'elsewhere', 'theirs', 'slow'
FREE = 'free'
# One third of the hosts is full; the other obstacles exclude a tenth each.
_CYCLE = (*[FULL] * 10, *[DISABLED] * 3, *[MISSING] * 3, *[ELSEWHERE] * 3,
          *[THEIRS] * 3, *[SLOW] * 3, *[FREE] * 5)
SEEDED = {ELSEWHERE: 'aggregate', THEIRS: 'forbidden', SLOW: 'aggregate'}
"""Obstacles that exist from the start, with the kind of their reason."""
ADDED = {FULL: 'resources', DISABLED: 'disabled', MISSING: 'missing'}
"""Obstacles that ``add`` adds, with the kind of their reason."""

_RESERVE = (
    'UPDATE inventories SET reserved = total WHERE resource_class_id ='
    " (SELECT id FROM resource_classes WHERE name = 'VCPU')"
    ' AND resource_provider_id IN (SELECT id FROM resource_providers'
    ' WHERE name IN :hosts)')
_TRAIT = (
    'INSERT INTO resource_provider_traits (resource_provider_id, trait_id)'
    ' SELECT p.id, t.id FROM resource_providers p, traits t'
    " WHERE t.name = 'COMPUTE_STATUS_DISABLED' AND p.name IN :hosts")
_FORGET = (
    'DELETE FROM resource_provider_aggregates WHERE resource_provider_id IN'
    ' (SELECT id FROM resource_providers WHERE name IN :hosts)')
_DISABLE = (
    "UPDATE services SET disabled = 1, disabled_reason = 'new disks'"
    ' WHERE host IN :hosts')


def by_obstacle(hosts: abc.Sequence[str]) -> abc.Mapping[str, list[str]]:
    """Divide hosts by what excludes them."""
    found: dict[str, list[str]] = {name: [] for name in _CYCLE}
    for host, name in zip(hosts, itertools.cycle(_CYCLE)):
        found[name].append(host)
    return found


def groups(hosts: abc.Sequence[str]) -> fleet.Groups:
    """Return the aggregates that the obstacles need."""
    found = by_obstacle(hosts)

    def without(name: str) -> list[str]:
        return [host for other, some in found.items() if other != name
                for host in some]

    return [({'availability_zone': ZONE}, without(ELSEWHERE)),
            ({'availability_zone': OTHER_ZONE}, found[ELSEWHERE]),
            ({'ssd': 'true'}, without(SLOW)),
            ({'filter_tenant_id': OTHER_TENANT}, found[THEIRS])]


def add(running: cloud.Cloud, hosts: abc.Sequence[str]) -> None:
    """Add the obstacles that no aggregate has, in nova and in placement."""
    found = by_obstacle(hosts)
    for database, statement, name in (
            ('placement', _RESERVE, FULL), ('placement', _TRAIT, DISABLED),
            ('placement', _FORGET, MISSING), ('nova', _DISABLE, DISABLED)):
        sql.execute(running.config.database_url(database), statement,
                    hosts=found[name])
