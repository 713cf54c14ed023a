# SPDX-License-Identifier: Apache-2.0
"""List servers whose host contradicts what was requested for them.

A server may be on such a host because placement differed from nova when it was
scheduled, because it was forced or moved there, or because the host or an
aggregate was changed afterwards. Each server's request, as nova has stored it,
is compared with the host aggregates that nova has now. Nothing is changed.

By default the rules are those that nova-scheduler enforces by this
configuration: availability zones always, the others if their host filter or
request filter is enabled. --rule selects others.

The cells are read one after another, page by page. Servers whose request nova
does not have, or cannot read, are counted and not audited.
"""

import argparse
from collections import abc
import sys
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import start
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.placement import client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    cli.add_servers(parser, 'ZONE', 'HOST', 'NAME_OR_ID')
    texts = ['%s (%s)' % rule for rule in rules.descriptions().items()]
    add('--rule', action='append', default=[], choices=rules.NAMES,
        dest='rules', help='check this rule; may be repeated: '
        + '; '.join(texts).replace('``', ''))
    cli.add_format(parser)
    add('--quiet', action='store_true', help='print no progress')


def run(conf: cfg.ConfigOpts) -> int:
    """Audit the servers; return the exit status."""
    program.check_configuration()
    options = conf.command
    server_audit = build_audit(
        conf, _past_syncs(), options.rules, options.zone or '')
    source, totals = server_audit.source, server_audit.totals
    project = lookup.Identifiers(conf, program.servers()).project(
        options.project or '')
    counter = cli.progress(options.quiet)
    misplacements: list[audit.Misplacement] = []
    error = None
    try:
        for page in server_audit.run(options.hosts, project):
            counter.tell(totals.progress)
            misplacements += page
    except (KeyboardInterrupt, exceptions.MirrorError) as exc:
        # The servers that were audited before the error are printed first.
        error = exc
    if options.format == 'table' and (totals.servers or error is None):
        cli.tell([auditor.summary(totals)], sys.stdout)
        if misplacements:
            print(auditor.table(misplacements))
    if error:
        raise error
    if options.format != 'table':
        document = auditor.document(misplacements, totals, source.cells_down)
        cli.show(options.format, document, auditor.FIELDS,
                 map(auditor.row, misplacements))
    troubles = [*source.problems(), *totals.unaudited()]
    # Any zone or host may have servers in a cell that is down.
    if not source.cells_down:
        troubles += lookup.unknown_names(
            options.zone or '', server_audit.auditor.zones, options.hosts,
            totals, lambda: _hosts(options.hosts))
    status: int = totals.status(troubles)
    lines = list(map(str, troubles))
    if not (totals.servers or status) and (
            options.zone or options.hosts or options.project):
        lines.append('No server is selected: check --zone, --host and '
                     '--project')
    if options.format in cli.LINES:
        lines.insert(0, auditor.summary(totals))
    cli.tell(lines)
    return status


def _hosts(selected: abc.Collection[str]) -> frozenset[str]:
    """Read nova's hosts; a cell that does not answer may have any of them."""
    nova = program.source().read_all()
    return nova.hosts().union(
        nova.members, selected if nova.cells_down else ())


def build_audit(conf: cfg.ConfigOpts, past: abc.Iterable[full_syncs.Entry],
                names: abc.Collection[str] = (), zone: str = '') -> Any:
    """Build a ``readers.DatabaseAudit``, whose parameters these are."""
    # Nova's objects take seconds to import, and other commands need none.
    with start.importing():
        from nova_aggregate_mirror.cmd import nova_objects
        nova_objects.prepare(conf)
        from nova_aggregate_mirror.audit import readers
        from nova_aggregate_mirror.explain import request as requests
    return readers.DatabaseAudit(
        conf, client.Client(conf), names, past, zone,
        can_unpin=requests.can_unpin())


def _past_syncs() -> list[full_syncs.Entry]:
    """Read the history; without the journal, print a line and return none."""
    try:
        return full_syncs.newest(program.journal().database)
    except exceptions.JournalUnavailable as exc:
        cli.tell(['The history of full syncs is not used: %s' % exc])
        return []
