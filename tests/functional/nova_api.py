# SPDX-License-Identifier: Apache-2.0
"""A nova-api process started as a WSGI server starts it, and its faults.

Reads JSON: the FAULTS to inject before the start, with their arguments, and
the requests. Writes the status of each response, unless nova-api does not
start.
"""

import builtins
from collections import abc
import functools
import importlib
import importlib.util
import json
import sys
from typing import Any

# The headers that keystonemiddleware sets for an administrator's token.
ADMINISTRATOR = {'X-User-Id': 'admin', 'X-Project-Id': 'admin',
                 'X-Roles': 'admin', 'OpenStack-API-Version': 'compute 2.96'}


class _Broken:
    """A finder that raises an error when its module is imported."""

    def __init__(self, module: str, error: str) -> None:
        self._module = module
        self._error = getattr(builtins, error)

    def find_spec(self, name: str, *_: Any) -> None:
        if name == self._module:
            raise self._error('%s is broken' % name)


def broken_import(module: str, error: str) -> None:
    """Make the import of a module raise a built-in exception."""
    sys.meta_path.insert(0, _Broken(module, error))  # type: ignore[arg-type]


def _patch() -> None:
    # As the entry point does first; up to nova 31 the import is enough.
    monkey_patch = importlib.import_module('nova.monkey_patch')
    if hasattr(monkey_patch, 'patch'):
        monkey_patch.patch()


def plugins_first() -> None:
    """Load plugins before nova.conf is read, as the entry of nova 29 does."""
    _patch()
    importlib.import_module('nova.api.openstack.compute')


def _aggregate_api() -> Any:
    _patch()
    return importlib.import_module('nova.compute.api').AggregateAPI


def renamed_parameter() -> None:
    """Rename a parameter of nova's add-host method."""
    api = _aggregate_api()
    stock = api.add_host_to_aggregate

    def add_host_to_aggregate(self: Any, context: Any, aggregate_id: int,
                              host: str) -> Any:
        return stock(self, context, aggregate_id, host)

    api.add_host_to_aggregate = add_host_to_aggregate


def cached_client() -> None:
    """Replace the placement client property with a cached property."""
    api = _aggregate_api()
    cached = functools.cached_property(api.placement_client.fget)
    cached.__set_name__(api, 'placement_client')
    api.placement_client = cached


def hidden_entry_point() -> None:
    """Hide this package's entry point from nova."""
    extension = importlib.import_module('stevedore.extension')
    found = extension.ExtensionManager.list_entry_points

    def list_entry_points(self: Any) -> list:
        return [one for one in found(self)
                if one.value != 'nova_aggregate_mirror.nova_plugin']

    extension.ExtensionManager.list_entry_points = list_entry_points


FAULTS: dict[str, abc.Callable[..., None]] = {
    fault.__name__: fault for fault in (
        broken_import, plugins_first, renamed_parameter, cached_client,
        hidden_entry_point)}


def _start() -> Any:
    if importlib.util.find_spec('nova.wsgi').submodule_search_locations:
        return importlib.import_module('nova.wsgi.osapi_compute').application
    # In nova 29 the entry point is a script that calls this.
    return importlib.import_module(
        'nova.api.openstack.compute.wsgi').init_application()


def main() -> None:
    """Start nova-api with its faults, and send the requests."""
    wanted = json.load(sys.stdin)
    for name, *arguments in wanted['faults']:
        FAULTS[name](*arguments)
    application = _start()
    webob = importlib.import_module('webob')
    statuses = []
    for method, path, body in wanted['requests']:
        request = webob.Request.blank(
            '/v2.1' + path, method=method, headers=ADMINISTRATOR,
            content_type='application/json', **{'json': body} if body else {})
        statuses.append(request.get_response(application).status_code)
    json.dump(statuses, sys.stdout)


if __name__ == '__main__':
    main()
