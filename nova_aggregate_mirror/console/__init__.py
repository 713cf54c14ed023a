# SPDX-License-Identifier: Apache-2.0
"""Parts that the commands on a nova host and the openstack client share."""
