# SPDX-License-Identifier: Apache-2.0
"""Random operations and random faults on a full cloud, and what they left."""
