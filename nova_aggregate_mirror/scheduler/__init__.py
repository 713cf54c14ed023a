# SPDX-License-Identifier: Apache-2.0
"""Aggregate isolation in nova-scheduler: request filters and the guard."""
