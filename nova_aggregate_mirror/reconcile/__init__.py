# SPDX-License-Identifier: Apache-2.0
"""Compares nova and placement, and repairs what differs."""
