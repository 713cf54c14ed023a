# SPDX-License-Identifier: Apache-2.0
"""What placement says, and one guarded write."""
