# SPDX-License-Identifier: Apache-2.0
"""Checks of a deployment, and the commands that repair what they find.

A check changes nothing that nova, an agent or placement would see. It returns
a list of findings; an empty list means success.
"""

import dataclasses
import functools

from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror import plurals

Code = upgradecheck.Code

SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'
AUDIT = 'nova-aggregate-mirror-manage placement audit_servers'
# The client of placement knows 1.29 and 1.37, and no version between them.
TRAIT = 'openstack --os-placement-api-version 1.29 trait'
PROVIDER = 'openstack --os-placement-api-version 1.29 resource provider'
START_AGENT = 'systemctl enable --now nova-aggregate-mirror-agent'

# Names that a finding lists; any further names are only counted.
NAMES = 5


@dataclasses.dataclass(frozen=True)
class Finding:
    """A result of a check."""

    code: Code | None
    """None for a check that has nothing to look at."""
    text: str
    cure: tuple[str, ...] = ()
    """Commands to run, or lines to set in a configuration file."""


Findings = list[Finding]


def good(text: str) -> Finding:
    return Finding(Code.SUCCESS, text)


def warning(text: str, *cure: str) -> Finding:
    return Finding(Code.WARNING, text, cure)


def failure(text: str, *cure: str) -> Finding:
    return Finding(Code.FAILURE, text, cure)


def error(exc: exceptions.MirrorError, step: str = '', *cure: str) -> Finding:
    """Return the finding for an error: what was seen, and one next step.

    :param step: a sentence, unless the error has a step of its own, other than
        to run these checks
    :param cure: the commands or lines that it announces
    """
    if exc.failure.step not in ('', driver_failures.CHECK):
        return failure('%s.' % exc)
    return error_with_step(exc, step, *cure)


def error_with_step(exc: exceptions.MirrorError, step: str, *cure: str
                    ) -> Finding:
    """Return the finding for an error, with another step than its own."""
    return failure(' '.join(filter(
        None, ('%s.' % exc.failure.observed, step))), *cure)


def skipped(reason: str) -> Finding:
    """Return the finding of a check that has nothing to look at.

    :param reason: a clause, such as "no agent has synced yet"
    """
    return Finding(None, reason)


some = functools.partial(plurals.some, limit=NAMES)
