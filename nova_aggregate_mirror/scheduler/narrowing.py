# SPDX-License-Identifier: Apache-2.0
"""Conversion of rules into a placement query, installed into nova."""

from collections import abc
import functools
import operator

from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import metadata_rules
from nova_aggregate_mirror.scheduler import query_filter
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import metadata

LOG = logging.getLogger(__name__)


class Narrowing(query_filter.QueryFilter):
    """Adds the rules of all filters on aggregate metadata to the query.

    Each method raises ``NovaUnavailable`` without nova's API database.

    :param budget: bytes that aggregates may take in the URL of the query
    """

    def __init__(self, filters: abc.Sequence[metadata_rules.RequestFilter],
                 source: metadata.MetadataSource, budget: int) -> None:
        self._filters = filters
        self._source = source
        self._budget = budget
        self._warned = False

    def change(self, spec: request_spec.RequestSpec) -> bool:
        """Narrow the query; return whether it was changed.

        :raises Unsatisfiable: when no aggregate matches a required rule
        """
        if request_spec.forced(spec):
            return False
        rules, together = self._read(request_spec.request(spec))
        if not rules:
            return False
        added, left_out = constraints.narrow(
            rules, together, request_spec.member_of(spec), self._budget)
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
        LOG.debug('Query narrowed: in an aggregate of each of %s, in none '
                  'of %s',
                  [sorted(group) for group in added.required],
                  sorted(added.forbidden))
        request_spec.add(spec, added)
        return True

    def describe(self, spec: request_spec.RequestSpec
                 ) -> tuple[abc.Mapping[str | frozenset[str], str], int]:
        """Name the rules behind the conditions of a narrowed query.

        :returns: condition to the subject of its rule, and the number of
            conditions that the query could not include
        """
        if request_spec.forced(spec):
            return {}, 0
        rules, together = self._read(request_spec.request(spec))
        # What the query includes already is not counted.
        _added, left_out = constraints.narrow(
            rules, together, request_spec.member_of(spec), self._budget)
        return constraints.subjects(rules), left_out

    def _read(self, request: constraints.ServerRequest) -> tuple[
            list[constraints.Rule], frozenset[frozenset[str]]]:
        """Read the rules of a request, and pairs of aggregates with a host."""
        inputs = [(plugin.keys(request), plugin.texts(request))
                  for plugin in self._filters]
        keys = _union(names for names, _texts in inputs)
        if not keys:
            return [], frozenset()
        aggregates = self._source.read(
            keys, _union(names for names, texts in inputs if texts),
            frozenset().union(*(texts for names, texts in inputs if names)))
        return (metadata_rules.rules(
            self._filters, request, aggregates.metadata), aggregates.together)


def install(conf: cfg.ConfigOpts, loaded: request_filters.Loaded) -> None:
    """Add the request filters to nova's own; a second call adds nothing.

    :raises UnexpectedNova: when nova has no list to add them to
    """
    registered = getattr(request_filter, 'ALL_REQUEST_FILTERS', None)
    if not isinstance(registered, list):
        raise exceptions.UnexpectedNova(
            'nova.scheduler.request_filter has no list ALL_REQUEST_FILTERS')
    if any(isinstance(registered_filter, query_filter.QueryFilter)
           for registered_filter in registered):
        return
    registered += loaded.of_queries
    if loaded.of_metadata:
        registered.append(Narrowing(
            loaded.of_metadata, metadata.MetadataSource(),
            conf.aggregate_mirror.max_member_of_bytes))
    if conf.aggregate_mirror.request_filters:
        LOG.info('Requests are narrowed to host aggregates by '
                 'nova-aggregate-mirror, request filters: %s',
                 ', '.join(conf.aggregate_mirror.request_filters))


def _union(keys: abc.Iterable[source.Keys]) -> source.Keys:
    return functools.reduce(operator.or_, keys, source.Keys())
