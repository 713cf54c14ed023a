# SPDX-License-Identifier: Apache-2.0
"""Imported into the process from which ``commands`` forks, after the programs.

Reading the entry points of all packages takes a second. Stevedore keeps them
in a file, but not for an interpreter below /tmp. The openstack client loads
all commands of all plugins each time, which takes more than its own work.
"""

import importlib.metadata

from stevedore import extension

for group in importlib.metadata.entry_points().groups:
    if group.startswith(('nova_aggregate_mirror.', 'openstack.')):
        extension.ExtensionManager(group)
