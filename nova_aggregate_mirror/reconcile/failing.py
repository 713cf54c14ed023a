# SPDX-License-Identifier: Apache-2.0
"""Memory of the providers that could not be reconciled when last tried."""

from collections.abc import Container
from collections.abc import Iterable
import threading

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import outcome


class Failing:
    """Providers whose last attempt failed, in the order of these attempts.

    Shared by the reconcilers of a process: a full sync tries last what the
    drain could not mirror. An outage is no failure of a provider.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, exceptions.MirrorError] = {}

    def observe(self, result: outcome.Outcome,
                silent: Container[outcome.Subject] = ()) -> None:
        """Remember the failures of a converge, and forget what it repaired.

        :param silent: providers without an answer while placement answered
            other requests
        """
        with self._lock:
            for uuid in result.done | result.missing:
                self._errors.pop(uuid, None)
            for subject, error in result.failed.items():
                is_shared = isinstance(error, (
                    exceptions.NotTried, *exceptions.OUTAGE))
                if subject.kind == outcome.PROVIDER and (
                        subject in silent or not is_shared):
                    self._errors.pop(subject.name, None)
                    self._errors[subject.name] = error

    def select(self, nodes: Iterable[str]
               ) -> dict[str, exceptions.MirrorError]:
        """Map those of these providers that fail to their errors.

        Providers whose last attempt was earlier come first.
        """
        nodes = frozenset(nodes)
        with self._lock:
            return {uuid: error for uuid, error in self._errors.items()
                    if uuid in nodes}
