# SPDX-License-Identifier: Apache-2.0
"""Console scripts: argument parsing and printing only."""

import warnings

# Nova and its libraries may import eventlet or pkg_resources. Their
# deprecation warnings are of no use to an operator who runs a command.
warnings.filterwarnings(
    'ignore', message='\\s*(Eventlet|pkg_resources) is deprecated')
