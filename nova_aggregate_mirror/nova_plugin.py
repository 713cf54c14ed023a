# SPDX-License-Identifier: Apache-2.0
"""How nova-api loads this package; nothing here may ever stop nova-api.

Nova calls ``register`` of every entry point in
``nova.api.extra_spec_validators`` when its API is loaded. The alternative is a
filter in api-paste.ini.
"""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import logging

LOG = logging.getLogger(__name__)

Application = Callable[..., object]


def register() -> list[object]:
    """Install the hooks; we validate no extra specs.

    :raises MissingCredentials: when ``missing_credentials = fail``, the one
        case in which an operator asked for nova-api not to start
    """
    refused = None
    try:
        if _configured():
            refused = _install()
        else:
            _postpone()
    except Exception:
        # Without us nova mirrors by itself; without nova-api nothing works.
        LOG.exception('nova-aggregate-mirror is not active: nova mirrors host '
                      'aggregates by itself, best effort')
    if refused is not None:
        raise refused
    return []


def _configured() -> bool:
    from nova.conf import CONF

    # Oslo.config registers it when it begins to read.
    return 'config_file' in CONF


def _postpone() -> None:
    """Install the hooks when the first ``AggregateAPI`` is made.

    Nova-api-wsgi of nova 29 loads plugins before it reads nova.conf; what
    serves its users is made after that.
    """
    from nova.compute.api import AggregateAPI

    stock = AggregateAPI.__init__

    @functools.wraps(stock)
    def first(self: object) -> None:
        AggregateAPI.__init__ = stock
        register()
        stock(self)

    AggregateAPI.__init__ = first


# The paste filter must not succeed with what the entry point refused.
@functools.cache
def _install() -> Exception | None:
    from nova.conf import CONF

    from nova_aggregate_mirror import conf
    from nova_aggregate_mirror import exceptions
    from nova_aggregate_mirror.hooks import attach

    conf.register_opts(CONF)
    try:
        attach.install(CONF)
    except exceptions.MissingCredentials as exc:
        return exc
    except exceptions.MirrorError as exc:
        LOG.error('nova-aggregate-mirror is not active: nova mirrors host '
                  'aggregates by itself, best effort. The reason: %s', exc)
    return None


def filter_factory(global_conf: Mapping[str, str], **local_conf: str
                   ) -> Callable[[Application], Application]:
    """Paste filter that installs the hooks and passes every request on."""
    register()
    return lambda application: application
