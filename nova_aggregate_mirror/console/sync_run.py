# SPDX-License-Identifier: Apache-2.0
"""Run of a full sync from a command, with its progress and Ctrl-C."""

from collections import abc
import dataclasses

from nova_aggregate_mirror.console import interruption
from nova_aggregate_mirror.console import progress
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result

Build = abc.Callable[[abc.Callable[[], bool], context.Progress],
                     reconciler.Reconciler]
"""Creates a reconciler, given a function that returns whether to stop, and
the display of the progress."""


def run(build: Build, rows: abc.Iterable[journal.Row],
        request: full_sync.Request, quiet: bool) -> result.Result:
    """Run a sync until its end or Ctrl-C.

    :raises JournalUnavailable: when the ledger could not be read
    :raises UnknownName: nova has no such aggregate
    """
    stop = interruption.Interruption()
    try:
        with stop.watched():
            sync = full_sync.run(
                build(stop.stopping, progress.shown(quiet)), rows, request)
    except (exceptions.JournalUnavailable, exceptions.UnknownName):
        raise
    except exceptions.MirrorError as exc:
        sync = full_sync.without_comparison(exc, request)
    return dataclasses.replace(sync, interruption=stop.status)
