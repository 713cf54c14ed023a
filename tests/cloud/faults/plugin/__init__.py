# SPDX-License-Identifier: Apache-2.0
"""A distribution with hooks; its folder is in the path of the nova-apis."""
