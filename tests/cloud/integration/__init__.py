# SPDX-License-Identifier: Apache-2.0
"""Tests on the full cloud, and of the tools that run it."""
