# SPDX-License-Identifier: Apache-2.0
"""Construction of the configuration, source and reconciler of a command."""

from collections.abc import Sequence
from typing import Any

from nova.conf import CONF
from oslo_log import log as logging

from nova_aggregate_mirror.cmd import command_line
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database


def read_configuration(argv: Sequence[str], program: str,
                       manual: str) -> None:
    """Read the files and options that nova reads, in nova's order.

    Nova's own function does the same for its services, but its imports take
    longer than most commands.

    :param manual: see ``command_line.read``
    :raises oslo_config.cfg.Error: when a file or an option is invalid
    """
    logging.register_options(CONF)
    command_line.read(CONF, argv, program, manual, project='nova')


def check_configuration() -> None:
    """Check that the configuration is that of a nova-api.

    :raises InvalidConfiguration: when it does not configure nova's database
    """
    if not CONF.api_database.connection:
        raise exceptions.InvalidConfiguration(
            'the configuration has no [api_database] connection; give '
            'nova-api\'s nova.conf with --config-file')


def source(hurried: bool = False) -> database.DatabaseSource:
    """Build the source: nova's databases, each cell with a time limit.

    :param hurried: see ``database.DatabaseSource``
    """
    return database.DatabaseSource(
        engines.Limits(CONF.aggregate_mirror.cell_timeout), threads=True,
        hurried=hurried)


def mirror(journal: store.Journal, source: database.DatabaseSource,
           placement: client.Client, workers: int | None = None,
           **options: Any) -> reconciler.Reconciler:
    """Build a reconciler with the journal.

    :param workers: ``[aggregate_mirror] sync_workers`` unless given
    """
    return reconciler.Reconciler(
        journal.ledger, source, placement, journal.rows,
        count=workers or CONF.aggregate_mirror.sync_workers, **options)
