# SPDX-License-Identifier: Apache-2.0
"""The full cloud of tools/cloud: real processes of every common service."""
