# SPDX-License-Identifier: Apache-2.0
"""The journal's database: its tables, and their migrations."""
