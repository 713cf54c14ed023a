# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

project = 'nova-aggregate-mirror'
author = 'nova-aggregate-mirror contributors'
copyright = author

extensions = [
    'openstackdocstheme',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
]

# The title is the package's name, not a repository's.
openstackdocs_auto_name = False

config_generator_config_file = [
    ('../../etc/nova-aggregate-mirror/config-generator.conf',
     '_static/aggregate-mirror'),
]

html_theme = 'openstackdocs'
pygments_style = 'native'
