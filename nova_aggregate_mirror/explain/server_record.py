# SPDX-License-Identifier: Apache-2.0
"""Nova's own record of a server: its state, its faults, its last action."""

from typing import Any

from nova.db.main import api as main_db
from nova.db.main import models
from nova import objects
from oslo_utils import timeutils

from nova_aggregate_mirror.explain import explanation

FAULTS = 10
"""Latest faults that are shown; each host that was tried leaves one."""


UNFINISHED = 'not finished'
"""The result of an event that still goes on."""


def read(context: Any, instance: Any) -> explanation.ServerRecord:
    """Read the record of a server in its cell: two queries.

    :param context: nova's, targeted at the cell; cell0 has the servers whose
        creation found no host
    """
    faults = list(objects.InstanceFaultList.get_by_instance_uuids(
        context, [instance.uuid]))
    entries = [
        explanation.RecordEntry(
            _text(fault.created_at), 'fault', fault.host or '',
            fault.message or '') for fault in reversed(faults[:FAULTS])]
    entries += [
        explanation.RecordEntry(
            _text(event.finish_time or event.start_time),
            '%s: %s' % (action, event.event), event.host or '',
            event.result or UNFINISHED)
        for action, event in _events(context, instance.uuid)]
    return explanation.ServerRecord(
        instance.vm_state or '', instance.task_state or '',
        (faults[0].message or '') if faults else '',
        # Times are whole seconds.
        sorted(entries, key=lambda entry: entry.time))


@main_db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _events(context: Any, server: str) -> list[tuple[str, Any]]:
    """Read the last action of a server and its events, oldest first."""
    action, event = models.InstanceAction, models.InstanceActionEvent
    last = context.session.query(action.id).filter_by(
        instance_uuid=server).order_by(
            action.created_at.desc(), action.id.desc()).limit(1)
    rows: list[tuple[str, Any]] = context.session.query(
        action.action, event).filter(
            event.action_id == action.id,
            action.id == last.scalar_subquery()).order_by(event.id).all()
    return rows


def _text(time: Any) -> str:
    return timeutils.normalize_time(time).isoformat('T', 'seconds') + 'Z'
