# SPDX-License-Identifier: Apache-2.0
"""Authentication, transport and error translation for HTTP services."""
