# SPDX-License-Identifier: Apache-2.0
"""The log of a process, as lines that cannot control a terminal."""

from collections import abc
import copy
import logging
import re

from oslo_config import cfg
from oslo_log import log as oslo_log

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import printable

PACKAGE = 'nova_aggregate_mirror'

_COLOR = re.compile('\x1b\\[[0-9;]*m')
_FORMATS = ('logging_context_format_string', 'logging_default_format_string',
            'logging_debug_format_suffix', 'logging_exception_prefix',
            'logging_user_identity_format')


def to_stderr(conf: cfg.ConfigOpts) -> None:
    """Log to the standard error unless the configuration says otherwise.

    Oslo.log's default is the standard output, which has the results.
    """
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default('use_stderr', True)


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
    escape_controls(conf)


def escape_controls(conf: cfg.ConfigOpts) -> None:
    """Escape controls in all lines of all loggers.

    Call it after oslo.log's ``setup``. Colors of the configured formats are
    kept.
    """
    formats = [conf[name] or '' for name in _FORMATS]
    colors = _COLOR.findall(''.join(formats))
    for handler in logging.getLogger().handlers:
        formatter = handler.formatter or logging.Formatter()
        handler.setFormatter(_EscapingFormatter(formatter, colors))


class _EscapingFormatter(logging.Formatter):
    """Escape what another formatter returns."""

    def __init__(self, formatter: logging.Formatter,
                 colors: abc.Collection[str]) -> None:
        super().__init__()
        self._formatter = formatter
        self._colors = frozenset(colors)

    def format(self, record: logging.LogRecord) -> str:
        # Other handlers get the same record.
        record = copy.copy(record)
        if record.name.startswith(PACKAGE):
            # A message of this package is one line.
            record.msg, record.args = printable.line(record.getMessage()), None
        text = self._formatter.format(record)
        # Oslo.log's handler for terminals adds the color of the level.
        colors = self._colors | {getattr(record, 'color', '')} - {''}
        if not colors:
            return printable.lines(text)
        parts = re.split('(%s)' % '|'.join(map(re.escape, colors)), text)
        return ''.join(part if part in colors else printable.lines(part)
                       for part in parts)
