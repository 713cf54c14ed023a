# SPDX-License-Identifier: Apache-2.0
"""The journal: whether it can be used, by whom, and what is left in it."""

from collections.abc import Iterable
import os
import pathlib
import pwd
import socket
import tempfile

from oslo_config import cfg

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import checks
from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import migration
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal as mirror_journal
from nova_aggregate_mirror import owner

# An agent that works mirrors an operation within seconds.
OVERDUE = 60
LIST = 'nova-aggregate-mirror-manage journal list'
RESTART = 'systemctl restart nova-api nova-aggregate-mirror-agent'
SERVER = ('[aggregate_mirror_database]',
          'connection = mysql+pymysql://aggregate_mirror:PASSWORD@HOST/'
          'nova_aggregate_mirror')


class Empty:
    """The journal of a deployment that has none of this version yet."""

    def rows(self) -> list[mirror_journal.Row]:
        return []

    def backlog(self) -> tuple[int, float]:
        return 0, 0.0

    def ledger(self) -> frozenset[str]:
        return frozenset()

    def known(self, aggregates: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def lease(self, name: str) -> None:
        return None


Readable = mirror_journal.Journal | Empty


def tables(conf: cfg.ConfigOpts) -> checks.Findings:
    """Whether the database can be used, and its tables are up to date."""
    try:
        path = engine.sqlite_file(conf)
    except exceptions.InvalidConfiguration as exc:
        return [checks.failure(str(exc), *SERVER)]
    # Each process has a lock file, with a server too.
    found = _usable(owner.directory(conf))
    if path is not None:
        found = found or _usable(path.parent) or _closed(path)
        if not found and not os.path.exists(path):
            found = [checks.good('Nova-api makes it when it needs it: %s.'
                                 % path)]
    return found or _version(conf, path)


def _version(conf: cfg.ConfigOpts,
             path: pathlib.Path | None) -> checks.Findings:
    try:
        version = engine.Database(conf).version()
    except exceptions.JournalUnavailable as exc:
        return [_unusable(path, str(exc))]
    if (version or '') >= migration.HEAD:
        return [checks.good('The tables have version %s.' % version)]
    text = ('The tables have version %s' % version if version
            else 'There are no tables')
    if path is not None:
        return [checks.good('%s; nova-api brings them up to date when it '
                            'needs them.' % text)]
    return [checks.failure(
        '%s, and %s is needed. Run once, on one controller:'
        % (text, migration.HEAD), engine.SYNC_COMMAND)]


def read(conf: cfg.ConfigOpts) -> Readable:
    """The journal as it is; nothing is made or brought up to date.

    :raises JournalUnavailable: when it cannot be read
    """
    path = engine.sqlite_file(conf)
    if path is not None and not os.path.exists(path):
        return Empty()
    database = engine.Database(conf)
    if (database.version() or '') < migration.HEAD:
        return Empty()
    return mirror_journal.Journal(conf, database=database)


def sharing(conf: cfg.ConfigOpts, kept: Readable) -> checks.Findings:
    """Whether an SQLite journal is one for nova-api and for the agent."""
    path = engine.sqlite_file(conf)
    if path is None or not os.path.exists(path):
        return []
    locks = owner.directory(conf)
    users = {one.stat().st_uid for one in (path, locks, *locks.glob('*'))
             if os.path.exists(one)}
    if len(users) > 1:
        keeper = _name(path.parent.stat().st_uid)
        return [checks.failure(
            'Processes of the users %s have used the SQLite journal. Let '
            'nova-api, the agent and the commands run as %s, and then run:'
            % (' and '.join(sorted(map(_name, users))), keeper),
            'chown -R %s: %s %s' % (keeper, path.parent, locks.parent),
            RESTART)]
    return _strangers(conf, kept)


def _strangers(conf: cfg.ConfigOpts, kept: Readable) -> checks.Findings:
    """Processes that use the file, and of which nobody here can tell more."""
    here = owner.Owner(owner.directory(conf))
    names = {name for row in kept.rows() for name in (row.owner, row.claimant)}
    lease = kept.lease(agent.LEASE)
    if lease:
        names.add(lease[0])
    strange = {name.partition(':')[0] for name in names
               if name and not here.can_tell(name)}
    if not strange:
        return []
    return [checks.failure(
        'The SQLite journal is also used by processes on %s; this is %s with '
        'state_path %s, where nobody can tell whether they live, and what '
        'they leave waits for %d s. Let nova-api and the agent run with the '
        'same host name and state_path, or have a server:'
        % (checks.some(strange), socket.gethostname(), conf.state_path,
           conf.aggregate_mirror.max_call_age),
        *SERVER, engine.SYNC_COMMAND)]


def backlog(kept: Readable) -> checks.Findings:
    """Whether something is left to be mirrored for longer than it takes."""
    count, age = kept.backlog()
    if not count:
        return [checks.good('Nothing is left to be mirrored.')]
    text = ('%d operations are left to be mirrored, the oldest for %d s'
            % (count, age))
    if age <= OVERDUE:
        return [checks.good(text + '.')]
    lease = kept.lease(agent.LEASE)
    if not lease or not lease[0] or kept.is_dead(lease[0]):
        return [checks.warning(
            '%s, and no agent runs with this journal. Start one, with the '
            'configuration, the user and the state_path of nova-api:' % text,
            checks.START_AGENT)]
    error = kept.rows()[0].last_error
    return [checks.warning('%s: %s See what keeps each of them:' % (
        text, error or 'its operation has not ended.'), LIST)]


def _usable(directory: pathlib.Path) -> checks.Findings:
    """Why files cannot be made in a directory, which may yet have to be."""
    above = next(one for one in (directory, *directory.parents)
                 if os.path.exists(one))
    keeper = above.stat().st_uid
    if above == directory or keeper not in (0, os.geteuid()):
        found = _closed(above)
        if found:
            return found
    try:
        # It has no name, and is gone with its descriptor.
        with tempfile.TemporaryFile(dir=above):
            return []
    except OSError as exc:
        user = _name(os.geteuid()) if os.geteuid() else 'nova'
        return [checks.failure(
            'Nova-api could not write into %s: %s. Run:' % (directory, exc),
            'install -d -m 700 -o %s %s' % (user, directory))]


def _closed(path: pathlib.Path) -> checks.Findings:
    """Why this user cannot work with a file or directory, if so."""
    if not os.path.exists(path):
        return []
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    if os.access(path, wanted):
        return []
    text = '%s cannot be written by %s' % (path, _name(os.geteuid()))
    keeper = path.stat().st_uid
    if keeper == os.geteuid():
        return [checks.failure('%s, whose it is. Run:' % text,
                               'chmod u+rwX %s' % path)]
    user = _name(keeper)
    return [checks.failure(
        '%s, because it belongs to %s. Run this as the user that nova-api '
        'runs as:' % (text, user),
        'sudo -u %s nova-aggregate-mirror-status upgrade check' % user)]


def _unusable(path: pathlib.Path | None, reason: str) -> checks.Finding:
    if path is None:
        return checks.failure(
            '%s. Start the database server, or correct:' % reason, *SERVER)
    if 'not a database' in reason or 'malformed' in reason:
        return checks.failure(
            '%s. Put it aside; nova-api makes a new one, and a sync mirrors '
            'what the old one knew:' % reason,
            'mkdir %s/broken' % path.parent,
            'mv %s* %s/broken' % (path, path.parent), RESTART, checks.SYNC)
    return checks.failure('%s. See who uses it:' % reason,
                          'fuser -v %s' % path)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
