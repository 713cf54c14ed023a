# SPDX-License-Identifier: Apache-2.0
"""The request filters: whether what belongs together is in nova.conf."""

from collections.abc import Iterator
from importlib import metadata
import inspect

from oslo_config import cfg
from oslo_utils import importutils

from nova_aggregate_mirror import checks
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror import source

NAMESPACE = 'nova_aggregate_mirror.request_filters'
OPTION = '[aggregate_mirror] request_filters'
NOVAS = 'nova.scheduler.filters.all_filters'
OURS = 'nova_aggregate_mirror.scheduler.filters.all_filters'
GUARD = 'AggregateMembershipFilter'
# Neutron deletes a segment together with the first aggregate of its provider,
# whoever put it there: nobody is told to put it into more.
SEGMENT = 'Neutron segment id %s'
# What a request filter cannot say in one query, this host filter of nova's
# does; the guard does it for each of them.
HOST_FILTERS = {
    'flavor_extra_specs': 'AggregateInstanceExtraSpecsFilter',
    'tenant_isolation': 'AggregateMultiTenancyIsolation',
    'image_properties': 'AggregateImagePropertiesIsolation',
    'type_affinity': 'AggregateTypeAffinityFilter',
}


def chosen(conf: cfg.ConfigOpts) -> list[str]:
    """The request filters of nova.conf."""
    return list(conf.aggregate_mirror.request_filters)


def filters(conf: cfg.ConfigOpts) -> checks.Findings:
    """Whether request filters and host filters are there, and paired."""
    names = chosen(conf)
    enabled = conf.filter_scheduler.enabled_filters
    found = [*(_unknown(names) or _unloadable(conf, names)),
             *_unavailable(conf, bool(names)), *_unpaired(names, enabled)]
    if names and not found:
        return [checks.good('%s; %s is enabled.' % (', '.join(names), GUARD))]
    return found


def sharing(source: source.Source,
            placement: client.Client) -> checks.Findings:
    """Whether a sharing provider is outside of aggregates that are asked for.

    Segments of neutron are left out: they may have no aggregate but their own.

    Placement wants every provider of a candidate in the aggregate.
    """
    try:
        aggregates = frozenset(source.aggregates())
        outside = {provider for provider, name in placement.sharing().items()
                   if name != SEGMENT % provider
                   and not aggregates <= placement.get(provider).aggregates}
    except exceptions.MirrorError as exc:
        return [checks.failure(
            '%s Placement\'s log says more:' % exc,
            'journalctl -u placement-api')]
    if not outside:
        return []
    return [checks.warning(
        'A host that has its disk or other resources from a sharing provider '
        'is not found by a request filter, unless that provider is in the '
        'aggregate too. Not in all are: %s. Repeat for each the aggregates '
        'that it has, and add those whose hosts it serves; or remove '
        'request_filters from nova.conf:' % checks.some(outside),
        *('openstack --os-placement-api-version %s resource provider '
          'aggregate set --generation GENERATION --aggregate AGGREGATE_UUID '
          '%s' % (client.MICROVERSION, provider)
          for provider in sorted(outside)[:checks.NAMES]))]


def _known() -> set[str]:
    return {entry_point.name
            for entry_point in metadata.entry_points(group=NAMESPACE)}


def _unknown(names: list[str]) -> checks.Findings:
    known = _known()
    unknown = [name for name in names if name not in known]
    if not unknown:
        return []
    return [checks.failure(
        'There is no request filter %s, and nova-scheduler does not '
        'start. There are: %s. Have, without it:' % (
            ', '.join(unknown), ', '.join(sorted(known)) or 'none'),
        '[aggregate_mirror]', 'request_filters = %s' % ', '.join(
            name for name in names if name in known))]


def _unloadable(conf: cfg.ConfigOpts, names: list[str]) -> checks.Findings:
    try:
        plugins.load(NAMESPACE, OPTION, names, conf)
    except exceptions.MirrorError as exc:
        return [checks.failure(
            '%s. Nova-scheduler does not start. Install anew what has it, '
            'or take it out of:' % exc, '[aggregate_mirror]',
            'request_filters = %s' % ', '.join(names))]
    return []


def _unpaired(names: list[str],
              enabled: list[str]) -> Iterator[checks.Finding]:
    """A request filter narrows what is asked; somebody judges the answer."""
    if not names or GUARD in enabled:
        return
    lines = ('[filter_scheduler]',
             'enabled_filters = %s' % ','.join([*enabled, GUARD]))
    alone = [name for name in names if HOST_FILTERS.get(name) not in enabled]
    if alone:
        yield checks.failure(
            'A request filter only narrows what placement is asked for. No '
            'host filter judges what comes back for %s. Have:'
            % ', '.join(alone), *lines)
    else:
        yield checks.warning(
            'Without %s a server may start on a wrong host while placement '
            'lags behind nova. Have:' % GUARD, *lines)


def _unavailable(conf: cfg.ConfigOpts,
                 wanted: bool) -> Iterator[checks.Finding]:
    """Host filters that nova-scheduler would not find.

    :param wanted: whether there are request filters
    """
    available = conf.filter_scheduler.available_filters
    enabled = conf.filter_scheduler.enabled_filters
    known = {GUARD}
    for path in available:
        try:
            # Ours has nova's too, and changes nova when it is called.
            known |= _names(NOVAS if path == OURS else path)
        # Without a dot it is a ValueError.
        except (ImportError, ValueError):
            rest = dict.fromkeys(
                [NOVAS, *(other for other in available if other != path)])
            yield checks.failure(
                'available_filters names %s, which cannot be imported. '
                'Correct it, or have without it:' % path, '[filter_scheduler]',
                *('available_filters = %s' % other for other in rest))
            return
    lost = [name for name in enabled if name not in known]
    missing = (wanted or GUARD in enabled) and OURS not in available
    if missing:
        text = ('nova-scheduler has neither the request filters nor %s'
                % GUARD)
    elif lost:
        text = 'nova-scheduler does not start: it does not find %s' % (
            checks.some(lost))
    else:
        return
    paths = [NOVAS, OURS, *(path for path in available
                            if path not in (NOVAS, OURS))]
    yield checks.failure(
        'As available_filters is, %s. Have, each in a line of its own:' % text,
        '[filter_scheduler]', *('available_filters = %s' % path
                                for path in paths))


def _names(path: str) -> set[str]:
    """The host filters that a value of available_filters stands for."""
    found = importutils.import_class(path)
    classes = found() if inspect.isfunction(found) else [found]
    return {one.__name__ for one in classes}
