# SPDX-License-Identifier: Apache-2.0
"""What CI is told to do, as zuul reads it."""
