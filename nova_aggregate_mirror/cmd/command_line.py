# SPDX-License-Identifier: Apache-2.0
"""Command lines of all programs: ``--version``, and ``--help``."""

from collections.abc import Sequence
import contextlib
import importlib.metadata
import io
import re
from typing import Any

from oslo_config import cfg

import nova_aggregate_mirror.conf

# Of the programs themselves; the others are those of oslo.log.
_OWN = ('  -h', '  --config-', '  --shell', '  --version')


def read(conf: cfg.ConfigOpts, argv: Sequence[str], program: str,
         manual: str, **where: Any) -> None:
    """Read a command line and the configuration files that it names.

    :param manual: the commands with examples, which ``--help`` prints first
    :param where: oslo.config's arguments about configuration files
    :raises SystemExit: after ``--help`` and ``--version``, with a status of 0,
        and after a mistake in the command line
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            conf(argv, prog=program,
                 version=importlib.metadata.version(
                     nova_aggregate_mirror.conf.PACKAGE), **where)
    except SystemExit:
        text = printed.getvalue()
        # The help of a command begins with its name instead.
        if text.startswith('usage: %s [-h]' % program):
            text = _help(manual, text)
        print(text, end='')
        raise


def _help(manual: str, text: str) -> str:
    """Put the manual first, and the options of the log last."""
    options = text.partition('\noptions:\n')[2].partition('\n\n')[0] + '\n'
    # An option begins a line; its help follows with more indentation.
    each = re.split('^(?=  -)', options, flags=re.MULTILINE)[1:]
    own = [one for one in each if one.startswith(_OWN)]
    of_log = [one for one in each if one not in own]
    return '\n'.join([
        manual, 'Options:', ''.join(own), *(
            ['Options of the log (oslo.log):', ''.join(of_log)]
            if of_log else [])]).rstrip('\n') + '\n'
