# SPDX-License-Identifier: Apache-2.0
"""Services without which no server gets a host: pure."""

from collections import abc
from typing import Any

from nova_aggregate_mirror.explain.request import record

Services = list[Any]
REQUIRED = 'nova-scheduler', 'nova-conductor'


def stopped(services: Services | None, is_up: abc.Callable[[Any], bool]
            ) -> abc.Iterator[str]:
    """Say which of them are not up anywhere.

    :param services: those of all cells; None if a cell was not read, which
        may have one that is up
    """
    for binary in REQUIRED if services is not None else ():
        found = [service for service in services or ()
                 if service.binary == binary]
        if not any(map(is_up, found)):
            newest = max((service.last_seen_up or service.created_at
                          for service in found), default=None)
            yield 'No %s is up, %s: no server gets a host. Start it.' % (
                binary, 'the last report is of %s' % record.utc(newest)
                if newest else 'nova has none')
