# SPDX-License-Identifier: Apache-2.0
"""The wrapping of nova's operations, and the check of nova's internals."""

import logging
import sys
import types

import fixtures
from nova.compute import api as compute_api
from nova import context as nova_context
from nova import exception as nova_exception
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror.hooks import attach
from tests.unit import doubles

API = 'nova.compute.api.AggregateAPI'


class StandIn:
    """A hook that logs its calls, and fails where configured."""

    replaces_mirroring = True

    def __init__(self, log, name='hook', fails_in=()):
        self.log = log
        self.name = name
        self.fails_in = fails_in

    def before(self, operation):
        self._note('before', operation)
        return 'kept by ' + self.name

    def after(self, operation, kept):
        self.log.append(kept)
        self._note('after', operation)

    def _note(self, when, operation):
        self.log.append('%s %s' % (self.name, when))
        self.operation = operation
        self.handled = sys.exception()
        if when in self.fails_in:
            raise RuntimeError('%s %s' % (self.name, when))


class HooksTest(testtools.TestCase):
    """Hooks installed as entry points, and an unmodified nova."""

    def setUp(self):
        super().setUp()
        self.log = []
        self.conf = doubles.make_conf(self)
        self.messages = self.useFixture(
            fixtures.FakeLogger('nova_aggregate_mirror', level=logging.INFO))
        self.entry_points = []
        self.useFixture(fixtures.MonkeyPatch(
            'stevedore.extension.ExtensionManager.list_entry_points',
            lambda manager: self.entry_points))

    def offer(self, name, made):
        self.entry_points.append(types.SimpleNamespace(
            group=attach.NAMESPACE, name=name, value=name, module_name=name,
            attr=name, load=lambda: made))

    def configure(self, *names):
        self.conf.set_override('hooks', list(names), 'aggregate_mirror')


class TestLoad(HooksTest):

    def test_order_is_as_configured(self):
        """The hook named first runs first."""
        for name in ('a', 'b', 'c'):
            self.offer(name, lambda conf, name=name: StandIn(conf, name))
        self.configure('c', 'a')
        self.assertEqual([('c', self.conf), ('a', self.conf)], [
            (hook.name, hook.log) for hook in attach.load(self.conf)])

    def test_hook_that_cannot_be_used(self):
        """A typing error does not silently omit a hook.

        The refusal of a hook lets nova-api stop for missing credentials.
        """
        def refuse(conf):
            raise exceptions.MissingCredentials('no auth_type')

        self.offer('divides', lambda conf: 1 / 0)
        self.offer('refuses', refuse)
        option = '[aggregate_mirror] hooks: '
        for name, error, text in (
                ('typo', exceptions.InvalidConfiguration, option + 'no entry '
                 'point in nova_aggregate_mirror.hooks is named "typo"'),
                ('divides', exceptions.InvalidConfiguration, option +
                 'divides could not be loaded: division by zero'),
                ('refuses', exceptions.MissingCredentials, 'no auth_type')):
            self.configure(name)
            self.assertEqual(text, str(self.assertRaises(
                error, attach.load, self.conf)))

    def test_hook_without_a_part(self):
        """It is refused at load: no user gets its AttributeError."""
        names = {'before', 'after', 'replaces_mirroring'}
        for part in names:
            half = types.SimpleNamespace(**dict.fromkeys(names - {part}))
            self.entry_points.clear()
            self.offer('half', lambda conf, half=half: half)
            self.configure('half')
            self.assertIn('hooks: half is not a hook', str(self.assertRaises(
                exceptions.InvalidConfiguration, attach.load, self.conf)))

    def test_nova_without_the_property(self):
        """One clear error, whatever nova has in its place."""
        self.useFixture(fixtures.MonkeyPatch(API, type('AggregateAPI', (), {
            name: getattr(compute_api.AggregateAPI, name)
            for name in attach.PARAMETERS})))
        self.assertRaises(exceptions.UnexpectedNova, attach.install, self.conf)


class InstalledTest(HooksTest):
    """Two hooks around nova methods that only log their calls."""

    mode = conf.MIRROR

    def setUp(self):
        super().setUp()
        # A subclass, so that the hooks are removed after the test.
        self.api = type('AggregateAPI', (compute_api.AggregateAPI,), {})
        self.useFixture(fixtures.MonkeyPatch(API, self.api))
        # The methods below would not pass the check.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.hooks.attach.check_nova', lambda: None))
        self.error = None
        self.client = object()
        self.constructed = []
        test = self

        def add_host_to_aggregate(self, context, aggregate_id, host_name):
            test.log.append('nova')
            test.seen = (aggregate_id, host_name, self.placement_client)
            if test.error:
                raise test.error
            return 'answer'

        def placement_client(self):
            test.constructed.append(self)
            return test.client

        self.api.add_host_to_aggregate = add_host_to_aggregate
        self.api.placement_client = property(placement_client)
        self.first = StandIn(self.log, 'first')
        self.second = StandIn(self.log, 'second')
        self.offer('first', lambda conf: self.first)
        self.offer('second', lambda conf: self.second)
        self.configure('first', 'second')
        self.conf.set_override('mode', self.mode, 'aggregate_mirror')
        attach.install(self.conf)
        self.context = nova_context.RequestContext(
            is_admin=True, global_request_id='req-global')

    def add(self, *args, **kwargs):
        # Without __init__, which prepares RPC.
        return self.api.__new__(self.api).add_host_to_aggregate(
            *args, **kwargs)

    def muted(self):
        """Return whether nova's own mirroring was muted in the last call."""
        return self.seen[2] is not self.client


class TestWrapped(InstalledTest):

    def test_hooks_enclose_nova(self):
        """The first configured hook is outermost; each gets its own state."""
        self.assertEqual('answer', self.add(self.context, 7, 'h1'))
        self.assertEqual(
            ['first before', 'second before', 'nova',
             'kept by second', 'second after',
             'kept by first', 'first after'], self.log)

    def test_arguments_are_taken_as_nova_takes_them(self):
        """Arguments may be given by position, by name, or both."""
        expected = hooks.Operation(
            method='add_host_to_aggregate', aggregate_id=7, host='h1',
            request_id='req-global', nova_request_id=self.context.request_id)
        for args, kwargs in (
                ((self.context, 7, 'h1'), {}),
                ((self.context, 7), {'host_name': 'h1'}),
                ((self.context,), {'host_name': 'h1', 'aggregate_id': 7})):
            self.add(*args, **kwargs)
            self.assertEqual((7, 'h1'), self.seen[:2])
            self.assertEqual(expected, self.first.operation)

    def test_wrong_arguments_are_an_error_as_in_nova(self):
        """Nothing is recorded for a call that nova would reject."""
        self.assertRaises(TypeError, self.add, self.context, host='h1')
        self.assertEqual([], self.log)

    def test_error_of_nova_reaches_the_user(self):
        """The hooks still converge: nova may have changed its database.

        This includes non-Exceptions, such as eventlet's timeout.
        """
        for self.error in (nova_exception.AggregateNotFound(aggregate_id=7),
                           KeyboardInterrupt()):
            self.log.clear()
            self.assertIs(self.error, self.assertRaises(
                type(self.error), self.add, self.context, 7, 'h1'))
            self.assertEqual(['second after', 'first after'], self.log[4::2])
            self.assertEqual(type(self.error).__name__,
                             self.first.operation.raised)
            # Nova's log format adds the exception that is handled.
            self.assertIsNone(self.first.handled)

    def test_failure_before_leaves_nova_alone(self):
        """Nova mirrors by itself when no hook does.

        A broken hook does not disable the other hooks.
        """
        self.first.fails_in = ('before',)
        self.assertEqual('answer', self.add(self.context, 7, 'h1'))
        self.assertTrue(self.muted())
        self.assertEqual('second after', self.log.pop())
        self.log.clear()
        self.second.fails_in = ('before',)
        self.assertEqual('answer', self.add(self.context, 7, 'h1'))
        self.assertFalse(self.muted())
        self.assertEqual(['first before', 'second before', 'nova'], self.log)
        self.assertIn('Hook failed around add_host_to_aggregate of aggregate '
                      '7, host h1 (request req-global)', self.messages.output)

    def test_failure_after_never_reaches_the_user(self):
        """The response is nova's, and the other hook still runs."""
        self.second.fails_in = ('after',)
        self.assertEqual('answer', self.add(self.context, 7, 'h1'))
        self.assertEqual('first after', self.log[-1])
        self.assertIn('RuntimeError: second after', self.messages.output)

    def client_outside(self):
        return self.api.__new__(self.api).placement_client

    def test_client_outside_is_nova_s(self):
        """Before a call, after it, and after one that fails.

        Inside, none is made: that may raise while placement is down.
        """
        self.assertIs(self.client, self.client_outside())
        self.constructed.clear()
        self.add(self.context, 7, 'h1')
        self.assertTrue(self.muted())
        self.assertEqual([], self.constructed)
        self.assertIs(self.client, self.client_outside())
        self.error = nova_exception.AggregateNotFound(aggregate_id=7)
        self.assertRaises(nova_exception.AggregateNotFound,
                          self.add, self.context, 7, 'h1')
        self.assertIs(self.client, self.client_outside())

    def test_hook_that_only_watches_mutes_nothing(self):
        """Nova mirrors unless a hook declares that it does."""
        self.first.replaces_mirroring = False
        self.second.replaces_mirroring = False
        self.add(self.context, 7, 'h1')
        self.assertFalse(self.muted())


class TestObserving(InstalledTest):

    mode = conf.OBSERVE

    def test_nova_mirrors(self):
        """Whatever a hook declares."""
        self.add(self.context, 7, 'h1')
        self.assertFalse(self.muted())
        self.assertEqual(
            'Attached to nova\'s aggregate operations, hooks: first, second; '
            '[aggregate_mirror] mode is observe, so that nova mirrors\n',
            self.messages.output)


class TestInstall(InstalledTest):

    def test_second_time_changes_nothing(self):
        """An entry point and a paste filter may both install the hooks."""
        before = dict(vars(self.api))
        attach.install(self.conf)
        self.assertEqual(before, dict(vars(self.api)))

    def uninstalled(self):
        api = type('AggregateAPI', (compute_api.AggregateAPI,), {
            'placement_client': property(lambda api: self.client)})
        self.useFixture(fixtures.MonkeyPatch(API, api))
        return api, dict(vars(api))

    def test_unknown_hook_leaves_nova_alone(self):
        """Nothing is partly installed."""
        api, before = self.uninstalled()
        self.configure('first', 'nonsense')
        self.assertRaises(exceptions.InvalidConfiguration,
                          attach.install, self.conf)
        self.assertEqual(before, dict(vars(api)))

    def test_nonsense_in_an_option_leaves_nova_alone(self):
        """Each invalid option is named, and nova can still read it."""
        api, before = self.uninstalled()
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as output:
            output.write('[aggregate_mirror]\ninline_timeout = soon\n'
                         '[aggregate_mirror_database]\nmax_retries = many\n')
        self.conf([], default_config_files=[path], default_config_dirs=[])
        error = self.assertRaises(exceptions.InvalidConfiguration,
                                  attach.install, self.conf)
        self.assertIn('[aggregate_mirror] inline_timeout in ', str(error))
        self.assertIn(
            '[aggregate_mirror_database] max_retries in ', str(error))
        self.assertEqual(before, dict(vars(api)))
        self.conf.log_opt_values(logging.getLogger(__name__), logging.DEBUG)


class TestCheckNova(testtools.TestCase):

    def patch(self, name, value):
        self.useFixture(fixtures.MonkeyPatch(name, value))

    def differences(self):
        error = self.assertRaises(exceptions.UnexpectedNova, attach.check_nova)
        return str(error).split('; ')

    def test_installed_nova_is_known(self):
        """Every nova under test meets the requirements."""
        attach.check_nova()

    def test_methods_that_differ(self):
        """Arguments by position and name mean another thing.

        Or mirroring bypasses the muted client.
        """
        def delete_aggregate(self, context, aggregate):
            pass

        def add_host_to_aggregate(self, context, aggregate_id, host_name):
            self.placement_client.aggregate_add_hosts(context, [host_name])

        for method, text in (
                (delete_aggregate, 'takes (self, context, aggregate) instead '
                 'of (self, context, aggregate_id)'),
                (add_host_to_aggregate, 'does not call '
                 'placement_client.aggregate_add_host')):
            # MonkeyPatch would keep the signature of the replaced method.
            with fixtures.MonkeyPatch(API, type(
                    'AggregateAPI', (compute_api.AggregateAPI,),
                    {method.__name__: method})):
                self.assertEqual(['AggregateAPI.%s %s' % (
                    method.__name__, text)], self.differences())

    def test_everything_is_said_at_once(self):
        """All differences are reported at once.

        Our queries use the columns.
        """
        self.patch('nova_aggregate_mirror.hooks.attach.COLUMNS',
                   {type(self): ('patch', 'uuid')})
        self.patch(API + '.delete_aggregate', fixtures.MonkeyPatch.delete)
        self.patch(API + '.placement_client', None)
        self.assertEqual({
            'AggregateAPI has no delete_aggregate',
            'AggregateAPI.placement_client is not a property',
            'TestCheckNova has no column uuid'}, {*self.differences()})
