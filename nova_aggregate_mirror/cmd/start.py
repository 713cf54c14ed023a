# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands; Ctrl-C while they import is no traceback."""

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
    """Run ``nova-aggregate-mirror-agent``; returns its exit status."""
    return _run('agent')


def manage() -> int:
    """Run ``nova-aggregate-mirror-manage``; returns its exit status."""
    return _run('manage')


def status() -> int:
    """Run ``nova-aggregate-mirror-status``; returns its exit status."""
    return _run('status')
