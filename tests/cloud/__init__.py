# SPDX-License-Identifier: Apache-2.0
"""Real clouds of real processes, in a small and in a full profile."""
