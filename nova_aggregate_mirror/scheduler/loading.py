# SPDX-License-Identifier: Apache-2.0
"""Preparation of nova's objects and databases as in nova-scheduler."""

from typing import Any

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova import objects
from nova import rpc
from oslo_config import cfg
from oslo_utils import importutils


def prepare(conf: cfg.ConfigOpts) -> Any:
    """Make nova's objects usable; return the context of an administrator.

    Call it before other modules of nova-scheduler are imported: some of them
    read an option when they are imported.

    :param conf: nova's configuration, already read
    """
    # Nova reads its options if the package is installed.
    profiler = importutils.try_import('osprofiler.opts')
    if profiler and 'profiler' not in conf:
        profiler.set_defaults(conf)
    objects.register_all()
    # A context of a cell has its message queue, which is not connected.
    rpc.init(conf)
    main_db.configure(conf)
    api_db.configure(conf)
    return nova_context.get_admin_context()
