# SPDX-License-Identifier: Apache-2.0
"""The commands: argument parsing and printing only."""

import warnings

# Libraries of nova's import eventlet, which says so on every terminal; an
# operator who runs a command can do nothing about it.
warnings.filterwarnings('ignore', message='\\s*Eventlet is deprecated')
