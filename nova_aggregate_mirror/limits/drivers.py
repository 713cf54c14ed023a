# SPDX-License-Identifier: Apache-2.0
"""Socket timeouts of database drivers."""

import math
import urllib.parse

import sqlalchemy as sa

# Timeout parameters per driver, and their units per second; by default a hung
# server hangs the caller.
TIMEOUTS = {
    'pymysql': {'connect_timeout': 1, 'read_timeout': 1, 'write_timeout': 1},
    'mysqldb': {'connect_timeout': 1, 'read_timeout': 1, 'write_timeout': 1},
    # libpq has no read timeout: a server that acknowledges data but does not
    # answer is not detected.
    'psycopg': {'connect_timeout': 1, 'tcp_user_timeout': 1000},
    'psycopg2': {'connect_timeout': 1, 'tcp_user_timeout': 1000}}


def with_timeouts(url: sa.engine.URL, seconds: float, parameters: str = ''
                  ) -> sa.engine.URL:
    """Add timeouts to a URL, except those that the operator has set.

    :param seconds: for a connection, and for each read and write; the drivers
        take whole seconds
    :param parameters: ``connection_parameters``, which oslo.db adds to the URL
    """
    units = TIMEOUTS.get(url.get_driver_name(), {})
    chosen = {*url.query, *urllib.parse.parse_qs(parameters)}
    return url.update_query_dict({
        name: str(math.ceil(seconds) * unit) for name, unit in units.items()
        if name not in chosen})
