# SPDX-License-Identifier: Apache-2.0
"""Entry points for nova-api, which must start even if they fail."""

from collections import abc
import functools
import logging

LOG = logging.getLogger(__name__)


def register() -> list[object]:
    """Install the hooks; nova calls it for its extra spec validators.

    :returns: an empty list of these
    :raises SystemExit: when ``missing_credentials = fail``, the only case in
        which nova-api must not start, as the operator requested; after
        logging the reason
    """
    refusal = None
    try:
        from nova.conf import CONF

        # Oslo.config registers this option when it starts to read the files.
        if 'config_file' in CONF:
            refusal = _install()
        else:
            _postpone()
    except Exception:
        # Nova works without the hooks, but nothing works without nova-api.
        LOG.exception('nova-aggregate-mirror is not active: nova\'s own '
                      'best-effort mirroring stays in effect')
    if refusal is not None:
        # Of any other class, nova would log the traceback twice.
        LOG.critical('nova-api does not start: %s', refusal)
        raise SystemExit(1)
    return []


def _postpone() -> None:
    """Install the hooks when the first ``AggregateAPI`` is created."""
    # Nova-api-wsgi of nova 29 loads plugins before it reads nova.conf, and
    # creates the API controllers afterwards.
    from nova.compute.api import AggregateAPI

    stock = AggregateAPI.__init__

    @functools.wraps(stock)
    def initialize(self: object) -> None:
        AggregateAPI.__init__ = stock
        register()
        stock(self)

    AggregateAPI.__init__ = initialize


# Cached, so that the paste filter raises what the entry point raised.
@functools.cache
def _install() -> Exception | None:
    """Install the hooks; return the error that must stop nova-api, if any."""
    from nova.conf import CONF

    from nova_aggregate_mirror import conf
    from nova_aggregate_mirror import exceptions
    from nova_aggregate_mirror.hooks import attach

    conf.register_opts(CONF)
    failure = exceptions.failure_of(lambda: attach.install(CONF))
    if isinstance(failure, exceptions.MissingCredentials):
        return failure
    if failure:
        LOG.error('nova-aggregate-mirror is not active: nova\'s own '
                  'best-effort mirroring stays in effect. Reason: %s', failure)
    return None


def filter_factory(global_conf: abc.Mapping[str, str], **local_conf: str
                   ) -> abc.Callable[[object], object]:
    """Return a filter for api-paste.ini that only installs the hooks."""
    register()
    return lambda application: application
