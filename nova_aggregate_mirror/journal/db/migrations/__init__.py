# SPDX-License-Identifier: Apache-2.0
"""The alembic environment of the journal's database."""
