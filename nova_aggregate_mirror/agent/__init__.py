# SPDX-License-Identifier: Apache-2.0
"""Daemon that drains the journal and runs periodic full syncs."""
