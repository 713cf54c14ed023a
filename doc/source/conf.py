# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

import re

from docutils import nodes

from nova_aggregate_mirror.audit import rules
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
    app.connect('source-read', fill_tables)


def fill_tables(_app, _page, source):
    """Write the rows of tables that the package itself reads."""
    tables = {
        'request filters': [
            ('``%s``' % row.name, '``%s``' % row.host_filter
             if row.host_filter else 'None', row.effect)
            for row in filter_table.FILTERS],
        'audit rules': [
            ('``%s``' % name, text[0].upper() + text[1:] + '.')
            for name, text in rules.descriptions().items()]}

    def rows(marker):
        indent = marker[1]
        return '\n'.join(
            '%s%s - %s' % (indent, ' ' if column else '*', cell)
            for row in tables[marker[2]] for column, cell in enumerate(row))

    source[0] = re.sub(r'( *)\.\. rows: (.*)', rows, source[0])


def keep_text_only(app, doctree, _page):
    """Remove links between pages from man pages, where they lead nowhere."""
    if app.builder.name == 'man':
        for link in list(doctree.findall(nodes.reference)):
            if link.get('internal') or 'refid' in link:
                link.replace_self(link.children)
