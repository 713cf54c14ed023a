# SPDX-License-Identifier: Apache-2.0
"""Nova-api processes started as a WSGI server starts it, and their faults.

This process imports the modules that its arguments name, and forks a nova-api
for each line of JSON, which has the FAULTS to inject before the start, with
their arguments, the requests to send, the variables and the files of the
output. The statuses of the responses are written to standard output, unless
nova-api does not start.
"""

import builtins
from collections import abc
import functools
import importlib
import importlib.util
import json
import os
import socket
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


def serve(faults: abc.Iterable[abc.Sequence[str]],
          requests: abc.Iterable[abc.Sequence[Any]]) -> None:
    """Start nova-api with its faults, and send the requests."""
    for name, *arguments in faults:
        FAULTS[name](*arguments)
    application = _start()
    webob = importlib.import_module('webob')
    statuses = []
    for method, path, body in requests:
        request = webob.Request.blank(
            '/v2.1' + path, method=method, headers=ADMINISTRATOR,
            content_type='application/json', **{'json': body} if body else {})
        statuses.append(request.get_response(application).status_code)
    json.dump(statuses, sys.stdout)


def _run(faults: abc.Iterable[abc.Sequence[str]],
         requests: abc.Iterable[abc.Sequence[Any]],
         environment: abc.Mapping[str, str],
         outputs: abc.Iterable[str]) -> None:
    os.environ.update(environment)
    for descriptor, path in enumerate((os.devnull, *outputs)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
    serve(faults, requests)


def main() -> None:
    """Fork a nova-api for each line of JSON; answer with its exit status."""
    preloaded = sys.argv[1:]
    # Nova-api reads sys.argv.
    del sys.argv[1:]
    if preloaded:
        _patch()
    for name in preloaded:
        importlib.import_module(name)
    # A fork replaces this descriptor.
    with socket.socket(fileno=sys.stdin.fileno()) as there:
        lines, answers = there.makefile('r'), there.makefile('w')
        for line in lines:
            pid = os.fork()
            if not pid:
                # This ends the fork: nothing above catches SystemExit.
                sys.exit(_run(*json.loads(line)))
            _pid, status = os.waitpid(pid, 0)
            answers.write('%d\n' % os.waitstatus_to_exitcode(status))
            answers.flush()


if __name__ == '__main__':
    main()
