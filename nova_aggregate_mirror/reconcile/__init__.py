# SPDX-License-Identifier: Apache-2.0
"""Comparison of nova with placement, and repair of the differences."""
