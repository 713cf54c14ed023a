# SPDX-License-Identifier: Apache-2.0
"""The log of a process, as lines that cannot control a terminal."""

import copy
import logging

from oslo_config import cfg
from oslo_log import log as oslo_log

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

PACKAGE = 'nova_aggregate_mirror'


def set_up(conf: cfg.ConfigOpts) -> None:
    """Set up the log as nova's services do, and escape controls in it.

    :raises InvalidConfiguration: an option of oslo.log cannot be used
    """
    try:
        oslo_log.setup(conf, 'nova')
    except (ImportError, OSError, RuntimeError, TypeError, ValueError,
            oslo_log.LogConfigError) as exc:
        raise exceptions.InvalidConfiguration(
            'the log cannot be set up: %s; run the command as the user of '
            'nova-api, or correct nova.conf' % exc) from exc
    escape_controls()


def escape_controls() -> None:
    """Escape controls in all lines of all loggers, but colours.

    Call it after oslo.log's ``setup``.
    """
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_EscapingFormatter(
            handler.formatter or logging.Formatter()))


class _EscapingFormatter(logging.Formatter):
    """Escape what another formatter returns."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        # Other handlers get the same record.
        record = copy.copy(record)
        escape = (printable.line if record.name.startswith(PACKAGE)
                  else printable.lines)
        record.msg, record.args = escape(record.getMessage()), None
        text = self._formatter.format(record)
        # A formatter for fluentd returns a dictionary of the escaped message.
        return terminal_tables.coloured(text) if isinstance(
            text, str) else text
