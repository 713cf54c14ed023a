# SPDX-License-Identifier: Apache-2.0
"""The requests to placement that no mirror can avoid, without a mirror.

The threads of this process send them with a token that they already have, as
many at a time as this package does: for a comparison one list of all providers
and one of the members of each aggregate, or a GET for each provider if these
are fewer, and a GET and a PUT for each provider that changes. Those of a
scheduling are taken from placement's log.
"""

from collections import abc
from concurrent import futures
import functools
import pathlib
import re
import threading
import time
from typing import Any
from typing import NamedTuple

import requests

from benchmarks import figures
from nova_aggregate_mirror import conf
from tests.cloud import cloud
from tests.cloud import loopback

VERSION = '1.36'
PROVIDERS = '/resource_providers'
# Without the documents of versions, which clients read once.
_LOGGED = re.compile(
    r'placement\.requestlog .*?"([A-Z]+) (/[^ "?][^ "]*)" .* '
    r'microversion: (\S+)')


class Request(NamedTuple):
    """A request that placement has answered."""

    method: str
    path: str
    """With its query, without the path of the endpoint."""
    version: str


class Traffic:
    """Reader of the requests since the previous call."""

    def __init__(self, log: str) -> None:
        self._log = pathlib.Path(log)
        self._read = 0
        self.since()

    def since(self) -> list[Request]:
        """Return the requests since the previous call or the start."""
        with open(self._log, 'rb') as stream:
            stream.seek(self._read)
            new = stream.read()
        self._read += len(new)
        return [Request(*found) for found in _LOGGED.findall(new.decode())]


class Floor:
    """An HTTP client of placement, with a connection per thread."""

    def __init__(self, running: cloud.Cloud) -> None:
        placement = running.placement()
        self._url = placement.get_endpoint()
        self._headers = {'X-Auth-Token': placement.get_token()}
        self._process = running.process('placement')
        self._threads = threading.local()

    def sync(self, aggregates: abc.Iterable[str],
             missing: abc.Mapping[str, abc.Sequence[str]]) -> figures.Run:
        """Compare all providers, and set the aggregates of ``missing``."""
        return self._timed(
            [functools.partial(self._request, 'GET', path) for path in (
                PROVIDERS, *('%s?member_of=%s' % (PROVIDERS, aggregate)
                             for aggregate in aggregates))],
            [functools.partial(self.associate, *provider)
             for provider in missing.items()])

    def read_each(self, providers: abc.Iterable[str]) -> figures.Run:
        """Compare all providers, of which each is read."""
        return self._timed(
            [functools.partial(self._request, 'GET', path) for path in (
                PROVIDERS, *map(_aggregates, providers))], [])

    def associate(self, provider: str, aggregates: abc.Sequence[str]) -> None:
        """Set the aggregates of a provider."""
        path = _aggregates(provider)
        document = self._request('GET', path).json()
        self._request('PUT', path, json={
            **document, 'aggregates': list(aggregates)})

    def repeat(self, logged: abc.Iterable[Request]) -> figures.Run:
        """Send the requests that only read again."""
        return self._timed([
            functools.partial(self._request, 'GET', each.path, each.version)
            for each in logged if each.method == 'GET'], [])

    def _request(self, method: str, path: str, version: str = VERSION,
                 **options: Any) -> requests.Response:
        """Send a request."""
        if not hasattr(self._threads, 'http'):
            self._threads.http = loopback.session()
        answer: requests.Response = self._threads.http.request(
            method, self._url + path, headers={
                **self._headers, 'OpenStack-API-Version':
                    'placement ' + version}, **options)
        answer.raise_for_status()
        return answer

    def _timed(self, reads: abc.Sequence[abc.Callable[[], Any]],
               writes: abc.Sequence[abc.Callable[[], Any]]) -> figures.Run:
        cpu, placement = time.process_time(), self._process.cpu_seconds()
        start = time.perf_counter()
        with futures.ThreadPoolExecutor(conf.SYNC_WORKERS) as pool:
            for calls in reads, writes:
                list(pool.map(lambda call: call(), calls))
        return figures.Run(
            time.perf_counter() - start, time.process_time() - cpu,
            self._process.cpu_seconds() - placement, figures.UNKNOWN,
            len(reads) + 2 * len(writes))


def _aggregates(provider: str) -> str:
    return '%s/%s/aggregates' % (PROVIDERS, provider)
