# SPDX-License-Identifier: Apache-2.0
"""Checks of a deployment, and the commands that repair what they find.

A check changes nothing that nova, an agent or placement would see. It returns
a list of findings, or raises the error that is the only one; an empty list
means success.
"""

from collections import abc
import dataclasses
import functools

from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import problems

Code = upgradecheck.Code

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
    problem: problems.Problem
    """What was found; of a success, what is good."""
    commands: tuple[str, ...] = ()
    """Commands to copy, or lines of a configuration file."""

    @property
    def text(self) -> str:
        """What is printed before the commands."""
        text = str(self.problem)
        return text if text.endswith(('.', ':')) else text + '.'


Findings = list[Finding]


def good(text: str) -> Finding:
    return Finding(Code.SUCCESS, problems.Problem('', text))


def warning(text: str, *commands: str) -> Finding:
    return Finding(Code.WARNING, problems.Problem('', text), commands)


def failure(text: str, *commands: str) -> Finding:
    return Finding(Code.FAILURE, problems.Problem('', text), commands)


def failed(exc: exceptions.MirrorError,
           commands: abc.Mapping[str, tuple[str, ...]] | None = None
           ) -> Finding:
    """Return the finding for an error: the sentence that all others print.

    :param commands: lines to copy for its step, by the kind of the failure
    """
    return Finding(Code.FAILURE, problems.Problem.of(exc),
                   (commands or {}).get(exc.failure.kind, ()))


def skipped(reason: str) -> Finding:
    """Return the finding of a check that has nothing to look at.

    :param reason: a clause, such as "no agent has synced yet"
    """
    return Finding(None, problems.Problem('', reason))


some = functools.partial(plurals.some, limit=NAMES)
