# SPDX-License-Identifier: Apache-2.0
"""Conversion of rules into a placement query."""

from collections import abc
import functools
import operator

from oslo_log import log as logging

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import metadata_rules
from nova_aggregate_mirror.scheduler import query_filter
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
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
        _rules, added, left_out = self._narrow(spec)
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
                 ) -> abc.Mapping[str | frozenset[str], str]:
        """Name the rules behind the conditions of a narrowed query.

        :returns: as ``constraints.subjects``
        """
        return constraints.subjects(self._narrow(spec)[0])

    def _narrow(self, spec: request_spec.RequestSpec) -> tuple[
            list[constraints.Rule], constraints.MemberOf, int]:
        """Return rules, conditions to add, and the number left out."""
        if request_spec.forced(spec):
            return [], constraints.MemberOf(), 0
        request = request_spec.request(spec)
        inputs = [(plugin.keys(request), plugin.texts(request))
                  for plugin in self._filters]
        keys = _union(keys for keys, _texts in inputs)
        if not keys:
            return [], constraints.MemberOf(), 0
        texts = [texts for keys, texts in inputs if keys]
        metadata, overlaps = self._source.read(
            keys, _union(keys for keys, texts in inputs if texts),
            frozenset().union(*texts))
        rules = metadata_rules.rules(self._filters, request, metadata)
        return rules, *constraints.narrow(
            rules, overlaps, request_spec.member_of(spec),
            self._budget)


def _union(keys: abc.Iterable[keyed_aggregates.Keys]) -> keyed_aggregates.Keys:
    return functools.reduce(operator.or_, keys, keyed_aggregates.Keys())
