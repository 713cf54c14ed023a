# SPDX-License-Identifier: Apache-2.0
"""A request on its way to nova-scheduler, and names that it may have."""

from collections import abc
import contextlib
import dataclasses
import json
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception
from nova import objects

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror import source as nova_state

# Image properties about the disks of a server.
_DEVICES = ('block_device_mapping', 'mappings')

NODE = 'restart nova-compute on the host: it creates its compute node'


@dataclasses.dataclass(kw_only=True)
class SchedulingRequest:
    """A request, and what is known about it."""

    spec: request_spec.RequestSpec
    about: abc.Mapping[str, str | None] = dataclasses.field(
        default_factory=dict)
    """Its arguments, for display; those without a value are not shown."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Parts of the request that are not explained."""
    record: explanation.ServerRecord | None = None
    """Of the server whose request this is."""
    refusal: facts.Refusal | None = None
    """Of nova-api or nova-conductor, before nova-scheduler gets it."""
    source: str = ''
    """The host of a server that is migrated live."""
    refuses_host: abc.Callable[[Any, Any], str] = lambda _state, _source: ''
    """Nova-conductor's check of a host that nova-scheduler has chosen, and of
    the source: why it does not take it, or empty."""
    zone: str = ''
    """An availability zone that nova-api checks."""
    creates: bool = True
    """Whether it is for a new server."""
    stays_on: tuple[str, str] | None = None
    """The host and node of a server that does not leave them: nova-scheduler
    is not asked."""

    def refuse(self, service: str, reason: str, advice: str = '') -> None:
        """Note a refusal, unless there is an earlier one."""
        self.refusal = self.refusal or facts.Refusal(service, reason, advice)

    @contextlib.contextmanager
    def refused_by(self, service: str, advice: str = '') -> abc.Iterator[None]:
        """Note the refusal of a method of nova."""
        try:
            yield
        except nova_exception.NovaException as exc:
            self.refuse(service, str(exc), advice)

    def check_source(self, nova: nova_state.Nova) -> None:
        """Refuse a host without a compute node, of LiveMigrationTask."""
        if self.source and not (
                nova.cells_down or nova.nodes_of({self.source})):
            self.refuse('nova-conductor', 'Compute host %s could not be found.'
                        % self.source, NODE)

    def check_zone(self, context: Any, services: abc.Mapping[str, Any]
                   ) -> None:
        """Refuse a zone without an enabled nova-compute, as nova-api does.

        :param services: host to its nova-compute
        :raises UnknownName: when nova has no such zone
        """
        default, internal = (CONF.default_availability_zone,
                             # That of nova's other services.
                             CONF.internal_service_availability_zone)
        zones, names = dict[str, str](), {default, internal}
        for aggregate in objects.AggregateList.get_by_metadata_key(
                context, 'availability_zone'):
            name = aggregate.metadata['availability_zone']
            names.add(name)
            zones |= dict.fromkeys(aggregate.hosts, name)
        if self.zone not in names:
            raise exceptions.UnknownName(
                'nova has no availability zone %s%s, and refuses servers for '
                'it; it has %s' % (
                    self.zone, ' ([DEFAULT] default_schedule_zone)'
                    if self.zone == CONF.default_schedule_zone else '',
                    plurals.some(names)))
        if self.zone not in {internal, *(
                zones.get(host, default)
                for host, service in services.items()
                if not service.disabled)}:
            self.refuse('nova-api', 'no nova-compute in zone %s is enabled'
                        % self.zone, 'enable one, or use another zone')


def flavor(context: Any, name: str) -> Any:
    """Read a flavor by its ID or its name.

    :raises UnknownName: when nova has no such flavor
    """
    for find in (objects.Flavor.get_by_flavor_id, objects.Flavor.get_by_name):
        try:
            return find(context, name)
        except nova_exception.FlavorNotFound:
            continue
    raise exceptions.UnknownName(
        'nova has no flavor with the name or ID %s; see "openstack flavor '
        'list --all"' % name)


def decoded(image: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Decode the properties that are JSON in glance, as nova does."""
    return {**image, 'properties': {
        name: json.loads(value) if name in _DEVICES else value
        for name, value in image['properties'].items()}}


def api_option_note(option: str) -> str:
    """Return a note: nova-api may have another value than was read here."""
    return ('Nova-api decides by its [DEFAULT] %s, which is %s in the '
            'configuration that was read here; give nova-api\'s own with '
            '--config-file if that differs.' % (option, CONF[option]))
