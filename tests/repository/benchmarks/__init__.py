# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run from their beginning to their end."""
