# SPDX-License-Identifier: Apache-2.0
"""Input of the checks: a deployment, each part read at its first use."""

from collections import abc
import functools

from oslo_config import cfg

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import source as nova_state
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata


class Deployment:
    """The deployment under check.

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
