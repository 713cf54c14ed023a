# SPDX-License-Identifier: Apache-2.0
"""Faults of each party or part of a nova, at each moment, and their effect."""
