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
hosts per resource class; --host selects others, and every filter is run for
them.

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

import argparse
import sys
import time
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.cmd import start
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.html_report import output
from nova_aggregate_mirror.scheduler import moving

Answer = explanation.Answer | departures.Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    select = parser.add_mutually_exclusive_group(required=True).add_argument
    select('--server', default='', metavar='NAME_OR_ID', help='the request of '
           'this server as nova has stored it, also of a server in ERROR')
    select('--flavor', metavar='FLAVOR', help='the request of a server with '
           'this flavor, given by name or ID')
    select('--servers-of', default='', metavar='HOST', help='move each server '
           'of this host, one after the other: does each find a host?')
    add('--for', nargs='+', default=[''], metavar='OPERATION',
        dest='operation',
        help='with --server: its operation to explain, one of %s; resize is '
             'followed by the new flavor; by default the newest one if it '
             'failed, otherwise a move. With --servers-of: one of %s; by '
             'default that of each server\'s state' % (
                 ', '.join(explanation.OPERATIONS), ', '.join(moving.STATES)))
    add('--order', choices=[*departures.ORDERS], default='',
        help='with --servers-of: the order of the moves, the largest server '
             'first (size) or by name; the default is size')
    add('--image', default='', metavar='NAME_OR_ID',
        help='with --flavor or --for rebuild: the image, read from glance '
             'with the credentials of [placement]')
    add('--image-property', action='append', default=[], type=cli.pair,
        metavar='KEY=VALUE', dest='properties', help='with --flavor or --for '
        'rebuild: a property of the image; may be repeated')
    add('--volume', action='store_true',
        help='with --flavor: the server boots from a volume, and the root '
             'disk of the flavor is not requested')
    add('--project', default='', metavar='NAME_OR_ID',
        help='with --flavor: the project')
    add('--zone', default='', metavar='ZONE[:HOST[:NODE]]',
        help='with --flavor or --for unshelve: the availability zone, as '
             'nova-api takes it')
    add('--hint', action='append', default=[], type=cli.pair,
        metavar='KEY=VALUE', dest='hints', help='with --flavor: a scheduler '
        'hint, servers and server group by name or ID; may be repeated')
    add('--count', type=_count, default=1, metavar='N|all',
        help='with --flavor: number of servers that are requested at once, or '
             'all: servers are created one after the other until nova finds '
             'no host')
    add('--network', action='append', default=[], metavar='NAME_OR_ID',
        dest='networks',
        help='a network, which replaces those of the server; may be repeated')
    add('--port', action='append', default=[], metavar='ID', dest='ports',
        help='a port, which replaces those of the server; may be repeated')
    add('--host', action='append', default=[], metavar='HOST', dest='hosts',
        help='explain this host only; may be repeated')
    output = parser.add_mutually_exclusive_group()
    cli.add_format(output)
    output.add_argument('--html', metavar='FILE', help=(
        'write an HTML page to this file, - for standard output, and print '
        'only the summary; an existing file is replaced when the page is '
        'complete'))


def _count(text: str) -> int:
    return explanation.MAX_SERVERS if text == 'all' else cli.number(1000)(text)


def check(options: argparse.Namespace) -> None:
    """Check arguments that depend on each other; split ``operation``."""
    operation, *parameters = options.operation
    options.operation, options.new_flavor = operation, ' '.join(parameters)
    subject, allowed = '--server', [*explanation.OPERATIONS]
    if options.flavor:
        subject, allowed = '--flavor', [explanation.CREATE]
    elif options.servers_of:
        subject, allowed = '--servers-of', [*moving.STATES]
    inapplicable = '--for %s does not apply to %s: use one of %s' % (
        operation, subject, ', '.join(allowed))
    extra = parameters[1:] if operation == 'resize' else parameters
    surplus = '--for %s takes no further value: %s' % (
        operation, ' '.join(extra))
    misuses = [
        (operation and operation not in allowed, inapplicable),
        (operation == 'resize' and not parameters,
         '--for resize needs the new flavor, as in "--for resize m1.large"'),
        (extra, surplus),
        (options.order and not options.servers_of,
         '--order needs --servers-of')]
    for name, value, also_for in (
            ('image', options.image, 'rebuild'),
            ('image-property', options.properties, 'rebuild'),
            ('volume', options.volume, None),
            ('project', options.project, None),
            ('zone', options.zone, 'unshelve'), ('hint', options.hints, None),
            ('count', options.count != 1, None)):
        needed = '--flavor' + (' or --for ' + also_for if also_for else '')
        is_needed = not options.flavor and operation != also_for
        misuses.append((value and is_needed, '--%s needs %s' % (name, needed)))
    for name in 'host', 'network', 'port':
        applies = getattr(options, name + 's') and options.servers_of
        misuses.append((applies, '--%s does not apply to --servers-of' % name))
    for name, _value in options.hints:
        misuses.append((name.startswith('_nova'), '--hint %s: names that '
                        'begin with _nova are reserved for nova' % name))
    for applies, misuse in misuses:
        if applies:
            raise exceptions.InvalidConfiguration(misuse)


def run(conf: cfg.ConfigOpts) -> int:
    """Explain the request of the command line; return the exit status."""
    program.check_configuration()
    args = conf.command
    view: Any = departures if args.servers_of else explanation
    try:
        if args.html is None:
            answer = _explain(conf)
            _show(args.format, answer, view)
        else:
            # Imported here, so that tables do not need the template engine.
            from nova_aggregate_mirror.html_report import page
            with output.replaced(args.html) as write:
                answer = _explain(conf)
                write(page.generate(
                    view.PAGE, time.time(), answer=answer, view=view))
            report.summarize(args.html, view.sentence(answer))
    except exceptions.CellUnavailable as exc:
        cli.tell([str(exc)])
        return exit_status.NO_NODE
    if answer.interrupted:
        return exit_status.INTERRUPTED
    if answer.cells_down:
        return exit_status.NO_NODE
    return exit_status.OK if answer.possible else exit_status.NO_HOST


def _explain(conf: cfg.ConfigOpts) -> Answer:
    args = conf.command
    check(args)
    # Nova's scheduler takes seconds to import, and other commands need none.
    with start.importing():
        from nova_aggregate_mirror.cmd import nova_objects
        context = nova_objects.prepare(conf)
        from nova_aggregate_mirror.explain import emptying
        from nova_aggregate_mirror.explain import gather
    nova_objects.bound(conf)
    with nova_objects.translated():
        cloud = gather.Cloud(
            context, program.source(), program.placement(),
            program.servers(), cli.progress())
        if args.servers_of:
            return emptying.explain(cloud, args.servers_of, args.operation,
                                    args.order or departures.SIZE)
        names = lookup.Identifiers(conf, program.servers())
        return gather.explain(cloud, args, names.look_up, program.journal)


def _show(form: str, answer: Answer, view: Any) -> None:
    """Print the answer, which the module ``view`` renders."""
    if form == 'table':
        print(view.text(answer))
        return
    if form in cli.LINES:
        print(view.text(answer, tables=False), file=sys.stderr)
    cli.show(form, view.document(answer), view.COLUMNS, view.rows(answer))
