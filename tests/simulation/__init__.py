# SPDX-License-Identifier: Apache-2.0
"""The real hook, journal and agent under a simulated scheduler and clock."""
