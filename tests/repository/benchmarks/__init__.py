# SPDX-License-Identifier: Apache-2.0
"""A complete run of the benchmarks."""
