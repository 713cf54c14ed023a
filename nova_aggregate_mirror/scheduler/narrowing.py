# SPDX-License-Identifier: Apache-2.0
"""Request filters that nova calls before it queries placement."""

from collections import abc
import functools
import operator
from typing import Any

from nova import exception as nova_exception
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata

LOG = logging.getLogger(__name__)


class QueryFilter:
    """A request filter that nova calls before each query to placement."""

    def __call__(self, context: Any, spec: request_spec.RequestSpec) -> bool:
        """Change the query that follows; return whether it was changed.

        :raises RequestFilterFailed: when no host can pass
        """
        error: Exception
        try:
            return self.change(spec)
        except (constraints.Unsatisfiable, exceptions.MirrorError) as exc:
            # Logged below: here oslo.log would append it once more.
            error = exc
        except Exception:
            # Nova-scheduler does not start without host filters that check
            # the hosts of a wider query; any other exception would end the
            # request.
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
        self._filters = filters
        self._source = source
        self._budget = budget
        self._warned = False

    def change(self, spec: request_spec.RequestSpec) -> bool:
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
        request_spec.add(spec, added)
        return True

    def describe(self, spec: request_spec.RequestSpec
                 ) -> abc.Mapping[str | frozenset[str], str]:
        """Return ``constraints.subjects`` of a request."""
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
        rules = constraints.rules(self._filters, request, metadata)
        return rules, *constraints.narrow(
            rules, overlaps, request_spec.member_of(spec), self._budget)


def _union(keys: abc.Iterable[keyed_aggregates.Keys]) -> keyed_aggregates.Keys:
    return functools.reduce(operator.or_, keys, keyed_aggregates.Keys())


def log_no_host(spec: request_spec.RequestSpec, reason: str) -> None:
    """Log why no host is left, and the command that explains it."""
    LOG.warning('Instance %s has no valid host: %s. To see the reason for '
                'each host, run nova-aggregate-mirror-manage scheduling '
                'explain --server %s (for a move: with --for OPERATION)',
                spec.instance_uuid, reason, spec.instance_uuid)
