# SPDX-License-Identifier: Apache-2.0
"""Parallel calls in threads: the same function for many items."""

from collections import abc
from concurrent import futures
import contextvars
from typing import TypeVar

from nova_aggregate_mirror import exceptions

Item = TypeVar('Item')
Result = TypeVar('Result')


class Workers:
    """Threads that exist only while there is work.

    :param count: maximum number of parallel calls; with 1 no thread is
        started
    :param stopping: whether this process is to end
    """

    def __init__(self, count: int = 1,
                 stopping: abc.Callable[[], bool] = lambda: False) -> None:
        self._count = count
        self._stopping = stopping

    def each(self, call: abc.Callable[[Item], Result],
             items: abc.Iterable[Item]) -> list[Result]:
        """Return the results, in the order of the items.

        After a call has raised, none is begun; those that run are waited for,
        and what was raised first is raised.

        :raises Stopped: when ``stopping`` became true before the last call
        """
        failures: list[exceptions.MirrorError] = []

        def checked_call(item: Item) -> Result:
            if failures:
                raise failures[0]
            try:
                if self._stopping():
                    raise exceptions.Stopped('this process is stopping')
                return call(item)
            except exceptions.MirrorError as exc:
                # Others may fail later because they waited for this call.
                failures.append(exc)
                raise

        items = list(items)
        if min(self._count, len(items)) < 2:
            return [checked_call(item) for item in items]
        with futures.ThreadPoolExecutor(min(self._count, len(items))) as pool:
            # Each thread inherits the caller's deadline and request ID.
            running = [pool.submit(
                contextvars.copy_context().run, checked_call, item)
                for item in items]
            try:
                futures.wait(running, return_when=futures.FIRST_EXCEPTION)
            finally:
                pool.shutdown(cancel_futures=True)
        if failures:
            raise failures[0]
        return [future.result() for future in running]
