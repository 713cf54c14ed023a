# SPDX-License-Identifier: Apache-2.0
"""Nova's configuration, for the commands that run beside nova."""

from collections.abc import Sequence

from nova.conf import CONF
from nova.db.api import api as api_db
from nova import version
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions


def read(argv: Sequence[str]) -> None:
    """Read the files and options that nova reads, in nova's order.

    Nova's own function does the same for its services, and imports what takes
    longer than most commands.

    :raises oslo_config.cfg.Error: when they cannot be used
    """
    logging.register_options(CONF)
    CONF(argv, project='nova', version=version.version_string())
    # Nova's own way wants the options of osprofiler, too, where it is there.
    api_db.context_manager.configure(**CONF.api_database)


def check_nova() -> None:
    """Check that the configuration is that of a nova-api.

    :raises InvalidConfiguration: it does not say where nova's database is
    """
    if not CONF.api_database.connection:
        raise exceptions.InvalidConfiguration(
            'there is no [api_database] connection in the configuration that '
            'was read; name nova-api\'s nova.conf with --config-file')
