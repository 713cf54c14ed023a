# SPDX-License-Identifier: Apache-2.0
"""Deadlines and back-off of calls to other services."""
