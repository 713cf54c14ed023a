# SPDX-License-Identifier: Apache-2.0
"""Finishes what nova abandons when a service has no compute node.

Nova adds such a host to an aggregate and then answers 404; it cannot remove it
again, nor delete the service. (``AggregateAPI.add_host_to_aggregate`` and
``remove_host_from_aggregate`` ask for the compute nodes for the sake of
placement only.)
"""

from typing import Any

from nova.compute import api as compute_api
from nova.compute import utils as compute_utils
from nova import exception
from nova.objects import aggregate as aggregate_objects
from nova.objects import compute_node
from nova.objects import fields


def finish(api: Any, context: Any, method: str, aggregate_id: int,
           host: str) -> Any:
    """Do what nova's method would have done after looking for the nodes.

    :param api: nova's ``AggregateAPI``
    :param context: the request's context, as nova's method left it
    :returns: the aggregate, or None when nova's error stands because the host
        does not exist
    """
    try:
        service = compute_api._get_service_in_cell_by_host(context, host)
    except exception.ComputeHostNotFound:
        return None
    if service.host != host or _has_nodes(context, host):
        return None
    aggregate = aggregate_objects.Aggregate.get_by_id(context, aggregate_id)
    if method == 'add_host_to_aggregate':
        if host not in aggregate.hosts:
            return None
        action = fields.NotificationAction.ADD_HOST
        suffix = 'addhost.end'
    else:
        aggregate.delete_host(host)
        api.query_client.update_aggregates(context, [aggregate])
        action = fields.NotificationAction.REMOVE_HOST
        suffix = 'removehost.end'
    api._update_az_cache_for_host(context, host, aggregate.metadata)
    payload = {'aggregate_id': aggregate_id, 'host_name': host}
    if method == 'add_host_to_aggregate':
        payload['name'] = aggregate.name
    compute_utils.notify_about_aggregate_update(context, suffix, payload)
    compute_utils.notify_about_aggregate_action(
        context=context, aggregate=aggregate, action=action,
        phase=fields.NotificationPhase.END)
    return aggregate


def _has_nodes(context: Any, host: str) -> bool:
    try:
        return bool(
            compute_node.ComputeNodeList.get_all_by_host(context, host))
    except exception.ComputeHostNotFound:
        return False
