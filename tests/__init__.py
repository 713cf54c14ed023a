# SPDX-License-Identifier: Apache-2.0
"""The tests of nova-aggregate-mirror, and the clouds they run in."""
