# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a deployment, and what cures it.

A check looks and changes nothing. It gives a list of findings, which is empty
when there is nothing to say.
"""

from collections.abc import Iterable
import dataclasses

from oslo_upgradecheck import upgradecheck

Code = upgradecheck.Code

SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'
START_AGENT = 'systemctl enable --now nova-aggregate-mirror-agent'

# So many names are read; the rest is counted.
NAMES = 5


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that a check found."""

    code: Code
    text: str
    cure: tuple[str, ...] = ()
    """Commands to type, or lines to have in a configuration file."""


Findings = list[Finding]


def good(text: str) -> Finding:
    return Finding(Code.SUCCESS, text)


def warning(text: str, *cure: str) -> Finding:
    return Finding(Code.WARNING, text, cure)


def failure(text: str, *cure: str) -> Finding:
    return Finding(Code.FAILURE, text, cure)


def some(names: Iterable[str]) -> str:
    """Name a few, sorted, and count the others."""
    ordered = sorted(names)
    text = ', '.join(ordered[:NAMES])
    if len(ordered) > NAMES:
        text += ' and %d more' % (len(ordered) - NAMES)
    return text
