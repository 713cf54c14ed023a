# SPDX-License-Identifier: Apache-2.0
"""How long is waited, and when something is not tried."""
