# SPDX-License-Identifier: Apache-2.0
"""Write an HTML page with the differences between nova and placement.

The page shows each host in each aggregate, the operations in the journal, what
is kept because it is not nova's, and the last full syncs. It loads nothing
from the network. It is a preview of "placement sync_aggregates --prune":
nothing is changed in placement or in the journal.

What cannot be read is reported on the page, which is written nevertheless.

Exit status, the lowest that applies; the page is written except where noted:
    0  everything is mirrored
    2  placement, or a provider in it, could not be read
    4  a member host has no host mapping
    5  a member host has no compute node, or its cell did not answer
    6  a compute node has no resource provider yet
    7  there is something to add or to remove, including removals that a sync
       would refuse
  130  interrupted by Ctrl-C; 143 by SIGTERM; no page is written
  255  nova's database or the journal could not be read; or the configuration
       or the file could not be used, and then no page is written
"""

import argparse
import sys
import time

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import output
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import interruption
from nova_aggregate_mirror.reconcile import progress
from nova_aggregate_mirror.source import database


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--html', required=True, metavar='FILE',
        help='file to write, - for standard output; an existing file is '
             'replaced when the page is complete')
    parser.add_argument('--quiet', action='store_true',
                        help='print no progress')


def run(conf: cfg.ConfigOpts, source: database.DatabaseSource,
        name: str, quiet: bool = True) -> int:
    """Write the page, print a summary line, and return the exit status.

    :param name: name of the file, or ``-``
    :raises InvalidConfiguration: when the file cannot be written
    """
    # Imported here, so that other commands do not load the template engine.
    from nova_aggregate_mirror.html_report import render
    stop = interruption.Interruption()
    try:
        with stop.watched(), output.replaced(name) as write, \
                progress.shown(quiet) as display:
            collected = collect.collect(conf, collect.Inputs(
                source, client.Client(conf), stop.stopping,
                display))
            write(render.render(collected, time.time()))
    except exceptions.Stopped:
        print('Interrupted before the page was complete; nothing was written',
              file=sys.stderr)
        return stop.status
    summarize(name, render.verdict(collected))
    return render.status(collected)


def summarize(name: str, summary: str) -> None:
    """Print the summary of a page; standard output may be the page itself.

    :param name: name of the file, or ``-``
    """
    if name == output.STDOUT:
        print('standard output: %s' % summary, file=sys.stderr)
    else:
        print('%s: %s' % (name, summary))
