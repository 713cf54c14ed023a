# SPDX-License-Identifier: Apache-2.0
"""Checks of the journal: access, writes, schema, owner, agent and backlog.

Long because all of them read one database, and name the files of SQLite.
"""

import contextlib
import math
import os
import pathlib
import shlex
import shutil
import time

from nova_aggregate_mirror import accounts
from nova_aggregate_mirror import causes
from nova_aggregate_mirror import checks
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sqlite
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import modes

# Seconds; a running agent mirrors an operation within a few of them.
OVERDUE = 60
NO_JOURNAL = 'nova-api has not created the journal yet'
ON_SERVER = 'the journal is on a database server'
# Free MiB below which an SQLite journal is about to fill its file system.
LEAST_FREE = 16
# Seconds for which the check waits for the agent to renew its lease.
LONGEST_WATCH = 20.0
RESTART = 'systemctl restart nova-api nova-aggregate-mirror-agent'
START_AGENT = 'systemctl enable --now nova-aggregate-mirror-agent'


def tables(deployment: checks.Deployment) -> checks.Findings:
    """Check that the database is usable and its tables are up to date."""
    conf = deployment.conf
    path = existing.sqlite_file(conf)
    try:
        if path and existing.is_missing(conf):
            # It raises if nova-api could not create the file either.
            existing.open_existing(conf)
            return checks.skipped(
                'nova-api creates %s at its first use' % path)
        schema = engine.Database(conf).check_tables()
    except exceptions.JournalUnavailable as exc:
        return checks.failed(exc, *_commands(path, exc))
    if not schema.is_outdated:
        return checks.good('The tables have version %s.' % schema.version)
    text = '%s has %s' % (engine.JOURNAL, schema)
    if path:
        return checks.good('%s; nova-api creates or upgrades them at its '
                           'next use.' % text)
    return checks.failure(
        '%s; this release needs version %s. Run once, on one controller:'
        % (text, models.HEAD), commands.DB_SYNC)


def _commands(path: pathlib.Path | None, exc: exceptions.JournalUnavailable
              ) -> tuple[str, ...]:
    """Return the commands that replace an SQLite file that is damaged."""
    if path is None or exc.failure.kind != causes.FILE_DAMAGED.kind:
        return ()
    target = _quoted(path.parent / time.strftime('broken-%Y%m%d%H%M%S'))
    return ('mkdir ' + target, 'mv %s* %s' % (_quoted(path), target),
            RESTART, commands.SYNC)


def space(deployment: checks.Deployment) -> checks.Findings:
    """Check that an SQLite journal can grow."""
    path = existing.sqlite_file(deployment.conf)
    if path is None:
        return checks.skipped(ON_SERVER)
    directory = sqlite.nearest_existing(path.parent)
    free = shutil.disk_usage(directory).free / 2 ** 20
    if free >= LEAST_FREE:
        return []
    return checks.warning('Only %.1f MiB are free for the SQLite journal: '
                          'make room in %s.' % (free, directory))


def users(deployment: checks.Deployment) -> checks.Findings:
    """Check that all files of an SQLite journal have the same owner."""
    path = existing.sqlite_file(deployment.conf)
    if path is None or existing.is_missing(deployment.conf):
        return checks.skipped(ON_SERVER if path is None else NO_JOURNAL)
    owners = set()
    for suffix in ('', '-wal', '-shm', '-journal'):
        # SQLite deletes the other files when the last process closes them.
        with contextlib.suppress(FileNotFoundError):
            owners.add(os.stat('%s%s' % (path, suffix)).st_uid)
    if len(owners) < 2:
        return []
    user = accounts.user(path.parent.stat().st_uid)
    names = sorted(map(accounts.user, owners))
    return checks.failure(
        'The SQLite journal was used by processes of the users %s. Run '
        'nova-api, the agent and the commands as %s, then run:'
        % (' and '.join(names), user),
        'chown -R %s: %s' % (user, _quoted(path.parent)), RESTART)


def ownership(deployment: checks.Deployment) -> checks.Findings:
    """Check that the journal does not belong to another nova."""
    if deployment.journal is None:
        return checks.skipped(NO_JOURNAL)
    # Its error has a step whose command is not to be copied unread.
    nova_identity.check(
        deployment.journal.database, deployment.source.cell_mappings,
        deployment.source.aggregates)
    return []


def unrelated(deployment: checks.Deployment) -> str:
    """Return why the journal shows nothing of this nova's agents, if so."""
    # Any other error, which other checks report, tells nothing of the owner.
    error = exceptions.failure_of(lambda: ownership(deployment))
    return ('the journal belongs to another nova'
            if isinstance(error, exceptions.WrongNova) else '')


def writes(deployment: checks.Deployment) -> checks.Findings:
    """Check that every table of the journal can be written."""
    if deployment.journal is None:
        return checks.skipped(NO_JOURNAL)
    deployment.journal.try_writes()
    return []


def agent(deployment: checks.Deployment) -> checks.Findings:
    """Check that an agent leads, by watching it renew its lease."""
    if deployment.journal is None:
        return checks.skipped(NO_JOURNAL)
    database = deployment.journal.database
    mode = deployment.conf.aggregate_mirror.mode
    row = lease.read(database, mode)
    if row and row.holder:
        leader = _renewal(database, mode, row)
        if leader:
            return checks.good(
                'The leader is the agent on %s, which took the lease on %s.'
                % (leader.host, dates.iso(leader.taken_at)))
        # An agent that leads cannot renew a lease that is locked.
        lease.try_write(database, mode)
        if row.seconds > LONGEST_WATCH:
            return checks.warning(
                'Not checked: the agent on %s has not renewed its lease for '
                '%g seconds, and it lasts %g seconds.'
                % (row.host, LONGEST_WATCH, row.seconds))
    else:
        [other_mode] = lease.NAMES.keys() - {mode}
        leader = lease.read(database, other_mode)
        if leader and leader.holder and _renewal(database, other_mode, leader):
            return checks.warning(
                'No agent leads in mode %s; the agent on %s leads in mode %s.'
                % (mode, leader.host, other_mode))
    if row is None:
        return checks.warning(
            'No agent has ever used this journal in mode %s. Start one with '
            'the [aggregate_mirror_database] of nova-api:' % mode, START_AGENT)
    return checks.warning(
        'No agent leads; the last leader was the agent on %s, which took the '
        'lease on %s. Start an agent:' % (
            row.host, dates.iso(row.taken_at)), START_AGENT)


def _renewal(database: engine.Database, mode: str,
             row: lease.LeaseRow) -> lease.LeaseRow | None:
    """Watch a lease for as long as it lasts; return its next row, if any."""
    for _second in range(math.ceil(min(row.seconds, LONGEST_WATCH))):
        time.sleep(1)
        current = lease.read(database, mode)
        if current and current.holder and current != row:
            return current
    return None


def processes(deployment: checks.Deployment) -> checks.Findings:
    """Check that a nova-api has used the journal; list those of last week."""
    if not deployment.journal and not existing.is_missing(deployment.conf):
        return checks.skipped('nova-api upgrades the journal first')
    rows = deployment.journal.processes() if deployment.journal else []
    if not rows:
        return checks.warning(
            'No nova-api with the hook has ever recorded an operation. '
            'Restart nova-api on each controller; the next host that joins '
            'or leaves an aggregate ends this warning:', modes.RESTART)
    now, newest = time.time(), rows[-1]
    age = now - newest.seen_at
    if age > store.KEEP_PROCESSES:
        return checks.good('The last operation through the hook was %d days '
                           'ago, on %s.' % (age / 86400, newest.host))
    texts = {'%s, version %s, mode %s' % (row.host, row.version, row.mode)
             for row in rows if row.seen_at > now - store.KEEP_PROCESSES}
    return checks.good('Nova-api with the hook, in the last 7 days: %s.'
                       % '; '.join(sorted(texts)))


def agreement(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova-api and the agent have the mode of nova.conf."""
    if deployment.journal is None:
        return checks.skipped(NO_JOURNAL)
    mode = deployment.conf.aggregate_mirror.mode
    findings = [checks.Finding(
        checks.Code.FAILURE if problem.status else checks.Code.WARNING,
        problem) for problem in modes.find(deployment.journal, mode)]
    return findings or checks.good(
        'Neither nova-api\'s last operations nor an agent\'s last sync had '
        'another mode than %s.' % mode)


def backlog(deployment: checks.Deployment) -> checks.Findings:
    """Check that no operation has been pending for too long."""
    if deployment.journal is None:
        return checks.skipped(NO_JOURNAL)
    rows = [row for row in deployment.journal.rows.all()
            if row.mirrored_at is None]
    if not rows:
        return checks.good('No operation is pending.')
    # By the clock of the host that wrote the row, which may differ a little.
    age = time.time() - min(row.created_at for row in rows)
    if -store.AHEAD <= age < 0:
        age = 0.0
    since = ('for %d s' % age if age >= 0
             else 'recorded by a clock that was %d s ahead' % -age)
    text = '%s pending, the oldest %s' % (
        plurals.count(len(rows), 'operation is', 'operations are'), since)
    if 0 <= age <= OVERDUE:
        return checks.good(text + '.')
    errors = [row.last_error.rstrip('.') for row in rows if row.last_error]
    cause = ('the last failure of one of them: ' + errors[0] if errors
             else 'no attempt to mirror one has failed')
    return checks.warning('%s; %s. To list the reason of each, run:' % (
        text, cause), commands.LIST)


def _quoted(path: pathlib.Path) -> str:
    return shlex.quote(str(path))
