# SPDX-License-Identifier: Apache-2.0
"""Limits of a database, and the back-off after it did not answer."""

import functools
import inspect
import pathlib
import types
from unittest import mock

import fixtures
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines
from tests.unit.journal.db import test_engine

PACKAGE = pathlib.Path(engines.__file__).parents[1]


class TestLimits(testtools.TestCase):

    def test_timeout_is_a_part_of_the_call(self):
        """Drivers take whole seconds, and 0 would mean no limit."""
        for inline_timeout, timeout in (0.1, 1.0), (5.0, 2.0), (60.0, 5.0):
            self.assertEqual(timeout, engines.Limits.of_call(
                inline_timeout, 30.0).timeout)

    def test_no_statement_ends_later_than_a_second_after_the_call(self):
        """A statement that begins with ``least_left`` ends in time."""
        for inline_timeout in 0.1, 5.0, 60.0:
            limits = engines.Limits.of_call(inline_timeout, 30.0)
            self.assertLessEqual(
                limits.timeout - limits.least_left, engines.OVERRUN)

    def test_limit_of_less_than_a_second(self):
        """No statement begins after the call, however short it may take."""
        with deadline.within(0.0):
            self.assertRaises(engines.NotAsked, engines.Limits(0.1).check)

    def test_many_values(self):
        """Each list fits a statement, and none is missing."""
        values = {'%04d' % number for number in range(2 * engines.CHUNK + 1)}
        chunks = list(engines.chunks(values))
        self.assertEqual([engines.CHUNK, engines.CHUNK, 1],
                         list(map(len, chunks)))
        self.assertEqual(sorted(values), sum(chunks, []))
        self.assertEqual([], list(engines.chunks(())))

    def test_each_has_limits(self):
        """No module creates an engine in another way than with limits.

        A wait for an SQLite file has limits of its own.
        """
        self.assertEqual(['journal/db/sqlite.py', 'limits/engines.py'], [
            str(path.relative_to(PACKAGE))
            for path in sorted(PACKAGE.rglob('*.py'))
            if 'create_engine(' in path.read_text()])
        self.assertIs(inspect.Parameter.empty, inspect.signature(
            engines.create).parameters['limits'].default)

    def test_limits_of_a_driver(self):
        """They are at the server, too; a driver takes whole seconds."""
        for driver, parameters in (
                ('mysql+pymysql', {'connect_timeout': '3', 'read_timeout': '3',
                                   'write_timeout': '3'}),
                *((driver, {'connect_timeout': '3',
                            'tcp_user_timeout': '3000',
                            'keepalives_idle': '3',
                            'keepalives_interval': '3'})
                  for driver in test_engine.DRIVERS[1:])):
            engine = engines.create(
                sa.engine.make_url(driver + '://user@127.0.0.1:1/name'), {},
                engines.Limits(2.5))
            self.assertEqual(parameters, dict(engine.url.query))
            self.assertEqual(2.5, engine.pool._timeout)

    def test_parameter_that_a_driver_takes_for_an_object_of_its_own(self):
        """What the driver calls that object is not shown."""
        url = sa.engine.make_url('mysql+pymysql://host/name?ssl=yes')
        factory = mock.Mock(side_effect=AttributeError('no attribute get'))
        error = self.assertRaises(
            driver_failures.Observed, engines.build, url, factory)
        self.assertEqual(causes.url_unusable('pymysql', 'ssl', ''),
                         error.cause)


class TestAttempts(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.limits.engines.time',
            types.SimpleNamespace(monotonic=lambda: self.now)))
        limits = engines.Limits(5.0, 30.0)
        self.engine = engines.create(
            sa.engine.make_url('sqlite://'), {}, limits)
        self.attempt = functools.partial(
            engines.backing_off, limits, backoff.Backoff(30.0, 30.0))

    def test_begin_while_enough_is_left(self):
        """The last one may take its whole limit."""
        with deadline.within(60.0), self.engine.begin() as connection:
            self.assertEqual(1, connection.scalar(sa.text('SELECT 1')))

    def test_do_not_begin_when_too_little_is_left(self):
        """Neither a connection nor a statement nor a COMMIT."""
        with deadline.within(4.0):
            self.assertRaises(engines.NotAsked, self.engine.connect)
        with self.engine.connect() as connection:
            transaction = connection.begin()
            connection.execute(sa.text('SELECT 1'))
            with deadline.within(4.0):
                self.assertRaises(engines.NotAsked, connection.execute,
                                  sa.text('SELECT 1'))
                self.assertRaises(engines.NotAsked, transaction.commit)

    def test_step_if_the_transaction_takes_all_the_time(self):
        """It is that of the request; other deadlines have other options."""
        for context, step in (
                (deadline.within(4.0), ''),
                (deadline.Budget(4.0).spending(),
                 causes.NOT_ASKED.in_call().step)):
            with self.engine.connect() as connection, context:
                error = self.assertRaises(
                    engines.NotAsked, connection.execute, sa.text('SELECT 1'))
                self.assertFalse(connection.invalidated)
            self.assertEqual(step, error.cause.step)

    def test_statement_that_is_not_begun_begins_no_back_off(self):
        """Whatever SQLAlchemy and oslo.db make of the error of an event."""
        with testtools.ExpectedException(engines.NotAsked), \
                self.attempt(), self.engine.connect() as connection:
            self.now += 4.9
            with deadline.within(4.0):
                connection.execute(sa.text('SELECT 1'))
        with self.attempt():
            pass

    def test_error_after_answers_begins_no_back_off(self):
        """A process without time for its own work waits for no database."""
        with testtools.ExpectedException(sa.exc.OperationalError), \
                self.attempt(), self.engine.connect() as connection:
            for _answer in range(3):
                connection.execute(sa.text('SELECT 1'))
                self.now += 4.9
            connection.execute(sa.text('nonsense'))
        with self.attempt():
            pass

    def test_silence_after_answers(self):
        """The wait is that for the last statement alone."""
        with testtools.ExpectedException(TimeoutError), \
                self.attempt(), self.engine.connect() as connection:
            self.now += 100.0
            connection.execute(sa.text('SELECT 1'))
            self.now += 4.9
            raise TimeoutError
        with testtools.ExpectedException(
                driver_failures.Observed,
                'is not tried again yet: it was silent for 4.9 s'), \
                self.attempt():
            self.fail('it is tried')

    def test_connections_that_other_threads_use(self):
        """They are this process's own; the next call may find one."""
        engine = sa.create_engine(
            'sqlite://', poolclass=sa.pool.QueuePool, pool_size=1,
            max_overflow=0, pool_timeout=0)

        def use():
            with self.attempt(), engine.connect():
                self.now += 4.9

        with engine.connect(), testtools.ExpectedException(
                engines.NotAsked, 'was not asked: each connection that this '
                'process may open is in use'):
            use()
        use()

    def wait(self, seconds=0.0, error=None, insist=False):
        """Make an attempt that takes so long, and fails with this error."""
        with self.attempt(insist):
            self.now += seconds
            if error:
                raise error

    def test_silence_begins_a_back_off(self):
        """No attempt is made until it is over; the error has the reason."""
        for error in (OSError('timed out'),
                      exceptions.JournalUnavailable('timed out')):
            self.assertRaises(type(error), self.wait, 5.0, error)
            self.now += 29.0
            self.assertIn('timed out', str(
                self.assertRaises(driver_failures.Observed, self.wait)))
            self.now += 1.0
            self.wait()

    def test_answer_ends_it(self):
        """An attempt is made in the meantime only by a caller that insists."""
        self.assertRaises(OSError, self.wait, 5.0, OSError('timed out'))
        self.assertRaises(OSError, self.wait, 0.1, OSError('refused'), True)
        self.assertRaises(driver_failures.Observed, self.wait)
        self.wait(insist=True)
        self.wait()

    def test_too_little_time_begins_none(self):
        """No attempt is made; it says nothing about the database."""
        with deadline.within(4.0):
            self.assertRaises(engines.NotAsked, self.wait)
        self.wait()

    def test_what_begins_none(self):
        """Own lateness and locks, wherever they are noticed.

        A refusal costs a user no time; of long work, each statement was
        answered.
        """
        for seconds, error in (
                (60.0, engines.NotAsked(causes.POOL)),
                (60.0, engines.LostLock(causes.LOCKED)),
                (60.0, exceptions.JournalNotAsked('reason')),
                (60.0, exceptions.JournalLocked('reason')),
                (0.1, OSError('refused'))):
            self.assertRaises(type(error), self.wait, seconds, error)
            self.wait(60.0)
        self.wait()
