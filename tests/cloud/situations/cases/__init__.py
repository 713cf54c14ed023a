# SPDX-License-Identifier: Apache-2.0
"""The situations of the table, a module for each kind of reason."""
