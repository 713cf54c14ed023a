# SPDX-License-Identifier: Apache-2.0
"""HTML report of the differences between nova and placement."""
