# SPDX-License-Identifier: Apache-2.0
"""What is beside the package in this repository."""
