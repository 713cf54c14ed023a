# SPDX-License-Identifier: Apache-2.0
"""Runs of one of nova's host filters, with what it logs."""

from collections import abc
import contextlib
import logging
import re
from typing import Any

from nova.objects import instance_pci_requests
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.scheduler import filters

# Of nova's databases and configuration: no plugin is at fault.
NO_PLUGIN_FAILURES = (
    exceptions.MirrorError, *engines.LIBRARY_ERRORS, cfg.Error)

# A pattern for each host would be compiled for each host.
_NAME = re.compile(r'([\w.-]+)')

NOVA_FILTERS = 'nova.scheduler.filters'


def reason(exc: Exception) -> str:
    """Return the class and the text of an exception, without a traceback."""
    # Oslo.utils appends one to its text about a class that does not exist.
    text, _bracket, _traceback = str(exc).partition(" (['Traceback")
    text = errors.without_secrets(' '.join(text.split()))
    return '%s: %s' % (type(exc).__name__, text)


@contextlib.contextmanager
def failures_of(plugin: Any) -> abc.Iterator[None]:
    """Raise Refusal if a filter or weigher fails by a fault of its own."""
    try:
        yield
    except NO_PLUGIN_FAILURES:
        raise
    except Exception as exc:  # It may be the operator's own code.
        name = type(plugin).__name__
        raise reasons.refusal(
            'plugin_failed', name, module=type(plugin).__module__,
            reason='%s raises %s' % (name, reason(exc))) from exc


class _Messages(logging.Handler):
    """Keeps the last log record about each host state."""

    def __init__(self, states: abc.Iterable[host_manager.HostState]) -> None:
        super().__init__(logging.DEBUG)
        self._last: dict[str, logging.LogRecord] = {}
        self._states: dict[Any, list[host_manager.HostState]] = {}
        for state in states:
            for key in (id(state), state.host):
                self._states.setdefault(key, []).append(state)

    def emit(self, record: logging.LogRecord) -> None:
        args: Any = record.args or ()
        if isinstance(args, abc.Mapping):
            record.args = args = {
                name: _readable(arg) for name, arg in args.items()}
            args = [*args.values()]
        states: list[Any] = []
        for arg in args:
            key = arg if isinstance(arg, str) else id(arg)
            states += self._states.get(key, ())
        # A host may have several nodes.
        nodes = [state for state in states if state.nodename in args]
        for state in nodes or states:
            self._last[state.uuid] = record

    def last_message(self, state: host_manager.HostState) -> str:
        """Return the last message about a host state; empty without one.

        The host has no name in it, so that hosts in one state are alike.
        """
        if state.uuid not in self._last:
            return ''
        message = self._last[state.uuid].getMessage()
        parts = _NAME.split(message.replace(str(state), state.host))
        return ''.join(explanation.HOST if part == state.host else part
                       for part in parts)


def _readable(arg: Any) -> Any:
    """Return requests of PCI devices as their numbers and aliases."""
    if not isinstance(arg, instance_pci_requests.InstancePCIRequests):
        return arg
    texts = []
    for request in arg.requests:
        # Those of ports have no alias.
        name = request.alias_name or 'for port %s' % request.requester_id
        texts.append('%d %s' % (request.count, name))
    return ', '.join(texts)


def run(handler: Any, host_filter: Any, states: list[Any], spec: Any,
        named: abc.Iterable[Any]) -> tuple[facts.FilterRun, list[Any]]:
    """Run a filter; return what it rejects and logs, and what passes.

    :param named: hosts to run it for, whatever other filters say
    """
    uuids = {state.uuid for state in states}
    others = [state for state in named if state.uuid not in uuids]
    if isinstance(host_filter, nova_filters.CandidateFilterMixin):
        # Only a candidate passes these.
        others = [state for state in others if state.allocation_candidates]
    with listening([*states, *others]) as messages:
        with failures_of(host_filter):
            passed = list(handler.get_filtered_objects(
                [host_filter], states, spec) or [])
        # Nova does not call it for others, and no failure for them counts.
        passing = others
        with contextlib.suppress(facts.Refusal), failures_of(host_filter):
            passing = list(host_filter.filter_all(others, spec) or ())
    uuids = {state.uuid for state in [*passed, *passing]}
    rejected = [state for state in [*states, *others]
                if state.uuid not in uuids]
    broken_rules: frozenset[str] = frozenset()
    if isinstance(host_filter, filters.AggregateMembershipFilter):
        broken_rules = frozenset(
            state.uuid for state, subjects
            in host_filter.broken_rules(rejected, spec) if subjects)
    return facts.FilterRun(
        type(host_filter).__name__,
        {state.uuid: messages.last_message(state) for state in rejected},
        broken_rules, type(host_filter).__module__), passed


@contextlib.contextmanager
def listening(states: abc.Sequence[host_manager.HostState]
              ) -> abc.Iterator[_Messages]:
    """Receive what the filters log, whatever the log level is."""
    messages = _Messages(states)
    with contextlib.ExitStack() as stack:
        for name in (NOVA_FILTERS, filters.__name__):
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            stack.callback(setattr, logger, 'propagate', logger.propagate)
            stack.callback(logger.removeHandler, messages)
            logger.addHandler(messages)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
        yield messages
