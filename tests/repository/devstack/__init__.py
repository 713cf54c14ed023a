# SPDX-License-Identifier: Apache-2.0
"""The DevStack plugin, without a machine to stack on."""
