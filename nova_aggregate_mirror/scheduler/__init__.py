# SPDX-License-Identifier: Apache-2.0
"""Aggregate isolation inside nova-scheduler, in the query and after it."""
