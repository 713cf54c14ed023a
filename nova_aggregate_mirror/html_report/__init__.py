# SPDX-License-Identifier: Apache-2.0
"""One HTML page: where placement differs from nova, and why."""
