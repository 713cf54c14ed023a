# SPDX-License-Identifier: Apache-2.0
"""What runs around nova's aggregate operations, inside nova-api."""
