# SPDX-License-Identifier: Apache-2.0
"""The distributions that an operator installs next to an existing nova."""
