# SPDX-License-Identifier: Apache-2.0
"""HTML pages: the report on nova and placement, and explained requests."""
