# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that compare this package with stock nova in the same run."""
