# SPDX-License-Identifier: Apache-2.0
"""Base class of the request filters that nova calls itself."""

import abc
from typing import Any

from nova import exception as nova_exception
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_spec

LOG = logging.getLogger(__name__)


class QueryFilter(abc.ABC):
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

    @abc.abstractmethod
    def change(self, spec: request_spec.RequestSpec) -> bool:
        """Change the query; return whether it was changed.

        :raises Unsatisfiable: when no host can pass; the user gets the text
        :raises MirrorError: when the query remains as it was
        """


def log_no_host(spec: request_spec.RequestSpec, reason: str) -> None:
    """Log why no host is left, and the command that explains it."""
    LOG.warning('Instance %s has no valid host: %s. To see the reason for '
                'each host, run nova-aggregate-mirror-manage scheduling '
                'explain --server %s (for a move: with --for OPERATION)',
                spec.instance_uuid, reason, spec.instance_uuid)
