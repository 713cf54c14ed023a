# SPDX-License-Identifier: Apache-2.0
"""Configuration, source, journal and reconciler of all commands."""

from collections import abc
import math
import sys
from typing import Any

from nova.conf import CONF
from oslo_log import log as logging

from nova_aggregate_mirror.cmd import program
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import database_servers

NOVA_CONF = ('/etc/nova/nova.conf', '/etc/nova/nova.conf.d')


def read_configuration(name: str, description: str) -> None:
    """Read the command line, and the files that nova reads in its order."""
    # The imports of nova's own function take longer than most commands.
    nova_aggregate_mirror.conf.register_opts(CONF)
    logging.register_options(CONF)
    try:
        CONF(sys.argv[1:], project='nova', prog=name, description=description)
    except SystemExit as exc:
        # Oslo.config has printed what it does not accept.
        if exc.code == 1:
            raise exceptions.InvalidConfiguration(
                'that value cannot be used', step='correct the argument, or '
                'the option of its name in nova.conf') from exc
        raise
    # Oslo.config does not find a file in a directory that it cannot enter.
    hidden = () if CONF.config_file or CONF.config_dir else NOVA_CONF
    program.check_readable([*CONF.config_dir, *hidden], name)


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
    return reconciler.Reconciler(
        journal.ledger, source, placement, journal.rows,
        each=workers.each(
            CONF.aggregate_mirror.sync_workers, stopping), **options)
