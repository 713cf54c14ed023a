# SPDX-License-Identifier: Apache-2.0
"""Keep placement aggregates equal to nova host aggregates."""
