# SPDX-License-Identifier: Apache-2.0
"""How every command runs, and what it prints when it cannot."""

from collections.abc import Callable
import io
import os
import sys

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status

STDOUT = 1


def run(program: str, command: Callable[[], int]) -> int:
    """Run a command; what keeps it from running is a line, no traceback.

    :returns: the command's exit status, 255 when it could not run at all, 130
        when it was interrupted
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot show is no reason to fail.
            stream.reconfigure(errors='backslashreplace')
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read it has seen enough; nothing is to be said at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        return exit_status.BROKEN_PIPE
    except cfg.Error as exc:
        print('%s: the configuration cannot be used: %s' % (program, exc),
              file=sys.stderr)
    except exceptions.MirrorError as exc:
        print('%s: %s' % (program, exc), file=sys.stderr)
    except KeyboardInterrupt:
        print('%s: interrupted; what was done until then is complete and the '
              'rest is as it was, run the command again' % program,
              file=sys.stderr)
        return exit_status.INTERRUPTED
    return exit_status.COULD_NOT_RUN
