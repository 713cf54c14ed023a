# SPDX-License-Identifier: Apache-2.0
"""Bind the journal to this nova, with its rows and its ledger.

Agents bind a journal by themselves, and recognize their nova by each cell and
by each aggregate that the journal has. This is for a nova that has none of
them any more. Do not run it while another nova uses the journal: what only
that nova has would be removed from placement as deleted.
"""

import argparse
import sys

from oslo_config import cfg

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.source import database


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--force', action='store_true',
                        help='also bind a journal with rows, whose hosts are '
                             'mirrored as this nova has them')


def run(conf: cfg.ConfigOpts) -> int:
    """Bind the journal, and return the exit status."""
    components.check_configuration()
    if existing.is_missing(conf):
        print('There is no journal yet. The first agent binds it.')
        return exit_status.OK
    return bind(components.journal(), components.source(), conf.command.force)


def bind(journal: store.Journal, nova: database.DatabaseSource, force: bool
         ) -> int:
    """Bind the journal; one of another nova with rows only with force."""
    mappings = nova.cell_mappings()
    if not mappings:
        print('Nova has no cell but cell0, which every nova has',
              file=sys.stderr)
        return exit_status.COULD_NOT_RUN
    try:
        nova_identity.check(
            journal.database, nova.cell_mappings, nova.aggregates)
    except exceptions.WrongNova:
        hosts = journal.rows.hosts()
        if hosts and not force:
            print('The journal has rows of %s. If these are hosts of this '
                  'nova, bind it with --force' % plurals.some(hosts),
                  file=sys.stderr)
            return exit_status.REFUSED
    binding.replace(journal.database, mappings)
    cells = ', '.join(sorted(mappings.values()))
    print('The journal belongs to this nova, with the cells %s' % cells)
    return exit_status.OK
