# SPDX-License-Identifier: Apache-2.0
"""The commands: argument parsing and printing only."""

import warnings

# Nova and its libraries may import eventlet or pkg_resources, which say so on
# every terminal; an operator who runs a command can do nothing about it.
warnings.filterwarnings('ignore', message='\\s*Eventlet is deprecated')
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
