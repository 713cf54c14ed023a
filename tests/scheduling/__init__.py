# SPDX-License-Identifier: Apache-2.0
"""Hosts, aggregates and requests, and what nova's own filters say of them."""
