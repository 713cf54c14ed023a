# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-status``: the checks of a deployment."""

from collections import abc
import logging
import sys

from nova.conf import CONF
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import program
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

PROGRAM = 'nova-aggregate-mirror-status'
DESCRIPTION = ('Check the hook, the journal, the access to placement, the '
               'agent and drift.')


class Checks(upgradecheck.UpgradeCommands):
    """The checks in the form that oslo.upgradecheck expects."""

    display_title = 'Host aggregates in placement'

    def __init__(self, results: abc.Callable[
            [], abc.Mapping[str, runner.Result]]) -> None:
        self._results = results

    # 255 is no code of a check.
    def check(self) -> int:  # type: ignore[override]
        """Run every check; return the worst result, or 255 without nova."""
        # Oslo.upgradecheck would print a traceback of an error.
        return program.run(PROGRAM, self._check)

    def _check(self) -> int:
        components.check_configuration()
        results = self._results()
        with program.printing():
            if not CONF.command.json:
                print(text(results))
                return max(result.code for result in results.values())
            self._upgrade_checks = tuple(
                (name, lambda _commands, result=result: result)
                for name, result in results.items())
            return int(super().check())


def text(results: abc.Mapping[str, runner.Result]) -> str:
    """Return the table of oslo.upgradecheck, and the commands below it."""
    rows, lines = [], []
    for name, result in results.items():
        first, *others = [
            finding.text for finding in result.findings] or ['None']
        code = upgradecheck.UPGRADE_CHECK_MSG_MAP[result.code]
        rows.append([('Check: ' + name, 'Result: ' + code,
                      'Details: ' + first, *others)])
        for finding in result.findings:
            commands = ['  ' + command for command in finding.commands]
            lines += [name + ':', *commands] if commands else []
    return '\n'.join([
        terminal_tables.render([Checks.display_title], rows, divider=True),
        *map(printable.line, lines)])


def main() -> int:
    """Run every check; return the worst result, see ``program.run``."""
    nova_aggregate_mirror.conf.register_opts(CONF)
    # The checks report what is wrong, not the log of a library.
    logging.getLogger().addHandler(logging.NullHandler())
    deployment = checks.Deployment(CONF, components.source)
    commands = Checks(lambda: runner.run(deployment))

    def run() -> int:
        if program.show_help(PROGRAM, DESCRIPTION, {
                'upgrade check [--json]': 'Run all checks.'}):
            return exit_status.OK
        return upgradecheck.main(CONF, 'nova', commands, sys.argv[1:])

    try:
        return program.run(PROGRAM, run)
    except SystemExit as exc:
        # Argparse exits with 2, which here means that a check failed.
        return exit_status.COULD_NOT_RUN if exc.code else exit_status.OK
