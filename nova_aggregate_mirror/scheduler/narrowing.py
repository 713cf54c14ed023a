# SPDX-License-Identifier: Apache-2.0
"""How the rules of a request get into its query, and this into nova."""

from collections.abc import Iterable
from collections.abc import Sequence
import functools
import operator
from typing import Any

from nova import exception as nova_exception
from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import metadata

LOG = logging.getLogger(__name__)


class Narrowing:
    """What nova calls for every request before it asks placement.

    :param budget: bytes that aggregates may take in the URL of the query
    """

    def __init__(self, filters: Sequence[request_filters.RequestFilter],
                 source: metadata.MetadataSource, budget: int) -> None:
        self._filters = filters
        self._source = source
        self._budget = budget
        self._warned = False

    def __call__(self, context: Any, spec: request_spec.RequestSpec) -> bool:
        """Narrow the query that follows; tell whether anything was added.

        :raises RequestFilterFailed: when no host can be right
        """
        try:
            if not request_spec.forced(spec):
                return self._narrow(spec)
        except constraints.Unsatisfiable as exc:
            raise nova_exception.RequestFilterFailed(reason=str(exc)) from exc
        except exceptions.MirrorError as exc:
            LOG.error('A request is not narrowed to aggregates: %s', exc)
        except Exception:
            # Host filters still judge what a wider query finds; anything else
            # that is raised here ends the request.
            LOG.exception('A request is not narrowed to aggregates')
        return False

    def _narrow(self, spec: request_spec.RequestSpec) -> bool:
        request = request_spec.request(spec)
        asked = [(one.keys(request), one.texts(request))
                 for one in self._filters]
        keys = _union(names for names, _texts in asked)
        if not keys:
            return False
        found = self._source.read(
            keys, _union(names for names, texts in asked if texts),
            frozenset().union(*(texts for names, texts in asked if names)))
        rules = request_filters.rules(self._filters, request, found.metadata)
        added, left_out = constraints.narrow(
            rules, found.together, request_spec.query(spec), self._budget)
        if left_out:
            self._warn(left_out)
        if added == constraints.Query() or not request_spec.narrowable(spec):
            return False
        LOG.debug('A host must be in one of each of %s and in none of %s',
                  [sorted(one) for one in added.required],
                  sorted(added.forbidden))
        request_spec.add(spec, added)
        return True

    def _warn(self, left_out: int) -> None:
        if not self._warned:
            self._warned = True
            LOG.warning(
                '[aggregate_mirror] max_member_of_bytes = %d: a query to '
                'placement had to leave out %d conditions on aggregates, and '
                'may find too few of the right hosts. Raise it if the web '
                'server of placement takes longer URLs. This is said once.',
                self._budget, left_out)


def install(conf: cfg.ConfigOpts,
            filters: Sequence[request_filters.RequestFilter]) -> None:
    """Let nova run request filters after its own; the second call does not.

    :raises UnexpectedNova: when nova has no list to add them to
    """
    registered = getattr(request_filter, 'ALL_REQUEST_FILTERS', None)
    if not isinstance(registered, list):
        raise exceptions.UnexpectedNova(
            'nova.scheduler.request_filter has no list ALL_REQUEST_FILTERS')
    if filters and not any(isinstance(one, Narrowing) for one in registered):
        registered.append(Narrowing(filters, metadata.MetadataSource(),
                                    conf.aggregate_mirror.max_member_of_bytes))
        LOG.info('Requests are narrowed to host aggregates by '
                 'nova-aggregate-mirror, request filters: %s',
                 ', '.join(conf.aggregate_mirror.request_filters))


def _union(keys: Iterable[metadata.Keys]) -> metadata.Keys:
    return functools.reduce(operator.or_, keys, metadata.Keys())
