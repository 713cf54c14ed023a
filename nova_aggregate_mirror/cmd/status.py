# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-status``: the checks of a deployment."""

from collections import abc
import logging
import sys
import textwrap

from nova.conf import CONF
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.cmd import program
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exit_status

PROGRAM = 'nova-aggregate-mirror-status'
WIDTH = 60
"""Characters of a line of details, as in oslo.upgradecheck."""


class Checks(upgradecheck.UpgradeCommands):
    """The checks in the form that oslo.upgradecheck expects."""

    display_title = 'Host aggregates in placement'

    def __init__(self, results: abc.Callable[
            [], abc.Mapping[str, upgradecheck.Result]]) -> None:
        self._results = results

    # 255 is no code of a check.
    def check(self) -> int:  # type: ignore[override]
        """Run every check; return the worst result, or 255 without nova."""
        # Oslo.upgradecheck would print a traceback of an error.
        return program.run(PROGRAM, self._check)

    def _check(self) -> int:
        components.check_configuration()
        self._upgrade_checks = tuple(
            (name, lambda _commands, result=result: result)
            for name, result in self._results().items())
        with program.printing():
            return int(super().check())

    def _get_details(self, result: upgradecheck.Result) -> str | None:
        # The inherited method would break a command at its hyphens. The table
        # puts the title before the first line.
        if result.details is None:
            return None
        title = 'Details: '
        return '\n'.join(
            line if line.startswith('  ') else textwrap.fill(
                line, WIDTH, break_on_hyphens=False, break_long_words=False)
            for line in (title + result.details).splitlines())[len(title):]


def main() -> int:
    """Run every check; return the worst result, see ``program.run``."""
    nova_aggregate_mirror.conf.register_opts(CONF)
    # The checks report what is wrong, not the log of a library.
    logging.getLogger().addHandler(logging.NullHandler())
    commands = Checks(runner.Runner(
        inputs.Deployment(CONF, components.source)).results)
    try:
        return program.run(PROGRAM, lambda: upgradecheck.main(
            CONF, 'nova', commands, sys.argv[1:] or ['--help']))
    except SystemExit as exc:
        # Argparse exits with 2, which here means that a check failed.
        return exit_status.COULD_NOT_RUN if exc.code else exit_status.OK
