# SPDX-License-Identifier: Apache-2.0
"""Outages of each dependency, on small clouds."""
