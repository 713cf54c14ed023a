# SPDX-License-Identifier: Apache-2.0
"""How nova-api loads this package; nothing here may ever stop nova-api.

Nova calls ``register`` of every entry point in
``nova.api.extra_spec_validators`` when its API is loaded. The alternative is a
filter in api-paste.ini.
"""

import functools
import logging

LOG = logging.getLogger(__name__)


def register() -> list:
    """Install the hooks; we validate no extra specs.

    :raises MissingCredentials: when ``missing_credentials = fail``, the one
        case in which an operator asked for nova-api not to start
    """
    refused = None
    try:
        refused = _install()
    except Exception:
        # Without us nova mirrors by itself; without nova-api nothing works.
        LOG.exception('nova-aggregate-mirror is not active: nova mirrors host '
                      'aggregates by itself, best effort')
    if refused is not None:
        raise refused
    return []


# The paste filter must not succeed with what the entry point refused.
@functools.cache
def _install() -> Exception | None:
    from nova.conf import CONF

    from nova_aggregate_mirror import conf
    from nova_aggregate_mirror import exceptions
    from nova_aggregate_mirror import hooks

    conf.register_opts(CONF)
    try:
        hooks.install(CONF)
    except exceptions.MissingCredentials as exc:
        return exc
    except exceptions.MirrorError as exc:
        LOG.error('nova-aggregate-mirror is not active: nova mirrors host '
                  'aggregates by itself, best effort. The reason: %s', exc)
    return None


def filter_factory(global_conf: dict, **local_conf: str):
    """Paste filter that installs the hooks and passes every request on."""
    register()
    return lambda application: application
