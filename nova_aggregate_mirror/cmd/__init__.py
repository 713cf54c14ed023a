# SPDX-License-Identifier: Apache-2.0
"""The commands: argument parsing and printing only."""
