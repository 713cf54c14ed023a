# SPDX-License-Identifier: Apache-2.0
"""Log lines about what lasts: when it begins or changes, and at its end."""

from collections import abc

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions

LOG = logging.getLogger(__name__)


class Lasting:
    """What lasts over several steps of a loop, as far as it was logged.

    :param log: logs the first line
    :param begin: this line, with ``%s`` for what is told
    :param end: the last line; empty for none
    """

    def __init__(self, log: abc.Callable[..., None], begin: str,
                 end: str = '') -> None:
        self._log = log
        self._begin = begin
        self._end = end
        self._state: abc.Hashable = None
        self._kinds = frozenset[tuple[str, str]]()
        """Of the failures that were followed since there was none."""

    def update(self, state: abc.Hashable, text: object) -> None:
        """Log what has changed.

        :param state: false if there is nothing; with the same one as last
            time nothing is logged, whatever the text
        """
        if state and state != self._state:
            self._log(self._begin, text)
        elif self._state and not state and self._end:
            LOG.info(self._end)
        self._state = state

    def follow(self, *failures: exceptions.Failure | None) -> None:
        """Log failures if a kind is new since there was none."""
        texts = {failure.key: str(failure) for failure in failures if failure}
        self._kinds = self._kinds.union(texts) if texts else frozenset()
        self.update(self._kinds, '; '.join(dict.fromkeys(texts.values())))
