# SPDX-License-Identifier: Apache-2.0
"""Users who change host aggregates at random, and the answers they get."""

from collections import abc
import dataclasses
import itertools
import random
import threading
import time
from typing import Any

import requests

from tests.cloud import cloud
from tests.cloud import loopback
from tests import patience

CONTROLLERS = (1, 2)
PREFIX = 'chaos-'
# The longest time that nova-api may take; faults are shorter.
PATIENCE = patience.seconds(120)
# Maximum seconds between two operations of one user, and after a refusal.
PACE, PATIENT_PACE = 0.3, 1.0
MOST_OWN = 4
ZONES = ('chaos-zone-1', 'chaos-zone-2')
NO_HOST = 'chaos-no-such-host'
WEIGHTS = {'create': 2, 'show': 2, 'rename': 1, 'zone': 1, 'metadata': 1,
           'add': 10, 'remove': 7, 'delete': 2}
STOCK = {
    'create': {200}, 'show': {200, 404}, 'rename': {200, 404},
    'zone': {200, 400, 404}, 'metadata': {200, 404},
    'add': {200, 404, 409}, 'remove': {200, 404}, 'delete': {200, 400, 404}}
"""What nova with a healthy placement answers to each operation, if the state
of the aggregate is unknown."""
# One operation in this many is on an aggregate that all users share.
SHARED = 4


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to one request; times are monotonic.

    :param status: 0 if there was no answer
    :param allowed: the statuses that nova gives in this situation
    """

    operation: str
    controller: int
    began: float
    ended: float
    status: int
    text: str
    allowed: frozenset[int]

    @property
    def expected(self) -> bool:
        """Check whether nova gives this answer without faults."""
        return self.status in self.allowed

    @property
    def seconds(self) -> float:
        """Return how long the user waited for the answer."""
        return self.ended - self.began


@dataclasses.dataclass
class Aggregate:
    """A user's view of an aggregate.

    :param sure: whether the view is complete: no other user uses the
        aggregate, and every request for it was answered
    """

    id: int
    name: str
    zone: str = ''
    hosts: set[str] = dataclasses.field(default_factory=set)
    sure: bool = True


class User:
    """One user who sends one request at a time, to either controller."""

    def __init__(self, running: cloud.Cloud, name: str, seed: str,
                 shared: abc.Sequence[Aggregate],
                 keep: abc.Callable[[Answer], None]) -> None:
        self.token = ''
        self._urls = {number: running.config.nova_url(number)
                      for number in CONTROLLERS}
        self._hosts = running.config.host_names()
        self._chance = random.Random('%s/%s' % (seed, name))
        self._shared = shared
        self._keep = keep
        self._own: list[Aggregate] = []
        self._names = ('%s%s-%d' % (PREFIX, name, number)
                       for number in itertools.count(1))
        self._answered = 0

    def run(self, stop: threading.Event) -> None:
        """Send random requests until the event is set."""
        while not stop.is_set():
            answered = self._answered
            self._step()
            pause = self._chance.uniform(0, PACE)
            # Immediate refusals would otherwise dominate the operations.
            stop.wait(pause if self._answered > answered else PATIENT_PACE)

    def _step(self) -> None:
        """Send one random request."""
        operation, = self._chance.choices([*WEIGHTS], [*WEIGHTS.values()])
        if operation == 'create' and len(self._own) >= MOST_OWN:
            operation = 'delete'
        if operation == 'create' or not self._own:
            self._create()
            return
        is_shared = (operation in ('add', 'remove') and self._shared
                     and not self._chance.randrange(SHARED))
        aggregate = self._chance.choice(
            self._shared if is_shared else self._own)
        getattr(self, operation)(aggregate)

    def _create(self) -> None:
        """Create an aggregate; half of them are zones."""
        aggregate = Aggregate(0, next(self._names), self._chance.choice(
            ['', '', *ZONES]))
        answer, body = self._ask('create', 'post', '', {'aggregate': {
            'name': aggregate.name,
            'availability_zone': aggregate.zone or None}}, {200})
        # An aggregate whose creation got no answer is not tracked.
        if answer.status == 200:
            aggregate.id = body['aggregate']['id']
            self._own.append(aggregate)

    def show(self, aggregate: Aggregate) -> None:
        """Check that nova has what its answers promised."""
        answer, body = self._ask('show', 'get', '', None, {200}, aggregate)
        if not aggregate.sure or answer.status != 200:
            return
        shown = body['aggregate']
        has = (shown['name'], shown['availability_zone'] or '',
               sorted(shown['hosts']))
        promised = (aggregate.name, aggregate.zone, sorted(aggregate.hosts))
        if has != promised:
            self._keep(dataclasses.replace(
                answer, allowed=frozenset(),
                text='nova has %s and had promised %s' % (has, promised)))

    def rename(self, aggregate: Aggregate) -> None:
        """Change the aggregate's name."""
        name = next(self._names)
        answer, _body = self._ask('rename', 'put', '', {
            'aggregate': {'name': name}}, {200}, aggregate)
        if answer.status == 200:
            aggregate.name = name

    def zone(self, aggregate: Aggregate) -> None:
        """Set another zone; other aggregates of its hosts may forbid it."""
        zone = self._chance.choice(ZONES)
        answer, _body = self._ask('zone', 'put', '', {
            'aggregate': {'availability_zone': zone}},
            {200, 400} if aggregate.hosts else {200}, aggregate)
        if answer.status == 200:
            aggregate.zone = zone

    def metadata(self, aggregate: Aggregate) -> None:
        """Set or remove a metadata key."""
        metadata = {'ssd': self._chance.choice(['true', None])}
        self._ask('metadata', 'post', '/action', {
            'set_metadata': {'metadata': metadata}}, {200}, aggregate)

    def add(self, aggregate: Aggregate) -> None:
        """Add a host, which may be a member already or be in another zone."""
        host, allowed = self._chance.choice(self._hosts), {200}
        if not self._chance.randrange(20):
            host, allowed = NO_HOST, {404}
        elif host in aggregate.hosts:
            allowed = {409}
        elif aggregate.zone:
            allowed = {200, 409}
        answer, _body = self._ask('add', 'post', '/action', {
            'add_host': {'host': host}}, allowed, aggregate)
        if answer.status == 200:
            aggregate.hosts.add(host)

    def remove(self, aggregate: Aggregate) -> None:
        """Remove a host, usually a member."""
        hosts = sorted(aggregate.hosts)
        if not hosts or not self._chance.randrange(5):
            hosts = self._hosts
        self._remove_host(aggregate, self._chance.choice(hosts))

    def _remove_host(self, aggregate: Aggregate, host: str) -> None:
        answer, _body = self._ask('remove', 'post', '/action', {
            'remove_host': {'host': host}},
            {200} if host in aggregate.hosts else {404}, aggregate)
        if answer.status == 200:
            aggregate.hosts.discard(host)

    def delete(self, aggregate: Aggregate) -> None:
        """Delete the aggregate, usually after removing its hosts."""
        if self._chance.randrange(4):
            for host in sorted(
                    aggregate.hosts if aggregate.sure else self._hosts):
                self._remove_host(aggregate, host)
        answer, _body = self._ask(
            'delete', 'delete', '', None, {400} if aggregate.hosts else {200},
            aggregate)
        if answer.status in (200, 404):
            self._own.remove(aggregate)

    def _ask(self, operation: str, method: str, path: str, body: object,
             allowed: abc.Collection[int], aggregate: Aggregate | None = None
             ) -> tuple[Answer, dict[str, Any]]:
        """Send a request; keep the answer and what a sure view allows."""
        controller = self._chance.choice(CONTROLLERS)
        if aggregate is not None:
            path = '/%d%s' % (aggregate.id, path)
            allowed = allowed if aggregate.sure else STOCK[operation]
        began = time.monotonic()
        try:
            response = self._send(controller, method, path, body)
            status, text = response.status_code, response.text
            self._answered += 1
        except requests.RequestException as exc:
            status, text = 0, '%s: %s' % (type(exc).__name__, exc)
        answer = Answer(operation, controller, began, time.monotonic(),
                        status, text, frozenset(allowed))
        if aggregate is not None and not answer.expected:
            # The change may be applied, or still be in flight through a paused
            # relay.
            aggregate.sure = False
        self._keep(answer)
        return answer, response.json() if status == 200 and text else {}

    def _send(self, controller: int, method: str, path: str, body: object
              ) -> requests.Response:
        # Use a new connection per request: a connection opened before nova-api
        # died would fail after its restart.
        with loopback.session() as http:
            return http.request(
                method, '%s/os-aggregates%s' % (self._urls[controller], path),
                json=body, timeout=PATIENCE, headers={
                    'X-Auth-Token': self.token,
                    'OpenStack-API-Version': 'compute 2.41'})
