# SPDX-License-Identifier: Apache-2.0
"""Explanation of the hosts that a request finds, and of the others."""
