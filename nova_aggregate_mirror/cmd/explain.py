# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts nova-scheduler can choose for a server, and why.

The request is scheduled as nova-scheduler would schedule it now, with nova's
own request filters, query to placement, host filters and weighers. Nothing is
claimed and nothing is written, and nova-scheduler need not run. Run it with
the configuration of nova-scheduler, where nova-scheduler is installed.

The first line is the summary. Then each condition follows with the number of
compute nodes that meet it and all conditions above it, then each host with the
first condition that it does not meet. Placement itself is asked for each
condition, with three more requests. Inventories are read for at most 20 hosts
per resource class; --host selects others.

  # why is this server in ERROR?
  %(prog)s --server web-1
  # where could it be migrated to?
  %(prog)s --server web-1 --for migrate
  # is there room for such a server?
  %(prog)s --flavor m1.large --zone az-1 --project demo
  # the same as a page with the conditions drawn as bars
  %(prog)s --flavor m1.large --zone az-1 --html /var/lib/nova/explained.html

Exit status:
    0  a host is left; with --count, one for each server
    1  no host is left, or too few
  130  interrupted by Ctrl-C; with --html 143 by SIGTERM; no page is written
  255  the request could not be explained: nova, placement or the
       configuration could not be read, there is no such server, flavor or
       zone, or an option of nova needs a further argument; or the output
       could not be written; no page is written
"""

from collections import abc
import contextlib
import dataclasses
import signal
import sys
import time
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import explain_arguments
from nova_aggregate_mirror.cmd import identifiers
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.html_report import output
from nova_aggregate_mirror.http import images
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import database_servers

HOST, NO_HOST = 0, 1


def run(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
        journal: rows.Rows) -> int:
    """Explain the request of the command line; return the exit status."""
    args = conf.command
    try:
        if args.html is not None:
            answer = _write_page(conf, nova, journal, args.html)
        else:
            answer = _explain(conf, nova, journal)
            _show(args.format, answer)
    except KeyboardInterrupt:
        print('Interrupted', file=sys.stderr)
        return exit_status.INTERRUPTED
    return HOST if answer.possible else NO_HOST


def _write_page(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
                journal: rows.Rows, name: str) -> explanation.Answer:
    """Write the HTML page, and print the summary."""
    # Imported here, so that the tables do not need the template engine.
    from nova_aggregate_mirror.html_report import answer as page
    with _terminable(), output.replaced(name) as write:
        answer = _explain(conf, nova, journal)
        write(page.render(answer, time.time()))
    report.summarize(name, rendering.sentence(answer))
    return answer


@contextlib.contextmanager
def _terminable() -> abc.Iterator[None]:
    """Exit normally on SIGTERM, so that no temporary file is left."""
    before = signal.signal(
        signal.SIGTERM, lambda *_signal: sys.exit(exit_status.TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _explain(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
             journal: rows.Rows) -> explanation.Answer:
    args = conf.command
    operation, flavor = explain_arguments.check(args)
    placement = components.placement()
    # This fails in time if a database is unavailable.
    truth = nova.read_all()
    unknown = sorted(host for host in set(args.hosts)
                     if not truth.nodes_of({host}))
    if unknown:
        raise exceptions.UnknownName(
            'nova has no compute node of host %s; it has %s%s' % (
                ', '.join(unknown), plurals.some(truth.hosts()) or 'none',
                ''.join('; cell %s did not answer: %s' % cell
                        for cell in sorted(truth.cells_down.items()))))
    names = identifiers.Identifiers(conf)
    server, project = names.server(args.server), names.project(args.project)
    networks = [names.network(network) for network in args.networks]
    image = _image(conf, names.image(args.image), args.properties)
    hints = names.hints(args.hints)
    pending, notes = _pending(journal)
    # Nova's scheduler takes seconds to import, and other commands need none.
    from nova_aggregate_mirror.cmd import nova_objects
    context = nova_objects.prepare(conf)
    nova_objects.bound(conf)
    from nova_aggregate_mirror.explain import gather
    from nova_aggregate_mirror.explain import requests
    from nova_aggregate_mirror.explain import steps
    with nova_objects.translated():
        if server:
            request = requests.of_server(
                context, server, operation, flavor, networks, args.ports)
        else:
            request = requests.described(context, requests.ServerDescription(
                args.flavor, image, args.volume, project, args.zone,
                networks, args.ports, hints, args.count))
        facts = gather.gather(
            gather.Cloud(context, truth, placement, pending,
                         parallel.Workers(args.workers).each,
                         database_servers.DatabaseServers(engines.Limits(
                             conf.aggregate_mirror.cell_timeout))),
            dataclasses.replace(
                request, notes=[*request.notes, *notes]),
            args.hosts)
    return steps.explain(facts)


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
    """Return the image, with these properties added or replaced."""
    if not identifier:
        return {'properties': dict(properties)}
    with deadline.within(conf.aggregate_mirror.request_timeout):
        image = images.read(conf, identifier)
    return {**image, 'properties': {**image['properties'], **dict(properties)}}


def _pending(journal: rows.Rows) -> tuple[dict[str, float], list[str]]:
    """Return host to the age of its oldest row, and notes."""
    try:
        # The oldest rows come first, and of each host the oldest row counts.
        return {row.dirty.host: time.time() - row.created_at
                for row in reversed(journal.all())
                if row.mirrored_at is None}, []
    except exceptions.JournalUnavailable as exc:
        return {}, ['What is pending in the journal is not known: %s' % exc]
