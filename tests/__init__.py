# SPDX-License-Identifier: Apache-2.0
"""The tests of nova-aggregate-mirror, and the clouds they run in."""

import gc

# With Python's own threshold of 700, an eighth of the time is spent searching
# nova's modules and objects for garbage.
gc.set_threshold(20_000, 50, 100)
