# SPDX-License-Identifier: Apache-2.0
"""One bad part of a nova, and how soon healthy hosts are mirrored."""
