# SPDX-License-Identifier: Apache-2.0
"""Imported into the process from which ``commands`` forks, after the programs.

Reading the entry points of all packages takes a second. Stevedore keeps them
in a file, but not for an interpreter below /tmp. The openstack client loads
all commands of all plugins each time, which takes more than its own work; a
command that reads nova's objects imports each class of them.
"""

import importlib.metadata

from keystoneauth1 import loading
from nova import objects
from stevedore import extension

loading.get_available_plugin_loaders()
objects.register_all()

for group in importlib.metadata.entry_points().groups:
    if group.startswith(('nova_aggregate_mirror.', 'openstack.')):
        extension.ExtensionManager(group)
