# SPDX-License-Identifier: Apache-2.0
"""The full cloud of tools/cloud: every service that people run, for real."""
