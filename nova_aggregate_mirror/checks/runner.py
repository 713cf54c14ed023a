# SPDX-License-Identifier: Apache-2.0
"""The list of the checks, and its runner."""

from collections import abc
import dataclasses

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import aggregate_metadata
from nova_aggregate_mirror.checks import drift
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror.checks import scheduler
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import option_values

DATABASE = 'Nova\'s API database'
JOURNAL = 'Journal of this nova'
NOT_APPLICABLE = 'Not looked at'


def _unset(option: str) -> abc.Callable[[inputs.Deployment], str]:
    """Return a check's ``unless`` for an option that has to be true."""
    return lambda deployment: '' if deployment.conf.scheduler[option] else (
        '[scheduler] %s is off' % option)


@dataclasses.dataclass(frozen=True)
class Check:
    """An entry of the list."""

    name: str
    find: abc.Callable[[inputs.Deployment], checks.Findings]
    needs: tuple[str, ...] = ()
    """Checks that must succeed before this check can run."""
    unless: abc.Callable[[inputs.Deployment], str] = lambda deployment: ''
    """Returns why it does not apply; empty if it does."""


UNROUTED = _unset('query_placement_for_routed_network_aggregates')

CHECKS = (
    # Of nova-api: what it loads, and where it records operations.
    Check('Options', nova.options),
    Check(DATABASE, nova.database),
    Check('Galera', nova.galera, (DATABASE,)),
    Check('Hook', nova.hook),
    Check('Journal', journal.tables),
    Check('Journal space', journal.space, ('Journal',)),
    Check('Journal users', journal.users, ('Journal',)),
    Check(JOURNAL, journal.ownership, (DATABASE, 'Journal')),
    Check('Journal writes', journal.writes, (JOURNAL,)),
    Check('Nova-api processes', journal.processes, ('Journal',)),
    # The way to placement, step by step.
    Check('Placement credentials', placement.credentials),
    Check('Placement endpoint', placement.endpoint,
          ('Placement credentials',)),
    Check('Placement rights', placement.rights, ('Placement endpoint',)),
    # What nova-scheduler reads from neutron.
    Check('Neutron credentials', placement.neutron, (), UNROUTED),
    Check('Segments', scheduler.segments, (DATABASE, 'Neutron credentials'),
          UNROUTED),
    # Whether the mirror keeps up, and placement equals nova.
    Check('Agent', journal.agent, ('Journal',), journal.unrelated),
    Check('Modes', journal.agreement, ('Journal',), journal.unrelated),
    Check('Backlog', journal.backlog, ('Journal',)),
    Check('Drift', drift.find,
          (DATABASE, JOURNAL, 'Placement rights')),
    # What the metadata of aggregates means to nova.
    Check('Availability zones', aggregate_metadata.zones, (DATABASE,)),
    Check('Allocation ratios', aggregate_metadata.ratios, (DATABASE,)),
    Check('Isolated aggregates', aggregate_metadata.isolation,
          (DATABASE, 'Placement rights'),
          _unset('enable_isolated_aggregate_filtering')),
    Check('Aggregate metadata', aggregate_metadata.unread_keys, (DATABASE,)),
    # What the request filters need.
    Check('Request filters', scheduler.filters),
    Check('Sharing providers', scheduler.sharing,
          (DATABASE, 'Placement rights'), scheduler.unfiltered),
)


class Result(upgradecheck.Result):
    """The findings of a check; the details include their commands."""

    def __init__(self, code: checks.Code, findings: checks.Findings) -> None:
        self.findings = findings
        lines = ['\n  '.join([finding.text, *finding.commands])
                 for finding in findings]
        super().__init__(code, '\n'.join(lines) or None)


class Runner:
    """A run of checks; one that needs a check without success is skipped."""

    def __init__(self, deployment: inputs.Deployment,
                 rows: abc.Iterable[Check] = CHECKS) -> None:
        self._deployment = deployment
        self._causes: dict[str, str] = {}
        """Checks that did not succeed, to the first check that caused it."""
        self._rows = rows

    def results(self) -> dict[str, Result]:
        """Return check names to results; one lists what does not apply."""
        results: dict[str, Result] = {}
        skipped: checks.Findings = []
        for check in self._rows:
            findings = self.findings(check)
            if findings and findings[0].code is None:
                skipped += checks.good(
                    '%s: %s' % (check.name, findings[0].text))
            else:
                results[check.name] = self._result(check, findings)
        if skipped:
            # A row each would claim that they were checked.
            results[NOT_APPLICABLE] = Result(checks.Code.SUCCESS, skipped)
        return results

    def findings(self, check: Check) -> checks.Findings:
        """Run a check, unless it does not apply or one it needs failed.

        What breaks in it is its finding.
        """
        try:
            reason = check.unless(self._deployment)
            if reason:
                return checks.skipped(reason)
            causes = [self._causes[name] for name in check.needs
                      if name in self._causes]
            if causes:
                self._causes[check.name] = causes[0]
                return checks.warning(
                    'Not checked: resolve "%s" first.' % causes[0])
            return check.find(self._deployment)
        except exceptions.MirrorError as exc:
            return checks.failed(exc)
        except cfg.Error as exc:
            return checks.failed(
                option_values.of_error(self._deployment.conf, exc))

    def _result(self, check: Check, findings: checks.Findings) -> Result:
        """Return the worst of the findings; note a check without success."""
        code = max((finding.code for finding in findings if finding.code),
                   default=checks.Code.SUCCESS)
        if code != checks.Code.SUCCESS:
            self._causes.setdefault(check.name, check.name)
        return Result(code, findings)
