# SPDX-License-Identifier: Apache-2.0
"""What all programs share: configuration, errors, output, log and parts.

Long because each program is started here, and built of the same parts.
"""

from collections import abc
import copy
import errno
import io
import logging
import math
import os
import pathlib
import re
import sys
import textwrap
from typing import Any
from typing import cast

from nova.conf import CONF
from oslo_config import cfg
from oslo_log import log as oslo_log

from nova_aggregate_mirror import accounts
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror import terminal_tables

STDOUT, STDERR = 1, 2
UNWRITABLE = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)
"""Errors of a write to standard output, which has no ``filename``."""
_COLOUR = re.compile('(\x1b\\[(?:0[01]?;?)?(?:3[0-7])?m)')
"""What switches a colour on or off in a format of oslo.log."""
NOVA_CONF = ('/etc/nova/nova.conf', '/etc/nova/nova.conf.d')


def run(program: str, command: abc.Callable[[], int]) -> int:
    """Run a command; print an error as one line, without a traceback.

    :returns: the command's exit status, 255 when it could not run, 130 when
        it was interrupted, 141 when the reader of its output has ended
    """
    # Python has no stream for a closed descriptor.
    sys.stdout = sys.stdout or open(os.devnull, 'w')
    sys.stderr = sys.stderr or open(os.devnull, 'w')
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot encode must not end the command.
            stream.reconfigure(errors='backslashreplace')
    try:
        return _run(program, command)
    except BrokenPipeError:
        # The pipe may be that of standard error, too.
        _discard(STDOUT, STDERR)
        return exit_status.BROKEN_PIPE


def _run(program: str, command: abc.Callable[[], int]) -> int:
    try:
        _check_arguments()
        try:
            return command()
        finally:
            # Also if --help raises SystemExit, and before an error is printed.
            sys.stdout.flush()
    except OSError as exc:
        # Such as a broken pipe, which ``run`` handles.
        if exc.filename or exc.errno not in UNWRITABLE:
            raise
        _discard(STDOUT)
        problem = 'the output could not be written: %s' % exc
    except cfg.ConfigFilesPermissionDeniedError as exc:
        files = cast(Any, exc).config_files
        error = exceptions.failure_of(lambda: check_readable(files, program))
        problem = str(error or exc)
    except cfg.Error as exc:
        problem = str(option_values.invalid_option(CONF, exc))
    except exceptions.MirrorError as exc:
        problem = str(exc)
    except KeyboardInterrupt:
        print('%s: interrupted' % program, file=sys.stderr)
        return exit_status.INTERRUPTED
    print('%s: %s' % (program, problem), file=sys.stderr)
    return exit_status.COULD_NOT_RUN


def check_readable(paths: abc.Iterable[str | pathlib.Path], name: str) -> None:
    """Check that the user may read the files and directories that exist.

    :raises InvalidConfiguration: one may not be read; its step runs ``name``
    """
    # Resolved: a link may lead to a directory that the user cannot enter.
    for path in map(pathlib.Path, map(os.path.realpath, paths)):
        rights = dict.fromkeys(reversed(path.parents), os.X_OK)
        rights[path] = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        for part, right in rights.items():
            if not os.path.exists(part) or os.access(
                    part, right, effective_ids=True):
                continue
            # Not as root, which would leave files that nova's user cannot use.
            raise exceptions.InvalidConfiguration(
                'user %s may not read %s, which belongs to user %s' % (
                    accounts.user(os.geteuid()), part,
                    accounts.user(part.stat().st_uid)),
                step='run the program as the user of nova-api, such as with '
                     '"sudo -u nova %s ..."' % name)


def show_help(program: str, description: str,
              commands: abc.Mapping[str, str]) -> bool:
    """Print a list of commands if no argument, or only --help, is given."""
    # Oslo.config would list the commands after all options of oslo.log.
    if sys.argv[1:] not in ([], ['-h'], ['--help']):
        return False
    print('usage: %s [--config-file PATH] [--config-dir DIR]\n'
          '       [--debug] COMMAND ...\n' % program)
    print(textwrap.fill(description), end='\n\nCommands:\n')
    for name, text in commands.items():
        print(textwrap.fill(text, terminal_tables.WIDTH - 1,
                            initial_indent='  %-25s ' % name,
                            subsequent_indent=28 * ' '))
    print('\nThese options, and those of oslo.log, precede the command.')
    return True


def set_up_log(conf: cfg.ConfigOpts, levels: list[str]) -> None:
    """Set up the log as nova's services do, and escape controls in it.

    :param levels: more default levels, each as ``logger=LEVEL``
    :raises InvalidConfiguration: an option of oslo.log cannot be used
    """
    oslo_log.set_defaults(
        default_log_levels=oslo_log.get_default_log_levels() + levels)
    try:
        oslo_log.setup(conf, 'nova')
    except (ImportError, OSError, RuntimeError, TypeError, ValueError,
            oslo_log.LogConfigError) as exc:
        raise exceptions.InvalidConfiguration(
            'the log cannot be set up: %s; run the command as the user of '
            'nova-api, or correct nova.conf' % exc) from exc
    escape_controls()


def escape_controls() -> None:
    """Escape controls but colours in the log; oslo.log must be set up."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_EscapingFormatter(
            handler.formatter or logging.Formatter()))


class _EscapingFormatter(logging.Formatter):
    """Escape what another formatter returns."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        # A copy, because other handlers get the same record.
        record = copy.copy(record)
        is_ours = record.name.startswith('nova_aggregate_mirror')
        escape = printable.line if is_ours else printable.lines
        record.msg, record.args = escape(record.getMessage()), None
        text = self._formatter.format(record)
        # A formatter for fluentd returns a dictionary of the escaped message.
        if not isinstance(text, str):
            return text
        # Every second part is a colour, by the group in the pattern.
        parts = _COLOUR.split(text)
        parts[::2] = map(printable.lines, parts[::2])
        return ''.join(parts)


def _check_arguments() -> None:
    """Refuse arguments that no database can compare, and empty ones."""
    # An empty argument is a variable of a script that is not set.
    for previous, argument in zip(sys.argv, sys.argv[1:]):
        if re.fullmatch('(--[a-z-]+=)?', argument):
            raise exceptions.InvalidConfiguration(
                'the argument %s has no value' % (
                    argument.rstrip('=') or 'after ' + previous))
        try:
            argument.encode()
        except UnicodeEncodeError as exc:
            raise exceptions.InvalidConfiguration(
                'the argument %s is not text in the encoding of the locale, '
                'such as UTF-8' % ascii(argument)) from exc


def _discard(*descriptors: int) -> None:
    """Discard what was not written; Python must not report that at exit."""
    for descriptor in descriptors:
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def read_configuration(name: str, description: str) -> None:
    """Read the command line, and the files that nova reads in its order."""
    # Without nova.config, whose imports take longer than most commands.
    nova_aggregate_mirror.conf.register_opts(CONF)
    oslo_log.register_options(CONF)
    try:
        CONF(sys.argv[1:], project='nova', prog=name, description=description)
    except SystemExit as exc:
        # Oslo.config has printed what it does not accept.
        if exc.code == 1:
            raise exceptions.InvalidConfiguration(
                'that value cannot be used', step='correct the argument, or '
                'the option of its name in nova.conf') from exc
        raise
    # Oslo.config says nothing of a directory that the user cannot enter.
    defaults = () if CONF.config_file or CONF.config_dir else NOVA_CONF
    check_readable([*CONF.config_dir, *defaults], name)


def check_configuration() -> None:
    """Check that the configuration is that of a nova-api."""
    if not CONF.api_database.connection:
        raise exceptions.InvalidConfiguration(
            'the configuration has no [api_database] connection; give '
            'nova-api\'s nova.conf with --config-file')


def source(longest: float = math.inf, skip_late: bool = False
           ) -> database.DatabaseSource:
    """Build the source: nova's databases; see ``DatabaseSource``.

    :param longest: maximum seconds to wait for an answer
    """
    return database.DatabaseSource(
        engines.Limits(min(longest, CONF.aggregate_mirror.cell_timeout)),
        threads=True, skip_late=skip_late)


def servers() -> database_servers.DatabaseServers:
    """Build the reader of names and consumers, with a limit per cell."""
    return database_servers.DatabaseServers(
        engines.Limits(CONF.aggregate_mirror.cell_timeout))


def placement() -> client.Client:
    """Build a client of placement; raise MissingCredentials without any."""
    auth.load(CONF, 'placement')
    return client.Client(CONF)


def journal() -> store.Journal:
    """Open the journal without creating or migrating it.

    :raises InvalidConfiguration: when its SQLite file does not exist, and the
        configuration is not that of a nova-api, which may use another journal
    :raises JournalUnavailable: when it cannot be read, or is outdated
    """
    if existing.is_missing(CONF):
        check_configuration()
    return store.Journal(CONF, existing.open_existing(CONF))


def mirror(journal: store.Journal, source: database.DatabaseSource,
           placement: client.Client, stopping: abc.Callable[[], bool],
           **options: Any) -> reconciler.Reconciler:
    """Build a reconciler; the options are further arguments of its class."""
    for_each = workers.in_threads(CONF.aggregate_mirror.sync_workers, stopping)
    return reconciler.Reconciler(journal.ledger, source, placement,
                                 journal.rows, for_each=for_each, **options)
