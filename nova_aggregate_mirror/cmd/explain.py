# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts nova-scheduler can choose for a server, and why.

The request is scheduled as nova-scheduler would schedule it now, with nova's
own request filters, query to placement, host filters and weighers. Nothing is
claimed and nothing is written, and nova-scheduler need not run. Run it with
the configuration of nova-scheduler, where nova-scheduler is installed.

The first line is the summary. Then each condition follows with the number of
compute nodes that meet it and all conditions above it, then each host with the
first condition that it does not meet and, after "also", others that are known.
Placement itself is asked for each condition, with three more requests.
Inventories are read for at most 20 hosts per resource class; --host selects
others, and every filter is run for them.

  # why is this server in ERROR?
  %(prog)s --server web-1
  # where could it be migrated to?
  %(prog)s --server web-1 --for migrate
  # is there room for such a server?
  %(prog)s --flavor m1.large --zone az-1 --project demo
  # the same as a page with the conditions drawn as bars
  %(prog)s --flavor m1.large --zone az-1 --html /var/lib/nova/explained.html
"""

from collections import abc
import dataclasses
import sys
import time
import typing
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import explain_arguments
from nova_aggregate_mirror.cmd import identifiers
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.cmd import start
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.html_report import output
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database

if typing.TYPE_CHECKING:
    from nova_aggregate_mirror.explain import requests


def run(conf: cfg.ConfigOpts) -> int:
    """Explain the request of the command line; return the exit status."""
    components.check_configuration()
    args, nova = conf.command, components.source()
    if args.html is not None:
        answer = _write_page(conf, nova, args.html)
    else:
        answer = _explain(conf, nova)
        _show(args.format, answer)
    return exit_status.OK if answer.possible else exit_status.NO_HOST


def _write_page(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
                name: str) -> explanation.Answer:
    """Write a page to the file of this name, and print the summary."""
    # Imported here, so that the tables do not need the template engine.
    from nova_aggregate_mirror.html_report import answer as page
    with output.replaced(name) as write:
        answer = _explain(conf, nova)
        write(page.render(answer, time.time()))
    report.summarize(name, rendering.sentence(answer))
    return answer


def _explain(conf: cfg.ConfigOpts, nova: database.DatabaseSource
             ) -> explanation.Answer:
    args = conf.command
    operation, new_flavor = explain_arguments.check(args)
    placement = components.placement()
    # Nova's objects, used below, wait longer for an unavailable database.
    truth = nova.read_all()
    _check_hosts(args.hosts, truth)
    pending, syncs, notes = _read_journal()
    # Nova's scheduler takes seconds to import, and other commands need none.
    with start.importing():
        from nova_aggregate_mirror.cmd import nova_objects
        context = nova_objects.prepare(conf)
        from nova_aggregate_mirror.explain import exclusion_steps
        from nova_aggregate_mirror.explain import gather
        from nova_aggregate_mirror.explain import server_record
    nova_objects.bound(conf)
    with nova_objects.translated():
        request = _request(conf, context, placement, operation, new_flavor)
        request.notes += notes
        workers = parallel.Workers(conf.aggregate_mirror.sync_workers)
        facts = gather.gather(
            gather.Cloud(context, truth, placement, pending, workers.each,
                         components.servers()), request, args.hosts)
    answer = exclusion_steps.explain(facts)
    return dataclasses.replace(answer, notes=[
        *answer.notes, *server_record.later_syncs(answer, syncs)])


def _request(conf: cfg.ConfigOpts, context: Any, placement: client.Client,
             operation: str, new_flavor: str) -> 'requests.SchedulingRequest':
    """Return the request of a described server, or of an existing one."""
    args, names = conf.command, identifiers.Identifiers(conf)
    server, project = names.server(args.server), names.project(args.project)
    networks = [names.network(network) for network in args.networks]
    image = _image(conf, names.image(args.image), args.properties)
    hints = names.hints(args.hints)
    if not server:
        from nova_aggregate_mirror.explain import descriptions
        return descriptions.of_description(
            context, descriptions.ServerDescription(
                args.flavor, image, args.volume, project, args.zone, networks,
                args.ports, hints, args.count))
    with start.importing():
        from nova_aggregate_mirror.explain import server_requests
    return server_requests.of_server(
        context, placement, server, operation, new_flavor,
        image if args.image or args.properties else None, args.zone, networks,
        args.ports)


def _check_hosts(hosts: abc.Iterable[str], nova: source.Nova) -> None:
    unknown = sorted(host for host in {*hosts} if not nova.nodes_of({host}))
    if unknown:
        raise exceptions.UnknownName(
            'nova has no compute node of host %s; it has %s%s' % (
                ', '.join(unknown), plurals.some(nova.hosts()) or 'none',
                ''.join('; %s' % problem for problem in problems.of_cells(
                    nova.cells_down, 'it may have the host'))))


def _show(form: str, answer: explanation.Answer) -> None:
    if form == 'table':
        print(rendering.text(answer))
        return
    if form in formats.LINES:
        print('\n\n'.join([*rendering.head(answer), *rendering.notes(answer)]),
              file=sys.stderr)
    formats.show(form, rendering.document(answer), rendering.HOSTS,
                 rendering.hosts(answer))


def _image(conf: cfg.ConfigOpts, identifier: str,
           properties: abc.Sequence[tuple[str, str]]) -> abc.Mapping[str, Any]:
    """Return the image, if any, with these properties added or replaced."""
    if not identifier:
        return {'properties': dict(properties)}
    with deadline.within(conf.aggregate_mirror.request_timeout):
        image = resources.read_image(conf, identifier)
    return {**image, 'properties': {**image['properties'], **dict(properties)}}


def _read_journal() -> tuple[
        dict[str, float], list[full_syncs.Entry], list[str]]:
    """Return the ages of pending rows, the full syncs, and notes.

    The age in seconds is that of the oldest pending row of each host.
    """
    try:
        journal = components.journal()
        # Rows come oldest first; reversed, the oldest of a host remains.
        pending = {row.dirty.host: time.time() - row.created_at
                   for row in reversed(journal.rows.all())
                   if row.mirrored_at is None}
        return pending, full_syncs.History(journal.database).newest(), []
    except exceptions.JournalUnavailable as exc:
        return {}, [], ['What is pending in the journal is not known: %s'
                        % exc]
