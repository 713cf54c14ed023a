# SPDX-License-Identifier: Apache-2.0
"""Console scripts: argument parsing and printing only."""
