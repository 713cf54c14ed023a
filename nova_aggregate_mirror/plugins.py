# SPDX-License-Identifier: Apache-2.0
"""Stevedore plugins that an option names, in its order."""

from collections import abc
from typing import Any

from oslo_config import cfg
from stevedore import named

from nova_aggregate_mirror import exceptions


def load(namespace: str, option: str, names: abc.Iterable[str],
         conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Load the plugins that an option names, each with nova's configuration.

    :param option: the option with the names, as in ``[group] option``
    :raises InvalidConfiguration: when a name is unknown or cannot be loaded
    :raises MirrorError: raised by a plugin that refuses to start; passed on
    """
    def fail(manager: Any, entry_point: Any, exc: BaseException) -> None:
        if isinstance(exc, exceptions.MirrorError):
            raise exc
        raise exceptions.InvalidConfiguration(
            '%s: %s could not be loaded: %s'
            % (option, entry_point.name, exc)) from exc

    def missing(unknown: Any) -> None:
        raise exceptions.InvalidConfiguration(
            '%s: no entry point in %s is named "%s"'
            % (option, namespace, ', '.join(sorted(unknown))))

    manager = named.NamedExtensionManager(
        namespace, list(dict.fromkeys(names)), invoke_on_load=True,
        invoke_args=(conf,), name_order=True, on_load_failure_callback=fail,
        on_missing_entrypoints_callback=missing)
    return {extension.name: extension.obj for extension in manager}
