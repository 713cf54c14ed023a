# SPDX-License-Identifier: Apache-2.0
"""Runs one call for each of many things, some of them at once."""

from collections.abc import Callable
from collections.abc import Iterable
from concurrent import futures
import contextvars
from typing import Protocol
from typing import TypeVar

from nova_aggregate_mirror import exceptions

Item = TypeVar('Item')
Result = TypeVar('Result')


class Each(Protocol):
    """How a call is made for each of some items."""

    def __call__(self, call: Callable[[Item], Result],
                 items: Iterable[Item]) -> list[Result]:
        """The results, in the order of the items."""


class Workers:
    """Threads that come with the work and go with it.

    :param count: how many calls run at once; with 1 no thread is made, which
        is the only way inside nova-api
    :param stopping: whether to begin no further call
    """

    def __init__(self, count: int = 1,
                 stopping: Callable[[], bool] = lambda: False) -> None:
        self._count = count
        self._stopping = stopping

    def each(self, call: Callable[[Item], Result],
             items: Iterable[Item]) -> list[Result]:
        """The results, in the order of the items.

        After one call has failed no other one is begun, and those that run
        are waited for: nothing happens behind the caller's back.

        :raises Stopped: when it was told to end before the last one
        """
        failures: list[Exception] = []

        def one(item: Item) -> Result:
            if failures:
                raise failures[0]
            if self._stopping():
                raise exceptions.Stopped('this process was told to end')
            try:
                return call(item)
            except exceptions.MirrorError as exc:
                failures.append(exc)
                raise

        items = list(items)
        if min(self._count, len(items)) < 2:
            return [one(item) for item in items]
        with futures.ThreadPoolExecutor(min(self._count, len(items))) as pool:
            # Each thread has the deadline and the request id of the caller.
            running = [pool.submit(contextvars.copy_context().run, one, item)
                       for item in items]
            try:
                return [future.result() for future in running]
            finally:
                # After a failure, what is not begun never will be.
                for future in running:
                    future.cancel()
