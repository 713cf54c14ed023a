# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

from docutils import nodes

from nova_aggregate_mirror.scheduler import filter_table

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
# Corrections to the theme.
html_static_path = ['_static']
html_css_files = ['pages.css']
pygments_style = 'native'

# The first line of a man page is "name - description".
man_pages = [
    ('cli/%s' % name, name, description, [author], 1)
    for name, description in (
        ('nova-aggregate-mirror-agent',
         'mirror host aggregates to placement continuously'),
        ('nova-aggregate-mirror-manage',
         'mirror host aggregates to placement on demand'),
        ('nova-aggregate-mirror-status',
         'check a deployment of nova-aggregate-mirror'),
    )]


def setup(app):
    app.connect('doctree-resolved', keep_text_only)
    app.connect('source-read', fill_table)


def fill_table(_app, _page, source):
    """Write the rows of the table that the package itself reads."""
    source[0] = source[0].replace('   .. rows: request filters', '\n'.join(
        '   * - ``%s``\n     - %s\n     - %s' % (
            row.name, '``%s``' % row.host_filter
            if row.host_filter else 'None', row.effect)
        for row in filter_table.FILTERS))


def keep_text_only(app, doctree, _page):
    """Remove links between pages from man pages, where they lead nowhere."""
    if app.builder.name == 'man':
        for link in list(doctree.findall(nodes.reference)):
            if link.get('internal') or 'refid' in link:
                link.replace_self(link.children)
