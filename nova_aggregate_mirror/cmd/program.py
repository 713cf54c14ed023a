# SPDX-License-Identifier: Apache-2.0
"""Error messages and exit statuses that all commands share."""

from collections.abc import Callable
import io
import os
import sys

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status

STDOUT = 1


def run(program: str, command: Callable[[], int]) -> int:
    """Run a command; print an error as one line, without a traceback.

    :returns: the command's exit status, 255 when it could not run, 130 when
        it was interrupted
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot encode must not end the command.
            stream.reconfigure(errors='backslashreplace')
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader closed the pipe; Python must not report that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        return exit_status.BROKEN_PIPE
    except cfg.Error as exc:
        print('%s: the configuration cannot be used: %s' % (program, exc),
              file=sys.stderr)
    except exceptions.MirrorError as exc:
        print('%s: %s' % (program, exc), file=sys.stderr)
    except KeyboardInterrupt:
        print('%s: interrupted; the changes made so far are complete, run '
              'the command again for the rest' % program, file=sys.stderr)
        return exit_status.INTERRUPTED
    return exit_status.COULD_NOT_RUN
