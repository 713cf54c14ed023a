# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-status``: the checks of a deployment."""

import json
import logging

from nova.conf import CONF
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import printable
from nova_aggregate_mirror import terminal_tables

PROGRAM = 'nova-aggregate-mirror-status'
DESCRIPTION = ('Check the hook, the journal, the access to placement, the '
               'agent and drift.')
TITLE = 'Host aggregates in placement'


class Checks(upgradecheck.UpgradeCommands):
    """The checks in the form that oslo.upgradecheck expects."""

    def check(self) -> upgradecheck.Code:
        """Run every check; return the worst result."""
        program.check_configuration()
        results = runner.run(checks.Deployment(CONF, program.source))
        print(document(results) if CONF.command.json else text(results))
        return max(result.code for result in results.values())


def document(results: dict[str, runner.Result]) -> str:
    """Return the JSON of oslo.upgradecheck."""
    rows = [{'check': name, 'result': result.code, 'details': result.details}
            for name, result in results.items()]
    return json.dumps({'name': TITLE, 'checks': rows})


def text(results: dict[str, runner.Result]) -> str:
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
    table = terminal_tables.render([TITLE], rows, divider=True)
    return '\n'.join([table, *map(printable.line, lines)])


def _run() -> int:
    if program.show_help(PROGRAM, DESCRIPTION, {
            'upgrade check [--json]': 'Run all checks.'}):
        return exit_status.OK
    # The checks report what is wrong; the logs of libraries are not printed.
    logging.getLogger().addHandler(logging.NullHandler())
    upgradecheck.register_cli_options(CONF, Checks())
    program.read_configuration(PROGRAM, DESCRIPTION)
    return int(CONF.command.action_fn())


def main() -> int:
    """Run every check; return the worst result, see ``program.run``."""
    try:
        return program.run(PROGRAM, _run)
    except SystemExit as exc:
        # Argparse exits with 2, which here means that a check failed.
        return exit_status.COULD_NOT_RUN if exc.code else exit_status.OK
