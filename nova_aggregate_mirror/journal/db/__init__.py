# SPDX-License-Identifier: Apache-2.0
"""The journal's database: engine, tables, statements, migrations."""
