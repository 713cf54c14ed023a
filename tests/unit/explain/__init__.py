# SPDX-License-Identifier: Apache-2.0
"""Unit tests, one file per module, without a cloud."""
