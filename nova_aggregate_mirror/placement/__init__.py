# SPDX-License-Identifier: Apache-2.0
"""Placement client: reads, and a write guarded by the generation."""
