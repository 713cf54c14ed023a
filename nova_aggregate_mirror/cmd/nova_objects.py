# SPDX-License-Identifier: Apache-2.0
"""Preparation of nova's objects and databases as in nova-scheduler."""

from collections import abc
import contextlib
import logging
import math
from typing import Any

from nova.conf import CONF
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova import exception as nova_exception
from nova import objects
from nova import rpc
from oslo_config import cfg
import oslo_messaging as messaging
from oslo_utils import importutils

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import option_values


def prepare(conf: cfg.ConfigOpts) -> Any:
    """Make nova's objects usable; return the context of an administrator.

    Their waits are not limited; see ``bound``. Call it before other modules of
    nova-scheduler are imported: some read an option when they are imported.

    :raises InvalidConfiguration: the message queue is not configured
    """
    # Nova reads the options of osprofiler if that is installed.
    profiler = importutils.try_import('osprofiler.opts')
    if profiler and 'profiler' not in conf:
        profiler.set_defaults(conf)
    objects.register_all()
    # A context of a cell has its message queue, which is not connected.
    try:
        rpc.init(conf)
    except messaging.MessagingException as exc:
        # The messages quote the URL with its password, perhaps rewritten.
        raise exceptions.InvalidConfiguration(
            '[DEFAULT] transport_url: oslo.messaging does not accept it '
            '(%s); give nova-scheduler\'s nova.conf with --config-file'
            % type(exc).__name__) from exc
    # Our filters warn about nova-scheduler's host, and advise this command.
    logging.getLogger('nova_aggregate_mirror.scheduler').setLevel(
        logging.ERROR)
    return nova_context.get_admin_context()


def bound(conf: cfg.ConfigOpts) -> None:
    """Let nova's objects read nova's databases; limit each of nova's waits.

    For commands only: the limits do not follow a reload of the options.
    """
    # By default nova waits for these services without a limit.
    for service in 'neutron', 'placement':
        # The option is an integer in older releases of keystoneauth.
        conf.set_default('timeout', math.ceil(
            conf.aggregate_mirror.request_timeout), service)
    bound_databases(conf, conf.aggregate_mirror.cell_timeout)
    main_db.configure(conf)
    api_db.configure(conf)


def bound_databases(conf: cfg.ConfigOpts, seconds: float) -> None:
    """Limit the waits for nova's databases; call it before nova connects."""
    for group in 'api_database', 'database':
        parameters = conf[group].connection_parameters or ''
        url = conf[group].connection or conf.api_database.connection
        timeouts = engines.timeouts(url, seconds, parameters)
        bounds = ['%s=%s' % option for option in timeouts.items()]
        extended = '&'.join(filter(None, [parameters, *bounds]))
        conf.set_override('max_retries', 0, group)
        conf.set_override('connection_parameters', extended, group)


@contextlib.contextmanager
def translated() -> abc.Iterator[None]:
    """Translate errors of nova's objects to errors of this package."""
    try:
        yield
    except engines.LIBRARY_ERRORS as exc:
        party = causes.database(
            'a database of nova', '[api_database] or [database] connection',
            'run "nova-manage api_db sync" and "nova-manage db sync"')
        raise exceptions.NovaUnavailable.of(
            driver_failures.of_database(exc), party) from exc
    except cfg.Error as exc:
        raise option_values.invalid_option(CONF, exc) from exc
    except (nova_exception.NovaException, NotImplementedError,
            ValueError) as exc:
        reason = errors.without_secrets(' '.join(str(exc).split()))
        raise exceptions.InvalidConfiguration(
            'nova cannot build this request: %s (check flavor, image, zone, '
            'hints)' % reason) from exc
