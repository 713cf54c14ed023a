# SPDX-License-Identifier: Apache-2.0
"""The list of the checks, and its runner."""

from collections import abc
import dataclasses

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import aggregate_metadata
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror.scheduler import filter_table

DATABASE = 'Nova\'s API database'
JOURNAL = 'Journal of this nova'
NOT_APPLICABLE = 'Not looked at'


def _unset(option: str) -> abc.Callable[[checks.Deployment], str]:
    """Return a check's ``unless`` for an option that has to be true."""
    return lambda deployment: '' if deployment.conf.scheduler[option] else (
        '[scheduler] %s is off' % option)


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    find: abc.Callable[[checks.Deployment], checks.Findings]
    needs: tuple[str, ...] = ()
    """Checks that must succeed before this check can run."""
    unless: abc.Callable[[checks.Deployment], str] = lambda deployment: ''
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
    Check('Segments', nova.segments, (DATABASE, 'Neutron credentials'),
          UNROUTED),
    # Whether the mirror keeps up, and placement equals nova.
    Check('Agent', journal.agent, ('Journal',), journal.unrelated),
    Check('Modes', journal.agreement, ('Journal',), journal.unrelated),
    Check('Backlog', journal.backlog, ('Journal',)),
    Check('Drift', placement.drift, (DATABASE, JOURNAL, 'Placement rights')),
    # What the metadata of aggregates means to nova.
    Check('Availability zones', aggregate_metadata.zones, (DATABASE,)),
    Check('Allocation ratios', aggregate_metadata.ratios, (DATABASE,)),
    Check('Isolated aggregates', aggregate_metadata.isolation,
          (DATABASE, 'Placement rights'),
          _unset('enable_isolated_aggregate_filtering')),
    Check('Aggregate metadata', aggregate_metadata.unread_keys, (DATABASE,)),
    # What the request filters need.
    Check('Request filters', nova.filters),
    Check('Sharing providers', nova.sharing, (DATABASE, 'Placement rights'),
          lambda deployment: '' if filter_table.configured(deployment.conf)
          else 'no request filter is configured'))


class Result(upgradecheck.Result):
    """The findings of a check and the worst of them, with their commands."""

    def __init__(self, findings: checks.Findings) -> None:
        self.findings = findings
        lines = ['\n  '.join([finding.text, *finding.commands])
                 for finding in findings]
        code = max((finding.code for finding in findings if finding.code),
                   default=checks.Code.SUCCESS)
        super().__init__(code, '\n'.join(lines) or None)


def run(deployment: checks.Deployment, rows: abc.Iterable[Check] = CHECKS
        ) -> dict[str, Result]:
    """Return check names to results; one lists what does not apply."""
    results: dict[str, Result] = {}
    skipped: checks.Findings = []
    causes: dict[str, str] = {}
    """Checks that did not succeed, to the first check that caused it."""
    for check in rows:
        cause = next(filter(None, map(causes.get, check.needs)), '')
        findings = find(check, deployment, cause)
        if findings and findings[0].code is None:
            skipped += checks.good('%s: %s' % (check.name, findings[0].text))
            continue
        results[check.name] = Result(findings)
        if results[check.name].code != checks.Code.SUCCESS:
            causes[check.name] = cause or check.name
    if skipped:
        # One row for all: a row each would claim that they were checked.
        results[NOT_APPLICABLE] = Result(skipped)
    return results


def find(check: Check, deployment: checks.Deployment, cause: str = ''
         ) -> checks.Findings:
    """Run a check, if it applies; what breaks in it is its finding.

    :param cause: an earlier check without whose success it is not run
    """
    try:
        reason = check.unless(deployment)
        if reason:
            return checks.skipped(reason)
        if cause:
            return checks.warning('Not checked: resolve "%s" first.' % cause)
        return check.find(deployment)
    except exceptions.MirrorError as exc:
        return checks.failed(exc)
    except cfg.Error as exc:
        return checks.failed(
            option_values.invalid_option(deployment.conf, exc))
