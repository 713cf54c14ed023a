# SPDX-License-Identifier: Apache-2.0
"""The steps of the demonstration, and what each one proves.

A step's docstring is the text of its line.
"""

from collections import abc
import contextlib
import dataclasses
import itertools
import json
import re
import signal
import threading
import uuid

from keystoneauth1 import exceptions

from tests.cloud import cloud
from tests.cloud import observer
from tests.cloud import processes
from tests import patience

NO_HOST = 'no host'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a step expects and observes.

    :param harm: what stock nova shows instead, if that differs
    :param evidence: lines for people
    """

    expected: str
    observed: str
    harm: str = ''
    evidence: abc.Sequence[str] = ()

    def result(self, stock: bool) -> str:
        """Return ``ok``, ``WRONG`` for the harm of stock nova, or ``FAIL``."""
        told = stock and self.harm or self.expected
        if not self.expected or self.observed != told:
            return 'FAIL'
        return 'ok' if told == self.expected else 'WRONG'


class Scene:
    """The cloud and hosts of the story, with actions and checks for steps."""

    def __init__(self, running: cloud.Cloud, stock: bool,
                 verbose: bool) -> None:
        self.cloud = running
        self.stock = stock
        self.nova = running.nova()
        self.observer = observer.Observer(running, {})
        self.nodes = {node.name: node for node in running.nodes()}
        self._verbose = verbose

    def run(self, *argv: str, status: int = 0) -> str:
        """Run a command; return its standard output."""
        observed, out, err = self.cloud.run(*argv)
        if self._verbose:
            print('$', *argv)
            print(out + err, end='', flush=True)
        if observed != status:
            *_rest, last = (err or out).strip().splitlines() or ['nothing']
            command = ' '.join(argv[:3])
            raise processes.CloudError('"%s ..." exited with %d: %s' % (
                command, observed, last))
        return out

    def manage(self, program: str, *argv: str, status: int = 0) -> str:
        return self.run(program, '--config-file', self.cloud.config.nova_conf,
                        *argv, status=status)

    def aggregate(self, *argv: str) -> None:
        self.run('openstack', 'aggregate', *argv)

    def create_server(self, name: str, **options: str) -> tuple[str, str]:
        """Create a server; return its host or ``NO_HOST``, and the fault."""
        session = self.cloud.new_session(project=options.pop(
            'project', 'admin'))
        server = {'name': name, 'flavorRef': '1', 'networks': 'none',
                  'imageRef': str(uuid.uuid4()), **options}
        if self._verbose:
            print('POST /servers', server)
        self.nova.post('/servers', auth=session.auth, json={'server': server})

        query = {'name': '^%s$' % name, 'all_tenants': '1'}

        def ended() -> tuple[str, str] | None:
            answer = self.nova.get('/servers/detail', params=query)
            server, = answer.json()['servers']
            fault = server.get('fault', {}).get('message', '')
            if server['status'] == 'ACTIVE':
                return server['OS-EXT-SRV-ATTR:host'], ''
            if 'No valid host' in fault:
                return NO_HOST, fault
            return (fault, fault) if server['status'] == 'ERROR' else None

        return patience.wait(ended) or ('unknown', '')

    def associations(self, nodes: abc.Iterable[str]) -> str:
        """Return the aggregates that placement has nodes in."""
        found = [self.observer.associations(self.nodes[name])
                 for name in nodes]
        names = frozenset().union(*found)
        return ', '.join(sorted(names)) or 'none'

    def recovered(self, *nodes: str, expected: str, harm: str,
                  evidence: abc.Sequence[str] = ()) -> Outcome:
        """Wait for the agent's repair, if there is an agent."""
        lines = [*evidence]
        if not self.stock:
            patience.wait(lambda: self.associations(nodes) == expected)
            for line in self.cloud.agent_lines():
                if any('Host %s ' % node in line for node in nodes):
                    text = line.partition('[-] ')[2]
                    lines.append('agent: %s' % self.shortened(text))
        return Outcome(expected, self.associations(nodes), harm,
                       lines[-len(nodes):])

    def shortened(self, line: str) -> str:
        """Return a line for the screen, without UUIDs unless verbose."""
        return line if self._verbose else re.sub(r' \([^)]*\)', '', line)


def zone(scene: Scene) -> Outcome:
    """user creates web-1 in az-a, which has cmp-1"""
    for name in ('az-a', 'az-b'):
        scene.aggregate('create', '--zone', name, name)
    scene.aggregate('add', 'host', 'az-a', 'cmp-1')
    host, _fault = scene.create_server('web-1', availability_zone='az-a')
    return Outcome('cmp-1', host)


def tenant(scene: Scene) -> Outcome:
    """tenant gold creates gold-1; it has cmp-3"""
    project = scene.run('openstack', 'project', 'create', '-f', 'value', '-c',
                        'id', 'gold').strip()
    scene.run('openstack', 'role', 'add', '--project', project, '--user',
              'admin', 'admin')
    scene.aggregate('create', 'gold', '--property',
                    'filter_tenant_id=%s' % project)
    scene.aggregate('add', 'host', 'gold', 'cmp-3')
    host, _fault = scene.create_server('gold-1', project='gold')
    return Outcome('cmp-3', host)


def add(scene: Scene) -> Outcome:
    """admin adds cmp-2 to az-a, cmp-4 to gold"""
    scene.aggregate('add', 'host', 'az-a', 'cmp-2')
    scene.aggregate('add', 'host', 'gold', 'cmp-4')
    scene.observer.members()
    return Outcome('az-a, gold', scene.associations(['cmp-2', 'cmp-4']))


def remove(scene: Scene) -> Outcome:
    """placement is 503; admin removes both hosts"""
    switch = (scene.cloud.config.directory / 'log'
              / ('unavailable-%d' % scene.cloud.config.ports['placement']))
    switch.touch()
    scene.aggregate('remove', 'host', 'az-a', 'cmp-2')
    scene.aggregate('remove', 'host', 'gold', 'cmp-4')
    switch.unlink()
    members = scene.observer.members().values()
    return Outcome('cmp-1, cmp-3', observer.names(itertools.chain(*members)))


def recover(scene: Scene) -> Outcome:
    """placement is back: aggregates of both hosts"""
    remedy = ('nova-manage', 'placement', 'sync_aggregates')
    evidence = []
    if scene.stock:
        scene.manage(*remedy)
        evidence = ['exit status 0: %s' % ' '.join(remedy)]
    return scene.recovered('cmp-2', 'cmp-4', expected='none',
                           harm='az-a, gold', evidence=evidence)


def zone_again(scene: Scene) -> Outcome:
    """user creates web-2 in az-a"""
    host, _fault = scene.create_server('web-2', availability_zone='az-a')
    return Outcome('cmp-1', host, 'cmp-2')


def tenant_again(scene: Scene) -> Outcome:
    """tenant gold creates gold-2"""
    host, _fault = scene.create_server('gold-2', project='gold')
    return Outcome('cmp-3', host, 'cmp-4')


def kill(scene: Scene) -> Outcome:
    """admin adds cmp-5 to az-b; nova-api is killed"""
    number = scene.cloud.aggregates()['az-b']['id']

    def request() -> None:
        # There is no answer: the process is killed meanwhile.
        with contextlib.suppress(exceptions.ClientException):
            scene.cloud.nova().post(
                '/os-aggregates/%s/action' % number, connect_retries=0,
                json={'add_host': {'host': 'cmp-5'}})

    def is_committed() -> bool:
        return 'cmp-5' in scene.cloud.aggregates()['az-b']['hosts']

    placement = scene.cloud.process('placement')
    # It accepts connections, and answers nothing.
    placement.send(signal.SIGSTOP)
    call = threading.Thread(target=request)
    call.start()
    committed = patience.wait(is_committed)
    answered = not call.is_alive()
    scene.cloud.kill('nova-api-1')
    placement.send(signal.SIGCONT)
    call.join()
    scene.cloud.start('nova-api-1')
    if not committed or answered:
        raise LookupError('nova was not killed between commit and answer')
    return scene.recovered('cmp-5', expected='az-b', harm='none')


def zone_of_killed(scene: Scene) -> Outcome:
    """user creates web-3 in az-b"""
    host, fault = scene.create_server('web-3', availability_zone='az-b')
    return Outcome('cmp-5', host, NO_HOST, [fault] if fault else [])


def explain(scene: Scene) -> Outcome:
    """gold creates gold-3 in az-a: why no host?"""
    host, fault = scene.create_server('gold-3', project='gold',
                                      availability_zone='az-a')
    if host != NO_HOST or scene.stock:
        return Outcome('explained', host, NO_HOST, [fault])
    answer = json.loads(scene.manage(
        'nova-aggregate-mirror-manage', 'scheduling', 'explain', '--server',
        'gold-3', '-f', 'json', status=1))
    cause = {one['asked_by']: one['condition'] for one in answer['conditions']
             if one['excluded']}
    evidence = [scene.shortened('%s requires: %s' % asked)
                for asked in cause.items()]
    return Outcome('explained', 'explained' if len(cause) == 2 else fault,
                   NO_HOST, [answer['summary'], *evidence])


def compare(scene: Scene) -> Outcome:
    """placement compared with nova, all hosts"""
    different = [row.node.name for row in scene.observer.compare(
        scene.nodes.values()) if not row.equal]
    return Outcome('equal', '%d differ' % len(different) if different
                   else 'equal', '3 differ')


STORY = (zone, tenant, add, remove, recover, zone_again, tenant_again, kill,
         zone_of_killed, explain, compare)
