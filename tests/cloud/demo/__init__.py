# SPDX-License-Identifier: Apache-2.0
"""The demonstration of tools/demo, played in the small cloud."""
