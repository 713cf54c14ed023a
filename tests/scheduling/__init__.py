# SPDX-License-Identifier: Apache-2.0
"""Hosts, aggregates and requests, and the verdicts of nova's own filters."""
