# SPDX-License-Identifier: Apache-2.0
"""Each outage of each party that a call depends on, and nova's answer."""
