# SPDX-License-Identifier: Apache-2.0
"""Migrations: one module per version of the journal's tables."""
