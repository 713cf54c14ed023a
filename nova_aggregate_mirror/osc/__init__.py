# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror``: a plugin of the openstack client."""
