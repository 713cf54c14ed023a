# SPDX-License-Identifier: Apache-2.0
"""Imported into the process from which ``commands`` forks, after the programs.

Reading the entry points of all packages takes a second. Stevedore keeps them
in a file, but not for an interpreter below /tmp.
"""

from stevedore import extension

extension.ExtensionManager('nova_aggregate_mirror.hooks')
