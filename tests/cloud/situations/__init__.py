# SPDX-License-Identifier: Apache-2.0
"""Requests without a valid host on a real cloud, explained and resolved."""
