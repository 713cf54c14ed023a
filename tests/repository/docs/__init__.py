# SPDX-License-Identifier: Apache-2.0
"""The shell examples of the documentation, run on a real cloud."""
