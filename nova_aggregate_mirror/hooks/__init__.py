# SPDX-License-Identifier: Apache-2.0
"""Hooks around nova's aggregate operations in nova-api."""
