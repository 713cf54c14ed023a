# SPDX-License-Identifier: Apache-2.0
"""Random operations and faults on a full cloud, and a check of the results."""
