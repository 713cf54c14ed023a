# SPDX-License-Identifier: Apache-2.0
"""Requests about many items, each of which may fail by itself."""

from collections import abc
import contextlib
import dataclasses
import math
import threading
import time
from typing import Any
from typing import Generic
from typing import TypeVar

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline

PATIENCE, QUICK = 1.0, 0.25
"""Seconds that the answer about one of several items may take at least, and an
attempt before that, which another backend may answer."""
SLOWER = 4.0
"""How many times as long as the slowest earlier answer an answer may take."""
MOST_SILENT = 3
"""Silent items after which no others are asked about, under one patience."""
MOST_FAILURES = 3
"""Items in a row that fail before placement itself is checked."""
Item = TypeVar('Item', bound=abc.Hashable)
Result = TypeVar('Result')
Function = abc.Callable[[Any], Any]
ForEach = abc.Callable[[Function, abc.Iterable[Any]], list[Any]]
"""Calls a function for each item; returns the results, in the same order."""


def in_turn(call: Function, items: abc.Iterable[Any]) -> list[Any]:
    """Return the results; no thread is started, as nova-api requires."""
    return [call(item) for item in items]


@dataclasses.dataclass
class Answers(Generic[Item, Result]):
    """Result or failure of each item, unless it was not asked about."""

    results: dict[Item, Result] = dataclasses.field(default_factory=dict)
    failures: dict[Item, exceptions.MirrorError] = dataclasses.field(
        default_factory=dict)
    outage: exceptions.MirrorError | None = None
    """Why items were not asked about: with it, all of them would fail."""
    silence: exceptions.MirrorError | None = None
    """Error of the last item without an answer; it may lead to an outage."""

    def unasked(self, items: abc.Iterable[Item]) -> list[Item]:
        return [item for item in items
                if item not in self.results and item not in self.failures]


def ask(request: abc.Callable[[Item], Result], items: abc.Iterable[Item],
        for_each: ForEach, probe: abc.Callable[[], object],
        patience: float = 0.0) -> Answers[Item, Result]:
    """Send a request for each item; no item waits for a bad one for long.

    After a request without an answer, a probe asks something else: if there is
    an answer to that, only the item has failed; otherwise it is an outage.

    :param patience: seconds to wait for the items together, from now on; 0
        waits for each a little longer than others take
    :returns: a stop of this process is an outage, too
    """
    run = _Run(request, probe, patience)
    try:
        for_each(run.ask, items)
    except exceptions.Stopped as exc:
        run.answers.outage = exc
    return run.answers


class _Run(Generic[Item, Result]):
    """State of one call of ``ask``, shared by its threads."""

    def __init__(self, request: abc.Callable[[Item], Result],
                 probe: abc.Callable[[], object], patience: float) -> None:
        self.answers = Answers[Item, Result]()
        self._request = request
        self._probe = probe
        self._patience = patience
        self._checking = threading.Lock()
        self._probe_began = -math.inf
        """When the last probe began that was answered."""
        self._began = time.monotonic()
        self._slowest = 0.0
        """Seconds of the slowest answer."""
        self._failed_in_a_row = 0
        self._silent: set[Item] = set()
        # Seconds for the writes of what is read, while an item is silent.
        self._reserve = deadline.remaining() / 2

    def ask(self, item: Item) -> None:
        """Send the request of an item, unless it would be in vain."""
        pauses = 0
        while not self._is_over():
            patience = self._patience
            began = time.monotonic()
            try:
                with self._waiting():
                    self.answers.results[item] = self._request(item)
            except exceptions.MirrorError as exc:
                error = exc
            else:
                self._slowest = max(self._slowest, time.monotonic() - began)
                self._failed_in_a_row = 0
                return
            limit = min(PATIENCE, deadline.remaining())
            if pauses < transport.REPEATS and 0.0 < error.retry_after <= limit:
                # The service asks for this pause, so that it is no silence.
                pauses += 1
                time.sleep(error.retry_after)
                continue
            # Before the check, so that other threads begin no further item.
            if error.is_outage:
                self._silent.add(item)
            with self._checking:
                if self._is_failure(error, began, patience):
                    self.answers.failures[item] = error
                    return
            # The item is asked again, with the patience that the check set.
            self._silent.discard(item)

    def _is_over(self) -> bool:
        """Check whether no further request is to be sent."""
        if self.answers.outage:
            return True
        if not self._silent:
            return False
        if self._patience and len(self._silent) >= MOST_SILENT:
            return True
        return deadline.remaining() < self._reserve

    def _waiting(self) -> contextlib.AbstractContextManager[None]:
        """Limit how long an item is waited for."""
        seconds = SLOWER * self._slowest
        if self._patience:
            # What is left for all items together: the caller is waiting.
            seconds = self._began + self._patience - time.monotonic()
        return deadline.within(max(PATIENCE + QUICK, seconds))

    def _is_failure(self, error: exceptions.MirrorError, began: float,
                    patience: float) -> bool:
        """Check whether an item failed; set the outage if all others would.

        :param began: when its request began
        :param patience: with which it was asked; it may have been raised since
        """
        if error.is_refusal and not error.is_repeatable:
            # Keystone has refused the account, and may lock it.
            self.answers.outage = error
            return True
        is_silent = error.is_outage
        earlier = self.answers.silence
        if isinstance(error, exceptions.OutOfTime) and isinstance(
                earlier, exceptions.DeadlineExceeded):
            # The earlier request has taken the time, and is the cause.
            error = earlier
        if is_silent:
            self.answers.silence = error
        # Other errors, such as a 404, are answers about the item.
        if error.is_repeatable:
            self._failed_in_a_row += 1
        # Another thread may have checked since the request of this item began.
        is_unchecked = patience == self._patience and self._probe_began < began
        if (is_silent and is_unchecked) or (
                self._failed_in_a_row >= MOST_FAILURES):
            self._check(error)
        # The check may have raised the patience: then the item is asked again.
        return not (is_silent and self._patience > patience)

    def _check(self, error: exceptions.MirrorError) -> None:
        """Send the probe; no answer, even with patience, is an outage."""
        if self.answers.outage:
            return
        self._failed_in_a_row = 0
        began = time.monotonic()
        try:
            with self._waiting():
                self._probe()
            self._probe_began = began
        except exceptions.DeadlineExceeded:
            if self._patience:
                self.answers.outage = error
            # Without a limit from now on: all of placement may be slow.
            self._patience = math.inf
        except exceptions.MirrorError:
            self.answers.outage = error
