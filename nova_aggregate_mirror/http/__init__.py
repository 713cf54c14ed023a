# SPDX-License-Identifier: Apache-2.0
"""What any service that is called over HTTP needs."""
