# SPDX-License-Identifier: Apache-2.0
"""A small real cloud, for the demonstration, the tests and the benchmarks."""
