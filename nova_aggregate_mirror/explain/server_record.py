# SPDX-License-Identifier: Apache-2.0
"""Nova's own record of a server: its state, its faults, its last action."""

from typing import Any

from nova import objects
from oslo_utils import timeutils

from nova_aggregate_mirror.explain import explanation

FAULTS = 10
"""Latest faults that are shown; each host that was tried leaves one."""


UNFINISHED = 'not finished'
"""The result of an event that still goes on."""


def read(context: Any, instance: Any) -> explanation.ServerRecord:
    """Read the record of a server in its cell: three queries.

    :param context: nova's, targeted at the cell; cell0 has the servers whose
        creation found no host
    """
    faults = list(objects.InstanceFaultList.get_by_instance_uuids(
        context, [instance.uuid]))
    entries = [
        explanation.RecordEntry(
            _text(fault.created_at), 'fault', fault.host or '',
            fault.message or '') for fault in faults[:FAULTS]]
    for action in objects.InstanceActionList.get_by_instance_uuid(
            context, instance.uuid, limit=1):
        entries += [
            explanation.RecordEntry(
                _text(event.finish_time or event.start_time),
                '%s: %s' % (action.action, event.event), event.host or '',
                event.result or UNFINISHED)
            for event in objects.InstanceActionEventList.get_by_action(
                context, action.id)]
    return explanation.ServerRecord(
        instance.vm_state or '', instance.task_state or '',
        (faults[0].message or '') if faults else '',
        # Nova lists the newest first, and times are whole seconds.
        sorted(reversed(entries), key=lambda entry: entry.time))


def _text(time: Any) -> str:
    return timeutils.normalize_time(time).isoformat('T', 'seconds') + 'Z'
