# SPDX-License-Identifier: Apache-2.0
"""Checks of a deployment, and the commands that repair what they find.

A check changes nothing that nova, an agent or placement would see. It returns
a list of findings, or raises the only one; an empty list means success.
"""

from collections import abc
import dataclasses
import functools

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror import source as nova_state
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata

Code = upgradecheck.Code
# The client of placement knows 1.29 and 1.37, and no version between them.
TRAIT = 'openstack --os-placement-api-version 1.29 trait'
PROVIDER = 'openstack --os-placement-api-version 1.29 resource provider'
UPGRADE = 'pip install --upgrade WHEEL_OR_REPOSITORY'
# Names that a finding lists; any further names are only counted.
NAMES = 5


class Deployment:
    """The deployment under check, each part read at its first use.

    :param source: builds the source of nova's databases; the check of the
        options replaces invalid values before it
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 source: abc.Callable[[], database.DatabaseSource]) -> None:
        self.conf = conf
        self.client = client.Client(conf)
        self._build_source = source

    @functools.cached_property
    def source(self) -> database.DatabaseSource:
        return self._build_source()

    @functools.cached_property
    def nova(self) -> nova_state.Nova:
        return self.source.read_all()

    @functools.cached_property
    def aggregates(self) -> keyed_aggregates.Aggregates:
        return metadata.read_all()

    @functools.cached_property
    def extra_specs(self) -> frozenset[str]:
        return metadata.extra_specs()

    @functools.cached_property
    def journal(self) -> store.Journal | None:
        """The journal, neither created nor upgraded; None if there is none.

        :raises JournalUnavailable: when the journal cannot be read
        """
        if existing.is_missing(self.conf):
            return None
        journal_database = engine.Database(self.conf)
        if journal_database.schema().is_outdated:
            return None
        return store.Journal(self.conf, journal_database)


@dataclasses.dataclass(frozen=True)
class Finding:
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


def _finding(code: Code | None, text: str, *commands: str) -> Findings:
    return [Finding(code, problems.Problem('', text), commands)]


# Each takes a text and commands to copy, and returns a list of one finding.
skipped = functools.partial(_finding, None)
good = functools.partial(_finding, Code.SUCCESS)
warning = functools.partial(_finding, Code.WARNING)
failure = functools.partial(_finding, Code.FAILURE)
some = functools.partial(plurals.some, limit=NAMES)


def failed(exc: exceptions.MirrorError, *commands: str) -> Findings:
    """Return the finding for an error: the sentence that all others print."""
    return [Finding(Code.FAILURE, problems.Problem.of(exc), commands)]
