# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands, without a traceback at an early Ctrl-C."""

import importlib
import sys


def _run(name: str) -> int:
    try:
        command = importlib.import_module('nova_aggregate_mirror.cmd.' + name)
    except KeyboardInterrupt:
        print('Interrupted before anything was done', file=sys.stderr)
        return 130
    status: int = command.main()
    return status


def agent() -> int:
    """Run ``nova-aggregate-mirror-agent`` and return its exit status."""
    return _run('agent')


def manage() -> int:
    """Run ``nova-aggregate-mirror-manage`` and return its exit status."""
    return _run('manage')


def status() -> int:
    """Run ``nova-aggregate-mirror-status`` and return its exit status."""
    return _run('status')
