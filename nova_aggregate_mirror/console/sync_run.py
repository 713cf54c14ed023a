# SPDX-License-Identifier: Apache-2.0
"""Run of a full sync from a command: progress, Ctrl-C and SIGTERM."""

from collections import abc
import contextlib
import dataclasses
import os
import signal

from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2
ABANDONED = ('Interrupted; the result of requests in flight is unknown: run '
             'the command again')


@contextlib.contextmanager
def interruptible() -> abc.Iterator[list[int]]:
    """Collect signals: the first stops gracefully, the second at once."""
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if received:
            shout(ABANDONED)
            # A normal exit waits for the threads, and they for placement.
            os._exit(128 + received[0])
        received.append(number)
        shout('Stopping after the requests in flight complete; interrupt '
              'again to stop immediately')

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shout(text: str) -> None:
    # print() is not reentrant, and a signal may arrive during another print.
    # Ctrl-C may have ended the reader, too.
    with contextlib.suppress(OSError):
        os.write(STDERR, ('\n%s\n' % text).encode())


def run(build: abc.Callable[[abc.Callable[[], bool], context.Progress],
                            reconciler.Reconciler],
        rows: abc.Iterable[journal.Row], request: full_sync.Request,
        quiet: bool) -> result.Result:
    """Run a sync until its end or Ctrl-C: requests in flight are completed.

    :param build: creates a reconciler, given a function that returns whether
        to stop, and the display of the progress
    :raises JournalUnavailable: when the ledger could not be read
    :raises UnknownName: nova has no such aggregate
    """
    with interruptible() as received:
        try:
            sync = full_sync.run(build(
                lambda: bool(received), cli.progress(quiet)), rows, request)
        except (exceptions.JournalUnavailable, exceptions.UnknownName):
            raise
        except exceptions.MirrorError as exc:
            sync = full_sync.without_comparison(exc, request)
    return dataclasses.replace(
        sync, interruption=128 + received[0] if received else 0)
