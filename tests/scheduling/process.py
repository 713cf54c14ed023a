# SPDX-License-Identifier: Apache-2.0
"""Cleanup of the process state that a start of nova-scheduler leaves."""

import logging
import sys

import fixtures
from nova.conf import CONF
from nova import objects
from nova.scheduler import request_filter
from oslo_config import fixture as config_fixture

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.scheduler import filter_table

OURS = 'nova_aggregate_mirror'


class SchedulerProcess(fixtures.Fixture):
    """Nova's options and request filters, changeable by a test."""

    def _setUp(self) -> None:
        objects.register_all()
        conf.register_opts(CONF)
        self.config = self.useFixture(config_fixture.Config(CONF)).config
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
            list(request_filter.ALL_REQUEST_FILTERS)))
        self._records: list[logging.LogRecord] = []
        handler = logging.Handler()
        handler.emit = self._emit  # type: ignore[method-assign]
        self.useFixture(fixtures.LogHandler(handler, level=logging.INFO))

    def configure(self, *names: str) -> None:
        """Set the request filters, which the guard checks."""
        self.config(request_filters=list(names), group='aggregate_mirror')
        self.config(enabled_filters=[filter_table.GUARD],
                    group='filter_scheduler')

    def _emit(self, record: logging.LogRecord) -> None:
        # Oslo.log appends the exception that is being handled.
        if record.name.startswith(OURS) and not record.exc_info:
            assert not sys.exc_info()[1], record
        self._records.append(record)

    def clear(self) -> None:
        """Forget the log messages."""
        self._records.clear()

    def logged(self, level: int = logging.WARNING) -> list[str]:
        """Return this package's log messages at a level or above."""
        return [record.getMessage() for record in self._records
                if record.name.startswith(OURS) and record.levelno >= level]
