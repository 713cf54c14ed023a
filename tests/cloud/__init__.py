# SPDX-License-Identifier: Apache-2.0
"""A real cloud, for the demonstration, the tests and the benchmarks."""
