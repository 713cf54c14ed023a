# SPDX-License-Identifier: Apache-2.0
"""Users who change host aggregates at random and check nova's answers."""

from collections import abc
import dataclasses
import itertools
import random
import threading
import time

import requests

from tests.cloud.chaos import answers
from tests.cloud.chaos import wiring
from tests.cloud import cloud
from tests.cloud import loopback
from tests import patience

PREFIX = 'chaos-'
# The longest time that nova-api may take; faults are shorter.
PATIENCE = patience.seconds(120)
# Maximum seconds between two operations of one client.
PACE = 0.3
PATIENT_PACE = 1.0
MOST_OWN = 4
ZONES = ('chaos-zone-1', 'chaos-zone-2')
NO_HOST = 'chaos-no-such-host'
WEIGHTS = {'create': 2, 'show': 2, 'rename': 1, 'zone': 1, 'metadata': 1,
           'add': 10, 'remove': 7, 'delete': 2}
# One operation in this many is on an aggregate that all clients share.
SHARED = 4


@dataclasses.dataclass
class Aggregate:
    """A client's view of an aggregate.

    :param sure: whether the view is complete: no other client uses the
        aggregate, and every request for it was answered
    """

    id: int
    name: str
    zone: str = ''
    hosts: set[str] = dataclasses.field(default_factory=set)
    sure: bool = True


class Client:
    """One user who sends one request at a time, to either controller.

    :param shared: aggregates that all clients use; they are not deleted
    :param keep: is called with each answer
    """

    def __init__(self, running: cloud.Cloud, name: str, seed: str,
                 shared: abc.Sequence[Aggregate],
                 keep: abc.Callable[[answers.Answer], None]) -> None:
        self.token = ''
        self._name = name
        self._urls = {number: running.config.nova_url(number)
                      for number in wiring.CONTROLLERS}
        self._hosts = running.config.host_names()
        self._chance = random.Random('%s/%s' % (seed, name))
        self._shared = shared
        self._keep = keep
        self._own: list[Aggregate] = []
        self._numbers = itertools.count(1)
        self._answered = 0

    def run(self, stop: threading.Event) -> None:
        """Send random requests until the event is set."""
        while not stop.is_set():
            answered = self._answered
            self.step()
            pause = self._chance.uniform(0, PACE)
            # Immediate refusals would otherwise dominate the operations.
            stop.wait(pause if self._answered > answered else PATIENT_PACE)

    def step(self) -> None:
        """Send one random request."""
        kinds = list(WEIGHTS)
        operation = self._chance.choices(kinds, list(WEIGHTS.values()))[0]
        if operation == 'create' and len(self._own) >= MOST_OWN:
            operation = 'delete'
        if not self._own:
            operation = 'create'
        if operation == 'create':
            self.create()
            return
        if operation in ('add', 'remove') and self._shared and (
                not self._chance.randrange(SHARED)):
            one = self._chance.choice(self._shared)
        else:
            one = self._chance.choice(self._own)
        getattr(self, operation)(one)

    def create(self) -> Aggregate | None:
        """Create an aggregate; half of them are zones."""
        name = '%s%s-%s' % (PREFIX, self._name, next(self._numbers))
        zone = self._chance.choice(['', '', *ZONES])
        answer, body = self._ask('create', 'post', '', {'aggregate': {
            'name': name, 'availability_zone': zone or None}})
        # An aggregate whose creation got no answer is not tracked.
        if answer.status != 200:
            return None
        self._own.append(Aggregate(body['aggregate']['id'], name, zone))
        return self._own[-1]

    def show(self, one: Aggregate) -> None:
        """Check that nova has what its answers promised."""
        answer, body = self._ask('show', 'get', '/%s' % one.id, None, one)
        if one.sure and answer.status == 200:
            shown = body['aggregate']
            found = (shown['name'], shown['availability_zone'] or '',
                     sorted(shown['hosts']))
            promised = (one.name, one.zone, sorted(one.hosts))
            if found != promised:
                self._keep(dataclasses.replace(
                    answer, allowed=frozenset(),
                    text='nova has %s and had promised %s' % (
                        found, promised)))

    def rename(self, one: Aggregate) -> None:
        """Change the aggregate's name."""
        name = '%s%s-%s' % (PREFIX, self._name, next(self._numbers))
        answer, _body = self._ask('rename', 'put', '/%s' % one.id, {
            'aggregate': {'name': name}}, one)
        if answer.status == 200:
            one.name = name

    def zone(self, one: Aggregate) -> None:
        """Set another zone; other aggregates of its hosts may forbid it."""
        zone = self._chance.choice(ZONES)
        answer, _body = self._ask('zone', 'put', '/%s' % one.id, {
            'aggregate': {'availability_zone': zone}}, one,
            {200, 400} if one.hosts else {200})
        if answer.status == 200:
            one.zone = zone

    def metadata(self, one: Aggregate) -> None:
        """Set or remove a metadata key."""
        self._act('metadata', one, 'set_metadata', {'metadata': {
            'ssd': self._chance.choice(['true', None])}})

    def add(self, one: Aggregate) -> None:
        """Add a host, which may be a member already or be in another zone."""
        host = self._chance.choice(self._hosts)
        if not self._chance.randrange(20):
            self._act('add', one, 'add_host', {'host': NO_HOST}, {404})
            return
        allowed = {409} if host in one.hosts else {200}
        answer = self._act('add', one, 'add_host', {'host': host},
                           allowed | {409} if one.zone else allowed)
        if answer.status == 200:
            one.hosts.add(host)

    def remove(self, one: Aggregate) -> None:
        """Remove a host, usually a member."""
        there = sorted(one.hosts)
        host = self._chance.choice(
            there if there and self._chance.randrange(5) else self._hosts)
        answer = self._act('remove', one, 'remove_host', {'host': host},
                           {200} if host in one.hosts else {404})
        if answer.status == 200:
            one.hosts.discard(host)

    def delete(self, one: Aggregate) -> None:
        """Delete the aggregate, usually after removing its hosts."""
        if self._chance.randrange(4):
            for host in sorted(one.hosts if one.sure else self._hosts):
                self._act('remove', one, 'remove_host', {'host': host}, {200})
                one.hosts.discard(host)
        answer, _body = self._ask(
            'delete', 'delete', '/%s' % one.id, None, one,
            {400} if one.hosts else {200})
        if answer.status in (200, 404):
            self._own.remove(one)

    def _act(self, operation: str, one: Aggregate, action: str,
             body: abc.Mapping[str, object], allowed: set[int] | None = None
             ) -> answers.Answer:
        return self._ask(operation, 'post', '/%s/action' % one.id,
                         {action: body}, one, allowed)[0]

    def _ask(self, operation: str, method: str, path: str, body: object,
             one: Aggregate | None = None, allowed: set[int] | None = None
             ) -> tuple[answers.Answer, dict]:
        """Send a request and keep the answer.

        :param allowed: the expected statuses if the view of the aggregate is
            sure
        """
        controller = self._chance.choice(wiring.CONTROLLERS)
        if one is not None and not one.sure:
            allowed = answers.STOCK[operation]
        elif allowed is None:
            allowed = {200}
        began = time.monotonic()
        try:
            response = self._send(controller, method, path, body)
            status, text = response.status_code, response.text
            self._answered += 1
        except requests.RequestException as exc:
            status, text = answers.NONE, '%s: %s' % (type(exc).__name__, exc)
        answer = answers.Answer(
            operation, controller, began, time.monotonic(), status, text,
            frozenset(allowed))
        if one is not None and not answer.expected:
            # The change may be applied, or still be in flight through a paused
            # relay.
            one.sure = False
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
