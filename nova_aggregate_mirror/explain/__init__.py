# SPDX-License-Identifier: Apache-2.0
"""Why a request for a host finds no host, or the hosts that it finds."""
