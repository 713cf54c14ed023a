# SPDX-License-Identifier: Apache-2.0
"""The CI configuration, as zuul reads it."""
