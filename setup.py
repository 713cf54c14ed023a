# SPDX-License-Identifier: Apache-2.0
"""Build the package; everything about it is in setup.cfg."""

import setuptools

setuptools.setup(setup_requires=['pbr>=6.1.1'], pbr=True)
