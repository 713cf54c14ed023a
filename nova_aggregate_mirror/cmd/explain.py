# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts nova-scheduler can choose for a server, and why.

The request is scheduled as nova-scheduler would schedule it now, with nova's
own request filters, query to placement, host filters and weighers. Nothing is
claimed and nothing is written, and nova-scheduler need not run. Run it with
the configuration of nova-scheduler, where nova-scheduler is installed.

The summary comes after what is down, and nova's record of a server. Then each
condition follows with the number of compute nodes that meet it and all
conditions above it, then each host with the first condition that it does not
meet and, after "also", others that are known. Placement itself is asked for
each condition, with three more requests. Inventories are read for at most 20
hosts per resource class; --host selects others.

  # why is this server in ERROR?
  %(prog)s --server web-1
  # where could it be migrated to?
  %(prog)s --server web-1 --for migrate
  # is there room for such a server?
  %(prog)s --flavor m1.large --zone az-1 --project demo
  # how many of them fit, and what runs out first?
  %(prog)s --flavor m1.large --zone az-1 --count all
  # the same as a page with the conditions drawn as bars
  %(prog)s --flavor m1.large --zone az-1 --html /var/lib/nova/explained.html
  # before this host is emptied: does each of its servers find another one?
  %(prog)s --servers-of compute-1
"""

import sys
import time
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import explain_arguments
from nova_aggregate_mirror.cmd import identifiers
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.cmd import start
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror.console import progress
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.html_report import output

Answer = explanation.Answer | departures.Answer


def run(conf: cfg.ConfigOpts) -> int:
    """Explain the request of the command line; return the exit status."""
    components.check_configuration()
    args = conf.command
    words: Any = departures if args.servers_of else rendering
    try:
        if args.html is None:
            answer = _explain(conf)
            _show(args.format, answer, words)
        else:
            # Imported here, so that tables do not need the template engine.
            from nova_aggregate_mirror.html_report import answer as page
            with output.replaced(args.html) as write:
                answer = _explain(conf)
                write(page.render(answer, time.time()))
            report.summarize(args.html, words.sentence(answer))
    except exceptions.CellUnavailable as exc:
        formats.tell([str(exc)])
        return exit_status.NO_NODE
    if answer.interrupted:
        return exit_status.INTERRUPTED
    if answer.cells_down:
        return exit_status.NO_NODE
    return exit_status.OK if answer.possible else exit_status.NO_HOST


def _explain(conf: cfg.ConfigOpts) -> Answer:
    args = conf.command
    explain_arguments.check(args)
    # Nova's scheduler takes seconds to import, and other commands need none.
    with start.importing():
        from nova_aggregate_mirror.cmd import nova_objects
        context = nova_objects.prepare(conf)
        from nova_aggregate_mirror.explain import emptying
        from nova_aggregate_mirror.explain import gather
    nova_objects.bound(conf)
    with nova_objects.translated():
        cloud = gather.Cloud(
            context, components.source(), components.placement(),
            components.servers(), progress.shown())
        if args.servers_of:
            return emptying.explain(
                cloud, args.servers_of, args.operation,
                args.order or departures.SIZE)
        return gather.explain(
            cloud, args, identifiers.Identifiers(conf).look_up,
            components.journal)


def _show(form: str, answer: Answer, words: Any) -> None:
    """Print the answer, as the module ``words`` renders it."""
    if form == 'table':
        print(words.text(answer))
        return
    if form in formats.LINES:
        print(words.text(answer, tables=False), file=sys.stderr)
    formats.show(form, words.document(answer), words.COLUMNS,
                 words.rows(answer))
