# SPDX-License-Identifier: Apache-2.0
"""Tests with older nova releases, and the packages of these releases."""
