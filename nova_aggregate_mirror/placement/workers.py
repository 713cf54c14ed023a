# SPDX-License-Identifier: Apache-2.0
"""Parallel calls in threads: the same function for many items."""

from collections import abc
from concurrent import futures
import contextvars
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import isolation


def in_threads(count: int = 1, stopping: abc.Callable[[], bool] = lambda: False
               ) -> isolation.ForEach:
    """Return what calls a function for each item, in threads of that call.

    After an item has failed, no other is begun; those that run are waited for.
    The first error is raised, ``Stopped`` if ``stopping`` became true.

    :param count: maximum number of parallel calls; 1 starts no thread
    :param stopping: whether this process is to end
    """
    def run(call: isolation.Function, items: abc.Iterable[Any]) -> list[Any]:
        failures: list[exceptions.MirrorError] = []

        def checked_call(item: Any) -> Any:
            if failures:
                raise failures[0]
            try:
                if stopping():
                    raise exceptions.Stopped('this process is stopping')
                return call(item)
            except exceptions.MirrorError as exc:
                # Others may fail next because they waited for this call.
                failures.append(exc)
                raise

        items = list(items)
        if min(count, len(items)) < 2:
            return [checked_call(item) for item in items]
        with futures.ThreadPoolExecutor(min(count, len(items))) as pool:
            # Each thread inherits the caller's deadline and request ID.
            running = [pool.submit(contextvars.copy_context().run,
                                   checked_call, item) for item in items]
            try:
                futures.wait(running, return_when=futures.FIRST_EXCEPTION)
            finally:
                pool.shutdown(cancel_futures=True)
        if failures:
            raise failures[0]
        return [future.result() for future in running]

    return run
