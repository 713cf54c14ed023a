# SPDX-License-Identifier: Apache-2.0
"""Database URLs of cell mappings that are templates, filled in as by nova.

Nova's own function needs nova's objects, whose import takes seconds, and
imports eventlet: a thread that does that can never be joined.
"""

from typing import Any
from urllib import parse

from oslo_config import cfg
from oslo_utils import netutils

NAMES = ('username', 'password', 'hostname', 'port', 'scheme', 'query',
         'fragment')
# All that nova's templates and a malformed [database] connection raise.
ERRORS = (ValueError, LookupError, TypeError, AttributeError)


def fill_in(url: str, conf: cfg.ConfigOpts) -> str:
    """Fill in a template from the parts of ``[database] connection``.

    It does what ``CellMapping.format_db_url`` of nova does. A template that
    cannot be filled in is returned as it is.
    """
    if not {'{', '}'}.intersection(url):
        return url
    connection = conf.database.connection
    if connection is None:
        return url
    try:
        return url.format(**_parts(connection))
    except ERRORS:
        return url


def _parts(connection: str) -> dict[str, Any]:
    """Split a URL into the parts that a template may have."""
    split = parse.urlparse(connection)
    parts = {name: getattr(split, name) for name in NAMES}
    parts['path'] = split.path.lstrip('/')
    if ',' in split.netloc:
        for number, netloc in enumerate(split.netloc.split(','), 1):
            parts |= {'%s%d' % (name, number): part
                      for name, part in _server_parts(netloc).items()}
    return parts


def _server_parts(netloc: str) -> dict[str, Any]:
    """Split one of several servers, with a user of its own."""
    account, separator, server = netloc.partition('@')
    if not separator:
        account, server = '', netloc
    username, colon, password = account.partition(':')
    hostname, port = netutils.parse_host_port(server)
    return {'username': username, 'password': password if colon else None,
            'hostname': hostname, 'port': port}
