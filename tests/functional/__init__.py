# SPDX-License-Identifier: Apache-2.0
"""Tests with a real nova and a real placement in the test process."""

import gc
import importlib
import os
from typing import Any

# With Python's own threshold of 700, an eighth of the time is spent searching
# nova's modules and objects for garbage.
gc.set_threshold(20_000, 50, 100)

# Native threads. Nova decides when this module is first imported; that must
# be before futurist is imported, which would import eventlet.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
monkey_patch = importlib.import_module('nova.monkey_patch')
if hasattr(monkey_patch, 'patch'):
    # Up to nova 31, importing the module is enough.
    monkey_patch.patch()

GREEN = os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] == 'no'
"""Whether the threads of the tests are eventlet's."""


def _check_schema(schema: Any, *args: Any, **kwargs: Any) -> None:
    if _checked.get(id(schema)) is not schema:
        _check(schema, *args, **kwargs)
        _checked[id(schema)] = schema


# Not imported above, before nova's patches.
jsonschema = importlib.import_module('jsonschema')
# Placement checks its constant schemas with each request, which takes up to a
# sixth of the time of a test.
_check = jsonschema.Draft202012Validator.check_schema
_checked: dict[int, Any] = {}
jsonschema.Draft202012Validator.check_schema = staticmethod(_check_schema)

# Nova's fixtures keep each database in a file, for which oslo.db opens a
# connection per transaction. SQLite then reads the whole schema each time, a
# quarter of the time of a test.
engines = importlib.import_module('oslo_db.sqlalchemy.engines')
pool = importlib.import_module('sqlalchemy.pool')


@engines._init_connection_args.dispatch_for('sqlite')
def _keep_connections(url: Any, arguments: Any, _options: Any) -> None:
    """Pool the connections, in addition to what oslo.db does."""
    if 'nova-test-' in (url.database or ''):
        arguments.update(poolclass=pool.QueuePool, max_overflow=-1)
