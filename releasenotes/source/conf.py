# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the release notes."""

project = 'nova-aggregate-mirror Release Notes'
author = 'nova-aggregate-mirror contributors'
copyright = author

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

# The title is the package's name, not a repository's.
openstackdocs_auto_name = False

html_theme = 'openstackdocs'
pygments_style = 'native'
