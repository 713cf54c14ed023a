# SPDX-License-Identifier: Apache-2.0
"""Nova's own record of a server."""

import datetime
from typing import Any

from nova import objects
from oslo_utils import timeutils

from nova_aggregate_mirror.explain import explanation

FAULTS = 10
"""Latest faults that are shown; each host that was tried leaves one."""

UNFINISHED = 'not finished'
"""The result of an event that still goes on."""

FAULT = 'fault'
ERROR = 'Error'
"""What nova has as message of an action that failed."""
OPERATIONS = {operation: operation for operation in explanation.OPERATIONS}
OPERATIONS['live-migration'] = OPERATIONS.pop(explanation.LIVE_MIGRATE)
"""Actions for which nova-scheduler is asked, as an explanation calls them."""


def read(context: Any, instance: Any) -> explanation.ServerRecord:
    """Read the record of a server in its cell: three queries.

    :param context: nova's, targeted at the cell; cell0 has the servers whose
        creation found no host
    """
    stored = list(objects.InstanceFaultList.get_by_instance_uuids(
        context, [instance.uuid]))
    # The latest is first.
    faults = [
        explanation.RecordEntry(utc(fault.created_at), FAULT,
                                fault.host or '', fault.message or '')
        for fault in stored[:FAULTS]]
    entries = faults[::-1]
    for action in objects.InstanceActionList.get_by_instance_uuid(
            context, instance.uuid, limit=1):
        events = list(objects.InstanceActionEventList.get_by_action(
            context, action.id))
        entries += [explanation.RecordEntry(
            utc(event.finish_time or event.start_time),
            '%s: %s' % (action.action, event.event), event.host or '',
            event.result or UNFINISHED) for event in reversed(events)]
    # Times are whole seconds.
    entries.sort(key=lambda entry: entry.time)
    return explanation.ServerRecord(
        instance.vm_state or '', instance.task_state or '',
        faults[0].result if faults else '', entries)


def newest_operation(context: Any, server: str) -> Any:
    """Read the newest action of ``OPERATIONS``; None if there is none."""
    actions = objects.InstanceActionList.get_by_instance_uuid(context, server)
    return next((action for action in actions
                 if action.action in OPERATIONS), None)


def newest_migration(context: Any, action: Any) -> Any:
    """Read the newest migration since an action; None if there is none."""
    # Both are whole seconds in MySQL, which rounds.
    start = action.start_time - datetime.timedelta(seconds=1)
    newest = objects.MigrationList.get_by_filters(
        context, {'instance_uuid': action.instance_uuid}, limit=1)
    return next((migration for migration in newest
                 if migration.created_at >= start), None)


def utc(time: Any) -> str:
    """Render a time as nova stores it."""
    return timeutils.normalize_time(time).isoformat('T', 'seconds') + 'Z'
