# SPDX-License-Identifier: Apache-2.0
"""One page that shows how nova and placement differ, for people who look."""
