# SPDX-License-Identifier: Apache-2.0
"""Extra specs and metadata that are for host filters, and that none reads."""

from collections import abc
from typing import Any

from nova.conf import CONF
from nova import exception as nova_exception
from nova.scheduler import filters
from oslo_utils import uuidutils

from nova_aggregate_mirror.explain import filter_runs
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import metadata_rules
from nova_aggregate_mirror.scheduler import request_spec

_CAPABILITY = 'capabilities:'
# Extra specs without a scope that are meant for nova itself.
_OF_NOVA = ('group_policy', 'hide_hypervisor_id')


def metadata(spec: request_spec.RequestSpec, states: abc.Sequence[Any]
             ) -> dict[str, list[str]]:
    """Find the hosts that a filter would reject if it were enabled.

    :returns: host filter to enable, to the hosts
    """
    if request_spec.names_host(spec):
        return {}
    classes = {cls.__name__: cls for cls in filters.all_filters()}
    hosts: dict[str, list[str]] = {}
    for row in filter_table.disabled(CONF):
        if row.keys:
            with filter_runs.listening(states):
                passed = {state.host for state in classes[
                    row.host_filter]().filter_all(states, spec)}
            rejected = sorted({state.host for state in states} - passed)
            if rejected:
                hosts[row.host_filter] = rejected
    return hosts


def extra_specs(spec: request_spec.RequestSpec,
                manager: host_states.HostManager,
                states: abc.Sequence[Any]) -> dict[str, list[str]]:
    """Find the extra specs that exclude no host.

    :returns: host filter to enable, to the extra specs that it compares
    """
    # Nova runs no host filter for forced hosts, and only some for a rebuild.
    if not states or request_spec.names_host(spec):
        return {}
    specs = request_spec.request(spec).extra_specs
    comparing: dict[str, abc.Iterable[str]] = {
        'AggregateInstanceExtraSpecsFilter': metadata_rules.extra_spec_keys(
            specs),
        'ComputeCapabilitiesFilter': [
            name for name in specs if name.startswith(_CAPABILITY)]}
    unread: dict[str, list[str]] = {}
    for host_filter, names in comparing.items():
        for name in sorted(names):
            if name not in _OF_NOVA and not _filters(
                    spec, manager, states, name):
                unread.setdefault(host_filter, []).append(name)
    return unread


def _filters(spec: request_spec.RequestSpec, manager: host_states.HostManager,
             states: abc.Sequence[Any], name: str) -> bool:
    """Check whether a host filter compares an extra spec.

    It then rejects a host for a value that no host can have. The rules of
    request filters are checked by host filters, too.
    """
    flavor = spec.flavor
    spec.flavor = flavor.obj_clone()
    spec.flavor.extra_specs = {
        **flavor.extra_specs, name: uuidutils.generate_uuid()}
    try:
        with filter_runs.listening(states):
            for host_filter in manager.enabled_filters:
                passed = list(host_filter.filter_all(states, spec) or ())
                if len(passed) < len(states):
                    return True
            return False
    except (LookupError, TypeError, ValueError, nova_exception.NovaException):
        # The filter of a vendor expects another kind of value.
        return True
    finally:
        spec.flavor = flavor
