# SPDX-License-Identifier: Apache-2.0
"""Request filters: the rules of a request, a plugin per filter of nova.

Long because what adds the rules of all of them to the query is here, too.

A plugin in ``nova_aggregate_mirror.request_filters`` is a
``constraints.RequestFilter``, or a ``QueryFilter`` if it needs more than
the metadata of aggregates; ``filter_table`` says what else a filter needs. It
is created once, with nova's configuration, and must not use the network, a
database or a thread then: the process may still fork.
"""

from collections import abc
import functools
import operator
import types
from typing import Any

from nova import exception as nova_exception
from nova.scheduler.filters import (
    aggregate_multitenancy_isolation as multitenancy)
from nova.scheduler.filters import extra_specs_ops
from oslo_config import cfg
from oslo_log import log as logging

import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata

LOG = logging.getLogger(__name__)
Metadata = constraints.Metadata
Rule = constraints.Rule
ServerRequest = constraints.ServerRequest


class QueryFilter:
    """A request filter that nova calls before each query to placement."""

    def __call__(self, context: Any, spec: request_spec.RequestSpec) -> bool:
        """Change the query that follows; return whether it was changed.

        :raises RequestFilterFailed: when no host can pass
        """
        try:
            return self.change(spec)
        except (constraints.Unsatisfiable, exceptions.MirrorError) as exc:
            # Logged below: here oslo.log would append the exception again.
            error = exc
        except Exception:
            # The query stays wider: host filters, without which nova-scheduler
            # does not start, check its hosts. To raise would end the request.
            LOG.exception('A request is not narrowed to aggregates')
            return False
        if isinstance(error, constraints.Unsatisfiable):
            log_no_host(spec, str(error))
            raise nova_exception.RequestFilterFailed(
                reason=str(error)) from error
        LOG.error('A request is not narrowed to aggregates: %s', error)
        return False

    def change(self, spec: request_spec.RequestSpec) -> bool:
        """Change the query; return whether it was changed.

        :raises Unsatisfiable: when no host can pass; the user gets the text
        :raises MirrorError: when the query remains as it was
        """
        raise NotImplementedError


class Narrowing(QueryFilter):
    """Adds the rules of all filters on aggregate metadata to the query.

    :param budget: bytes that aggregates may take in the URL of the query
    """

    def __init__(self, filters: abc.Sequence[constraints.RequestFilter],
                 source: metadata.MetadataSource, budget: int) -> None:
        self._filters, self._source, self._budget = filters, source, budget
        self._warned = False

    def change(self, spec: request_spec.RequestSpec) -> bool:
        _rules, added, left_out = self.narrow(spec)
        if left_out and not self._warned:
            self._warned = True
            LOG.warning(
                '[aggregate_mirror] max_member_of_bytes = %d is too small for '
                'a query to placement, which may find too few suitable hosts. '
                'Aggregate conditions left out: %d. Raise it if placement\'s '
                'web server accepts longer URLs. This is logged once.',
                self._budget, left_out)
        if added == constraints.MemberOf() or not (
                request_spec.narrowable(spec)):
            return False
        request_spec.add(spec, added)
        return True

    def narrow(self, spec: request_spec.RequestSpec) -> tuple[
            list[Rule], constraints.MemberOf, int]:
        """Return rules, conditions to add, and the number left out."""
        if request_spec.forced(spec):
            return [], constraints.MemberOf(), 0
        request = request_spec.request(spec)
        keys = functools.reduce(
            operator.or_, (plugin.keys(request) for plugin in self._filters),
            keyed_aggregates.Keys())
        if not keys:
            return [], constraints.MemberOf(), 0
        rules = constraints.rules(
            self._filters, request, self._source.read(keys))
        # Only hosts of these pass a rule in spite of a restricting aggregate.
        matching = frozenset[str]().union(
            *(rule.matching for rule in rules if rule.restricting))
        overlaps = self._source.overlaps(matching) if matching else ()
        return rules, *constraints.narrow(
            rules, overlaps, request_spec.member_of(spec), self._budget)


def log_no_host(spec: request_spec.RequestSpec, reason: str) -> None:
    """Log why no host is left, and the command that explains it."""
    LOG.warning('Instance %s has no valid host: %s. To see the reason for '
                'each host, run nova-aggregate-mirror-manage scheduling '
                'explain --server %s (for a move: with --for OPERATION)',
                spec.instance_uuid, reason, spec.instance_uuid)


class FlavorExtraSpecs(constraints.RequestFilter):
    """AggregateInstanceExtraSpecsFilter: each key in a matching aggregate."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        pass

    def keys(self, request: ServerRequest) -> keyed_aggregates.Keys:
        return keyed_aggregates.Keys(frozenset(
            constraints.extra_spec_keys(request.extra_specs).values()))

    def rules(self, request: ServerRequest, metadata: Metadata) -> list[Rule]:
        keys = constraints.extra_spec_keys(request.extra_specs)
        return [_extra_spec_rule(name, key, request, metadata)
                for name, key in sorted(keys.items())]


class TenantIsolation(constraints.RequestFilter):
    """AggregateMultiTenancyIsolation: no host of other tenants."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._nova_keys = (
            constraints.TENANT_KEYS if _isolates_by_suffix()
            else keyed_aggregates.Keys(frozenset({constraints.TENANT})))

    def keys(self, request: ServerRequest) -> keyed_aggregates.Keys:
        return constraints.TENANT_KEYS

    def rules(self, request: ServerRequest, metadata: Metadata) -> list[Rule]:
        tenants = {uuid: self._tenants(aggregate)
                   for uuid, aggregate in metadata.items()}
        matching = frozenset(uuid for uuid, projects in tenants.items()
                             if request.project in projects)
        restricting = frozenset(filter(tenants.get, tenants))
        return [Rule('tenant %s' % request.project, matching, restricting,
                     keys=constraints.TENANT_KEYS)]

    def _tenants(self, aggregate: abc.Mapping[str, str]) -> frozenset[str]:
        tenants = (constraints.values(aggregate, key)
                   for key in aggregate if key in self._nova_keys)
        return frozenset().union(*tenants)


class _RequiredValues(constraints.RequestFilter):
    """A request filter that requires values among those of metadata keys."""

    subject: str
    """The subject of a rule, given ``key`` and ``value``."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def values(self, request: ServerRequest) -> dict[str, str]:
        """Return the required value of each key."""
        raise NotImplementedError

    def keys(self, request: ServerRequest) -> keyed_aggregates.Keys:
        return keyed_aggregates.Keys(frozenset(self.values(request)))

    def rules(self, request: ServerRequest, metadata: Metadata) -> list[Rule]:
        return [constraints.value_rule(
            self.subject % {'key': key, 'value': value}, key, value, metadata)
            for key, value in sorted(self.values(request).items())]


class ImageProperties(_RequiredValues):
    """AggregateImagePropertiesIsolation in the query."""

    on_rebuild = True
    subject = 'the image property %(key)s'

    def values(self, request: ServerRequest) -> dict[str, str]:
        namespace = self._option('namespace', '')
        prefix = namespace and namespace + self._option('separator', '.')
        return {name: value for name, value in request.image.items()
                if name.startswith(prefix)}

    def _option(self, name: str, default: str) -> str:
        # Deprecated for removal since nova 33.
        option = 'aggregate_image_properties_isolation_' + name
        return getattr(self._conf.filter_scheduler, option, default) or ''


class TypeAffinity(_RequiredValues):
    """AggregateTypeAffinityFilter in the query."""

    subject = 'flavor %(value)s'

    def values(self, request: ServerRequest) -> dict[str, str]:
        return {constraints.FLAVOR: request.flavor}


class DefaultZone(_RequiredValues):
    """AvailabilityZoneFilter for the default zone, in the query.

    Nova's own request filter does the same for the zones of aggregates.
    """

    subject = 'zone %(value)s'

    def values(self, request: ServerRequest) -> dict[str, str]:
        return {constraints.ZONE: request.zone} if (
            request.zone == self._conf.default_availability_zone) else {}


def load(conf: cfg.ConfigOpts) -> tuple[
        list[constraints.RequestFilter], list[QueryFilter]]:
    """Check the options, and load the plugins that they name, by kind.

    :raises InvalidConfiguration: when an option is invalid, a plugin is
        unknown or cannot be loaded, or no host filter checks its rules
    """
    nova_aggregate_mirror.conf.register_opts(conf)
    option_values.check(conf)
    loaded = plugins.load(filter_table.NAMESPACE, filter_table.OPTION,
                          filter_table.configured(conf), conf)
    if unchecked := filter_table.unchecked(
            loaded, conf.filter_scheduler.enabled_filters):
        raise exceptions.InvalidConfiguration(
            'no host filter checks the hosts of the [aggregate_mirror] '
            'request_filters %s: add %s to [filter_scheduler] '
            'enabled_filters' % (', '.join(unchecked), filter_table.GUARD))
    queries = [plugin for plugin in loaded.values()
               if isinstance(plugin, QueryFilter)]
    return [plugin for plugin in loaded.values()
            if plugin not in queries], queries


def _extra_spec_rule(name: str, key: str, request: ServerRequest,
                     metadata: Metadata) -> Rule:
    def matches(aggregate: abc.Mapping[str, str]) -> bool:
        return any(_matches(value, request.extra_specs[name])
                   for value in constraints.values(aggregate, key))

    return Rule("the flavor's extra spec %s" % name,
                constraints.aggregates_with(metadata, matches), required=True,
                keys=keyed_aggregates.Keys(frozenset({key})))


def _matches(value: str, requested: str) -> bool:
    try:
        return bool(extra_specs_ops.match(value, requested))
    except (ValueError, IndexError):
        # Text where a number is compared, or an operator without its operand:
        # nova's filter would fail the whole request.
        return False


def _isolates_by_suffix() -> bool:
    """Check whether nova's filter uses keys that start with filter_tenant_id.

    Nova 29 does not: it passes hosts that such rules would exclude here.
    """
    aggregate = types.SimpleNamespace(
        metadata={constraints.TENANT + '_1': 'another project'})
    nova_filter = multitenancy.AggregateMultiTenancyIsolation()
    return not nova_filter.host_passes(
        types.SimpleNamespace(aggregates=[aggregate]),
        types.SimpleNamespace(project_id='a project'))
