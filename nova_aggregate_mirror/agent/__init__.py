# SPDX-License-Identifier: Apache-2.0
"""Daemon that drains the journal and runs periodic full syncs."""

DIRECTIONS = ('missing', 'stale')
"""Of a difference: nova has the association, or only placement has it."""
