# SPDX-License-Identifier: Apache-2.0
"""Entry points of the commands, without a traceback at an early failure."""

from collections import abc
import contextlib
import functools
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import traceback

from nova_aggregate_mirror import exit_status

PACKAGE = 'nova_aggregate_mirror'
EXTRA = ('alembic', 'jinja2', 'oslo_db', 'oslo_reports', 'oslo_upgradecheck',
         'sqlalchemy')
"""What the extra ``nova`` has; nova brings all of it."""
STEPS = {**dict.fromkeys(EXTRA, 'install this package with its extra [nova]'),
         'prometheus_client': 'pip install prometheus-client'}
IN_NOVA = ('run it in nova-api\'s environment, as the user of nova-api; '
           '"openstack aggregate mirror" works without nova')


@contextlib.contextmanager
def importing() -> abc.Iterator[None]:
    """Import modules without garbage collection."""
    # Imports leave no garbage; looking for it takes a third of their time.
    gc.disable()
    try:
        yield
    finally:
        # What has been imported remains, and is not examined again.
        gc.freeze()
        gc.enable()


def _run(name: str) -> int:
    """Start a program; print the traceback of an unexpected error."""
    try:
        return _start(name)
    except Exception:
        # Python would exit with 1, which is the result of some commands.
        traceback.print_exc()
        return exit_status.COULD_NOT_RUN


def _start(name: str) -> int:
    """Run ``nova-aggregate-mirror-`` and a name; return the exit status."""
    if '--version' in sys.argv:
        # Neither nova nor its configuration is needed.
        print(importlib.metadata.version(PACKAGE))
        return 0
    # Nova's libraries import eventlet if it is installed, and with it a
    # resolver that only green threads use.
    os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
    try:
        for module in ('nova', *EXTRA):
            # The programs import some only once they are needed.
            if not importlib.util.find_spec(module):
                raise ModuleNotFoundError(name=module)
        with importing():
            command = importlib.import_module('%s.cmd.%s' % (PACKAGE, name))
    except KeyboardInterrupt:
        print('Interrupted before anything was done', file=sys.stderr)
        return exit_status.INTERRUPTED
    except ModuleNotFoundError as exc:
        missing = (exc.name or '').partition('.')[0]
        if missing in ('', PACKAGE):
            raise
        program = 'nova-aggregate-mirror-' + name
        problem = 'package %s is not installed in %s: %s' % (
            missing, sys.prefix, STEPS.get(missing, IN_NOVA))
        if {'-h', '--help'}.intersection(sys.argv):
            print('usage: %s [options] command\n\nThe %s' % (program, problem))
            return 0
        print('%s: the %s' % (program, problem), file=sys.stderr)
        return exit_status.COULD_NOT_RUN
    return int(command.main())


agent = functools.partial(_run, 'agent')
manage = functools.partial(_run, 'manage')
status = functools.partial(_run, 'status')
