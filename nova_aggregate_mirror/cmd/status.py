# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-status``: the checks of a deployment."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import io
import json
import logging
import sys
import textwrap
import types
from typing import Any

from nova.conf import CONF
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import aggregates
from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror.checks import drift
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror.checks import scheduler
from nova_aggregate_mirror.checks import segments
from nova_aggregate_mirror.cmd import build
from nova_aggregate_mirror.cmd import command_line
from nova_aggregate_mirror.cmd import manuals
from nova_aggregate_mirror.cmd import program
import nova_aggregate_mirror.conf
from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import source as nova_state
from nova_aggregate_mirror.source import aggregates as metadata
from nova_aggregate_mirror.source import database

PROGRAM = 'nova-aggregate-mirror-status'
COMMAND = 'upgrade'
WIDTH = 60
COLUMNS = ('check', 'result', 'details')
DESCRIPTION = ('Check the deployment. Exit status: 0 success, 1 a warning, '
               '2 a failure, 255 nothing could be checked.')


class Deployment:
    """The deployment under check; each part is created at its first use."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf
        self.placement = discovery.Discovery(conf, 'placement')
        self.neutron = discovery.Discovery(conf, 'neutron')
        self.report = client.Client(conf)

    @functools.cached_property
    def source(self) -> database.DatabaseSource:
        return build.source()

    @functools.cached_property
    def nova(self) -> nova_state.Nova:
        return self.source.read_all()

    @functools.cached_property
    def aggregates(self) -> nova_state.Aggregates:
        return metadata.read()

    @functools.cached_property
    def journal(self) -> store.Journal | None:
        return journal.read(self.conf)


@dataclasses.dataclass(frozen=True)
class Check:
    """A row of the table."""

    name: str
    find: Callable[[Deployment], checks.Findings]
    needs: tuple[str, ...] = ()
    """Checks that must succeed before this check can run."""
    applies: Callable[[Deployment], Any] = lambda on: True


CHECKS = (
    Check('Options', lambda on: nova.options(on.conf)),
    Check('Nova\'s API database', lambda on: nova.database(on.source)),
    Check('Galera', lambda on: nova.galera(on.conf, on.source.galera()),
          ('Nova\'s API database',)),
    Check('Hook', lambda on: nova.hook(on.conf)),
    Check('Journal', lambda on: journal.tables(on.conf)),
    Check('Journal users', lambda on: journal.users(on.conf), ('Journal',)),
    Check('Journal of this nova',
          lambda on: journal.belonging(on.journal, on.source),
          ('Nova\'s API database', 'Journal')),
    Check('Placement credentials',
          lambda on: placement.credentials_of(on.conf, 'placement')),
    Check('Placement authentication',
          lambda on: placement.authentication(on.placement),
          ('Placement credentials',)),
    Check('Placement endpoint',
          lambda on: placement.endpoint(on.placement),
          ('Placement authentication',)),
    Check('Placement microversions',
          lambda on: placement.microversions(on.placement),
          ('Placement endpoint',)),
    Check('Placement rights',
          lambda on: placement.rights(on.placement, on.report),
          ('Placement microversions',)),
    Check('Neutron credentials', lambda on: placement.neutron(on.neutron),
          applies=lambda on: on.conf.scheduler
          .query_placement_for_routed_network_aggregates),
    Check('Segments',
          lambda on: segments.visible(on.conf, on.aggregates),
          ('Nova\'s API database', 'Neutron credentials'),
          applies=lambda on: on.conf.scheduler
          .query_placement_for_routed_network_aggregates),
    Check('Backlog', lambda on: journal.backlog(on.journal), ('Journal',)),
    Check('Drift',
          lambda on: drift.find(on.conf, on.journal, on.source, on.report),
          ('Nova\'s API database', 'Journal of this nova',
           'Placement rights')),
    Check('Availability zones',
          lambda on: aggregates.zones(on.conf, on.aggregates, on.nova),
          ('Nova\'s API database',)),
    Check('Allocation ratios', lambda on: aggregates.ratios(on.aggregates),
          ('Nova\'s API database',)),
    Check('Isolated aggregates',
          lambda on: aggregates.isolated(on.aggregates, on.nova, on.report),
          ('Nova\'s API database', 'Placement rights'),
          applies=lambda on: on.conf.scheduler
          .enable_isolated_aggregate_filtering),
    Check('Request filters', lambda on: scheduler.filters(on.conf)),
    Check('Sharing providers',
          lambda on: scheduler.sharing(on.source, on.report),
          ('Nova\'s API database', 'Placement rights'),
          applies=lambda on: scheduler.chosen(on.conf)),
)


class Checks(upgradecheck.UpgradeCommands):
    """The checks in the form that oslo.upgradecheck expects."""

    display_title = 'Host aggregates in placement'

    def __init__(self, deployment: Deployment,
                 rows: Iterable[Check] = CHECKS) -> None:
        self._deployment = deployment
        self._bad: dict[str, str] = {}
        """Checks that did not succeed, to the first check that caused it."""
        self._upgrade_checks = tuple(
            (check.name, (Checks._run, {'check': check})) for check in rows)

    def _run(self, check: Check) -> upgradecheck.Result:
        found: checks.Findings = []
        if check.applies(self._deployment):
            blamed = [self._bad[name] for name in check.needs
                      if name in self._bad]
            if blamed:
                self._bad[check.name] = blamed[0]
                found = [checks.warning('Not checked: resolve "%s" first.'
                                        % blamed[0])]
            else:
                found = self._find(check)
        code = max((finding.code for finding in found),
                   default=checks.Code.SUCCESS)
        if code != checks.Code.SUCCESS:
            self._bad.setdefault(check.name, check.name)
        return upgradecheck.Result(code, '\n'.join(
            line for finding in found for line in (
                finding.text, *('  ' + line for line in finding.cure)))
            or None)

    def _find(self, check: Check) -> checks.Findings:
        try:
            return check.find(self._deployment)
        except exceptions.MirrorError as exc:
            # It worked a moment ago, for another check.
            return [checks.failure('%s Run the checks again:' % exc,
                                   '%s upgrade check' % PROGRAM)]

    def _get_details(self, result: upgradecheck.Result) -> str | None:
        # The inherited method would break a command at its hyphens.
        if result.details is None:
            return None
        title = 'Details: '
        return '\n'.join(
            line if line.startswith('  ') else textwrap.fill(
                line, WIDTH, break_on_hyphens=False, break_long_words=False)
            for line in (title + result.details).splitlines())[len(title):]


def _configure(argv: Sequence[str]) -> None:
    """Read nova's configuration; ``argv`` ends before the command."""
    nova_aggregate_mirror.conf.register_opts(CONF)
    build.read_configuration(argv, PROGRAM, manuals.STATUS)
    build.check_configuration()


def _commands(subparsers: Any) -> None:
    parser = subparsers.add_parser(COMMAND, description=DESCRIPTION)
    parser.add_argument('check', choices=['check'], help='run every check')
    formats.add_argument(parser)
    parser.add_argument('--json', action='store_const', const='json',
                        dest='format', help='the same as --format json')


@program.printing()
def _show(commands: Checks, form: str) -> int:
    # It is a parsed command line, of which ``check`` reads --json only.
    upgradecheck.CONF = types.SimpleNamespace(  # type: ignore[assignment]
        command=types.SimpleNamespace(json=form != 'table'))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = int(commands.check())
    if form in ('table', 'json'):
        print(printed.getvalue(), end='')
        return status
    document = json.loads(printed.getvalue())
    formats.show(form, document, COLUMNS, [
        [check[name] for name in COLUMNS] for check in document['checks']])
    return status


def _check(argv: list[str]) -> int:
    conf = cfg.ConfigOpts()
    conf.register_cli_opt(cfg.SubCommandOpt('command', handler=_commands))
    try:
        # Nova's own function reads the configuration files.
        command_line.read(conf, argv, PROGRAM, manuals.STATUS,
                          default_config_files=[], default_config_dirs=[])
    except SystemExit as exc:
        # Argparse exits with 2, which here means that a check failed.
        return exit_status.COULD_NOT_RUN if exc.code else 0
    # The checks report what is wrong, not the log of a library.
    logging.getLogger().addHandler(logging.NullHandler())
    _configure(argv[:len(argv) - 1 - argv[::-1].index(COMMAND)])
    return _show(Checks(Deployment(CONF)), conf.command.format)


def main(argv: Sequence[str] | None = None) -> int:
    """Run every check; return the worst result, see ``program.run``."""
    return program.run(PROGRAM, lambda: _check(
        [*(sys.argv[1:] if argv is None else argv)]))
