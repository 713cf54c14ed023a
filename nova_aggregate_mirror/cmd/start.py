# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands, without a traceback at an early failure."""

import functools
import importlib
import importlib.metadata
import sys
import traceback

PACKAGE = 'nova_aggregate_mirror'


def _run(name: str) -> int:
    try:
        return _start(name)
    except Exception:
        # Python would exit with 1, which is the result of some commands.
        traceback.print_exc()
        return 255


def _start(name: str) -> int:
    """Run ``nova-aggregate-mirror-`` and a name; return the exit status."""
    program, arguments = 'nova-aggregate-mirror-' + name, sys.argv[1:]
    if '--version' in arguments:
        # Neither nova nor its configuration is needed.
        print(importlib.metadata.version(PACKAGE))
        return 0
    try:
        command = importlib.import_module('%s.cmd.%s' % (PACKAGE, name))
    except KeyboardInterrupt:
        print('Interrupted before anything was done', file=sys.stderr)
        return 130
    except ModuleNotFoundError as exc:
        missing = (exc.name or '').partition('.')[0]
        if missing in ('', PACKAGE):
            raise
        return _explain(program, missing, bool(
            {'-h', '--help'}.intersection(arguments)))
    status: int = command.main()
    return status


def _explain(program: str, missing: str, is_help: bool) -> int:
    """Say where to run a program that lacks a package; return the status."""
    where = ('run it in nova-api\'s environment, as the user of nova-api; '
             '"openstack aggregate mirror" works without nova')
    if is_help:
        print('usage: %s [options] command\n\nThe package %s is not '
              'installed in %s: %s.' % (program, missing, sys.prefix, where))
        return 0
    print('%s: the package %s is not installed in %s: %s' % (
        program, missing, sys.prefix, where), file=sys.stderr)
    return 255


agent = functools.partial(_run, 'agent')
manage = functools.partial(_run, 'manage')
status = functools.partial(_run, 'status')
