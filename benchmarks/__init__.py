# SPDX-License-Identifier: Apache-2.0
"""Measurements; a figure here is a ratio of two things in one run."""
