# SPDX-License-Identifier: Apache-2.0
"""Objects of the entry points that an option names, in its order."""

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from stevedore import named

from nova_aggregate_mirror import exceptions


def load(namespace: str, option: str, names: Iterable[str],
         conf: cfg.ConfigOpts) -> list[Any]:
    """Make the objects, each with nova's configuration; one per name.

    :param option: where the names come from, as in ``[group] option``
    :raises InvalidConfiguration: when one is unknown or cannot be loaded
    :raises MirrorError: what one refuses to start with, as it is
    """
    def fail(manager: Any, entry_point: Any, exc: BaseException) -> None:
        if isinstance(exc, exceptions.MirrorError):
            raise exc
        raise exceptions.InvalidConfiguration(
            '%s: %s could not be loaded: %s'
            % (option, entry_point.name, exc)) from exc

    def missing(unknown: Any) -> None:
        raise exceptions.InvalidConfiguration(
            '%s: no entry point in %s is named %s'
            % (option, namespace, ', '.join(sorted(unknown))))

    manager = named.NamedExtensionManager(
        namespace, list(dict.fromkeys(names)), invoke_on_load=True,
        invoke_args=(conf,), name_order=True, on_load_failure_callback=fail,
        on_missing_entrypoints_callback=missing)
    return [extension.obj for extension in manager]
