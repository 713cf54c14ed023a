# SPDX-License-Identifier: Apache-2.0
"""What an operator downloads, beside a nova that was there before."""
