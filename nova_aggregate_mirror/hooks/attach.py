# SPDX-License-Identifier: Apache-2.0
"""Attachment of the hooks to nova's operations, after a check of nova."""

from collections import abc
import contextvars
import dataclasses
import functools
import inspect
import types
from typing import Any

from nova.compute import api as compute_api
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_config import cfg
from oslo_log import log as logging

import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror import nova_signatures
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror import plugins

LOG = logging.getLogger(__name__)
NAMESPACE = 'nova_aggregate_mirror.hooks'
PARAMETERS = {
    'add_host_to_aggregate': ['self', 'context', 'aggregate_id', 'host_name'],
    'remove_host_from_aggregate': ['self', 'context', 'aggregate_id',
                                   'host_name'],
    'delete_aggregate': ['self', 'context', 'aggregate_id'],
}
# What nova's methods call of its report client. Only these calls are muted: if
# there was another one, nova and the hook would both write to placement.
MIRRORING = {'add_host_to_aggregate': 'aggregate_add_host',
             'remove_host_from_aggregate': 'aggregate_remove_host'}
COLUMNS = {
    api_models.Aggregate: ('id', 'uuid', 'name'),
    api_models.AggregateHost: ('host', 'aggregate_id'),
    api_models.AggregateMetadata: ('aggregate_id', 'key', 'value'),
    api_models.CellMapping: ('id', 'uuid', 'name', 'database_connection'),
    api_models.HostMapping: ('host', 'cell_id'),
    main_models.ComputeNode: ('uuid', 'host', 'deleted'),
}
_NO_OP_CLIENT = types.SimpleNamespace(**dict.fromkeys(
    MIRRORING.values(), lambda *_args, **_kwargs: None))
"""Substitute for nova's report client: its calls do nothing."""
_muted: contextvars.ContextVar[bool] = contextvars.ContextVar(
    'nova_aggregate_mirror_muted', default=False)


def check_nova() -> None:
    """Check the installed nova against the internals relied on.

    :raises UnexpectedNova: lists all differences
    """
    api = compute_api.AggregateAPI
    differences = []
    if not isinstance(inspect.getattr_static(api, 'placement_client', None),
                      property):
        differences.append('AggregateAPI.placement_client is not a property')
    for name, call in MIRRORING.items():
        method = inspect.unwrap(getattr(api, name, lambda: None))
        if not {'placement_client', call} <= set(method.__code__.co_names):
            differences.append('AggregateAPI.%s does not call '
                               'placement_client.%s' % (name, call))
    for model, columns in COLUMNS.items():
        differences += ['%s has no column %s' % (model.__name__, column)
                        for column in columns if not hasattr(model, column)]
    nova_signatures.check({api: PARAMETERS}, differences)


def load(conf: cfg.ConfigOpts) -> list[hooks.Hook]:
    """Load the hooks that ``[aggregate_mirror] hooks`` names, in order."""
    loaded = plugins.load(NAMESPACE, '[aggregate_mirror] hooks',
                          conf.aggregate_mirror.hooks, conf)
    for name, hook in loaded.items():
        if not isinstance(hook, hooks.Hook):
            raise exceptions.InvalidConfiguration(
                '[aggregate_mirror] hooks: %s is not a hook' % name)
    return list(loaded.values())


def install(conf: cfg.ConfigOpts) -> None:
    """Wrap nova's aggregate operations in the configured hooks; idempotent.

    The methods are wrapped on the class, so that every ``AggregateAPI`` of
    this process has the hooks. When an exception is raised, nova is unchanged.

    :raises UnexpectedNova: when nova's internals are not supported
    :raises InvalidConfiguration: for an invalid option or hook
    :raises MissingCredentials: when ``missing_credentials = fail``
    """
    api = compute_api.AggregateAPI
    if isinstance(vars(api).get('placement_client'), _ClientProperty):
        return
    option_values.check(conf)
    check_nova()
    loaded = load(conf)
    may_mute = not nova_aggregate_mirror.conf.observes(conf)
    for name in PARAMETERS:
        setattr(api, name, _wrap(getattr(api, name), loaded, may_mute))
    api.placement_client = _ClientProperty(api.placement_client.fget)
    LOG.info('Attached to nova\'s aggregate operations, hooks: %s%s',
             ', '.join(conf.aggregate_mirror.hooks), '' if may_mute else
             '; [aggregate_mirror] mode is observe, so that nova mirrors')


class _ClientProperty(property):
    """``AggregateAPI.placement_client``, muted only inside wrapped calls."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # Nova's property creates its report client, which may raise while
        # placement is unavailable: a wrapped call must not begin with that.
        if instance is not None and _muted.get():
            return _NO_OP_CLIENT
        return super().__get__(instance, owner)


def _wrap(method: abc.Callable[..., Any], loaded: list[hooks.Hook],
          may_mute: bool) -> abc.Callable[..., Any]:
    """Return ``method`` with hooks around it; its answer is unchanged."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def wrapped(api: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(api, context, *args, **kwargs)
        operation = hooks.Operation(
            method.__name__, bound.arguments['aggregate_id'],
            host=bound.arguments.get('host_name', ''),
            request_id=getattr(context, 'global_id', None) or '',
            nova_request_id=getattr(context, 'request_id', None) or '')
        states = [(hook, *_attempt(hook.before, operation)) for hook in loaded]
        replacements = (hook.replaces_mirroring
                        for hook, succeeded, _state in states if succeeded)
        token = _muted.set(may_mute and any(replacements))
        answer = None
        errors: list[BaseException] = []
        try:
            answer = method(*bound.args, **bound.kwargs)
        except BaseException as exc:
            # Raised after the hooks ran: in this block, oslo.log would append
            # it to every message that they log.
            errors.append(exc)
            operation = dataclasses.replace(
                operation, raised=type(exc).__name__)
        finally:
            _muted.reset(token)
        for hook, succeeded, state in reversed(states):
            if succeeded:
                _attempt(hook.after, operation, state)
        if errors:
            # Not kept here, because its traceback refers to this frame.
            raise errors.pop()
        return answer

    return wrapped


def _attempt(call: abc.Callable[..., Any], operation: hooks.Operation,
             *state: Any) -> tuple[bool, Any]:
    """Call a method of a hook; return whether it succeeded, and its value."""
    try:
        return True, call(operation, *state)
    except Exception:
        # An error of a hook must not affect the user's operation.
        LOG.exception('Hook failed around %s of aggregate %s, host %s '
                      '(request %s)', operation.method, operation.aggregate_id,
                      operation.host or '-', operation.request_id)
        return False, None
