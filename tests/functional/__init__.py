# SPDX-License-Identifier: Apache-2.0
"""Tests over a real nova and a real placement in this process."""

import importlib
import os

# Native threads: nova decides when this module is first imported, and that
# must be before futurist is, which would import eventlet.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
monkey_patch = importlib.import_module('nova.monkey_patch')
if hasattr(monkey_patch, 'patch'):
    # Up to nova 31 the import is all.
    monkey_patch.patch()

GREEN = os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] == 'no'
"""Whether the threads of the tests are eventlet's."""
