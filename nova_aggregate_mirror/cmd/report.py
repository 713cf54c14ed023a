# SPDX-License-Identifier: Apache-2.0
"""Write an HTML page with the differences between nova and placement.

The page shows each host in each aggregate, the operations in the journal, what
is kept because it is not nova's, and the last full syncs. It loads nothing
from the network. It is a preview of "placement sync_aggregates --prune":
nothing is changed in placement or in the journal.

With --servers it also shows the servers that "placement audit_servers" lists.
They do not change the exit status, because a sync moves no server.

What cannot be read is reported on the page, which is written nevertheless.
"""

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import time

from oslo_config import cfg

from nova_aggregate_mirror.cmd import audit_servers
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import output
from nova_aggregate_mirror.reconcile import problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('--html', required=True, metavar='FILE',
        help='file to write, - for standard output; an existing file is '
             'replaced when the page is complete')
    add('--servers', action='store_true',
        help='also show servers whose host contradicts what was requested '
             'for them; reads all servers, and needs the configuration of '
             'nova-scheduler')
    cli.add_foreign(parser)
    add('--quiet', action='store_true', help='print no progress')


def run(conf: cfg.ConfigOpts) -> int:
    """Write the page, print a summary line, and return the exit status."""
    program.check_configuration()
    # Imported here, so that other commands do not load the template engine.
    from nova_aggregate_mirror.html_report import report
    options = conf.command
    with contextlib.ExitStack() as page:
        write = page.enter_context(output.replaced(options.html))

        def end(number: int, _frame: object) -> None:
            syncs.shout('Interrupted')
            page.close()
            # A normal exit waits for the threads, and they for placement.
            os._exit(128 + number)

        for number in syncs.SIGNALS:
            signal.signal(number, end)
        content = collect.collect(
            conf, program.source(), cli.progress(options.quiet),
            options.foreign)
        if options.servers:
            content = dataclasses.replace(
                content, findings=_audit(conf, content))
        write(report.render(content, time.time()))
    summarize(options.html, report.summary(content))
    status, trouble = report.status(content), content.journal.trouble
    if status == exit_status.COULD_NOT_RUN and trouble:
        cli.tell([str(trouble)])
    return status


def _audit(conf: cfg.ConfigOpts, content: collect.Content
           ) -> collect.Misplacements:
    """Audit all servers; a failure is part of what is found."""
    findings = collect.Misplacements()
    display = cli.progress(conf.command.quiet)
    display.step('Auditing the servers')
    try:
        server_audit = audit_servers.build_audit(conf, content.journal.syncs)
        findings.totals = server_audit.totals
        try:
            for page in server_audit.run():
                display.tell(findings.totals.progress)
                findings.add(page)
        finally:
            findings.troubles += server_audit.source.problems()
    except exceptions.MirrorError as exc:
        findings.troubles.insert(0, problems.Problem.of(exc))
    return findings


def summarize(name: str, summary: str) -> None:
    """Print the summary of a page; standard output may be the page itself."""
    if name == output.STDOUT:
        cli.tell(['standard output: %s' % summary])
    else:
        cli.tell(['%s: %s' % (name, summary)], sys.stdout)
