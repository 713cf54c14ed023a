# SPDX-License-Identifier: Apache-2.0
"""The steps of the demonstration: each does one thing and checks the result.

A step's docstring is the text of its line; a step returns the expectations
that did not hold.
"""

import contextlib
import threading
import time
import uuid

from keystoneauth1 import exceptions

from tests.cloud import cloud
from tests.cloud import observer
from tests.cloud import seed

OURS = 'nova-aggregate-mirror-manage'
FOREIGN = str(uuid.uuid4())

# Seconds: about the middle of a call; and many times what the recovery takes,
# even on a busy machine.
KILLED_AFTER = 0.03
RECOVERED_AFTER = 60


class Scene:
    """The cloud and hosts of the story, with actions and checks for steps."""

    def __init__(self, running: cloud.Cloud, stock: bool,
                 verbose: bool) -> None:
        self.cloud = running
        self.nodes = self._hosts()
        self.observer = observer.Observer(
            running, {FOREIGN: 'of-another-tool'})
        self._sync = 'nova-manage' if stock else OURS
        self.stock = stock
        self._verbose = verbose

    def _hosts(self) -> dict[str, seed.Node]:
        nodes = self.cloud.seed_hosts(['cmp-1', 'cmp-2', 'cmp-3', 'cmp-4'])
        nodes += self.cloud.seed_hosts(['ironic-1'], nodes_per_host=3)
        # Shared storage of several hosts: a provider that is not a compute
        # node.
        storage = seed.Node(observer.NO_HOST, 'storage-1', str(uuid.uuid4()))
        self.cloud.placement().post(
            '/resource_providers',
            json={'name': storage.name, 'uuid': storage.uuid})
        return {node.name: node for node in [*nodes, storage]}

    def run(self, *argv: str) -> list[str]:
        """Run a command and print it; return a complaint if it fails."""
        print('$', *argv, flush=True)
        status, out, err = self.cloud.run(*argv)
        if self._verbose:
            print(out + err, end='', flush=True)
        if status == 0:
            return []
        # nova-manage prints its messages; its log is on stderr.
        said = out if argv[0] == 'nova-manage' else err or out
        said = (said.strip() or 'nothing').splitlines()[-1]
        return ['"%s ..." exited with %s: %s' % (
            " ".join(argv[:3]), status, said)]

    def sync(self) -> list[str]:
        """Run the full sync of the package, or nova's own."""
        return self.run(self._sync, '--config-file',
                        self.cloud.config.nova_conf, 'placement',
                        'sync_aggregates', '--verbose')

    def placement_has(self, *expected: str, node: str) -> list[str]:
        """Check that the provider is in exactly these aggregates."""
        found = self.observer.associations(self.nodes[node])
        if found == frozenset(expected):
            return []
        return ['placement has %s in: %s; '
                'expected: %s'
                % (node, observer.names(found), observer.names(expected))]

    def nova_has(self, *expected: str, aggregate: str) -> list[str]:
        """Check that exactly these hosts are in the aggregate."""
        found = self.observer.hosts(aggregate)
        if found == frozenset(expected):
            return []
        return ['nova has in %s: %s; '
                'expected: %s'
                % (aggregate, observer.names(found), observer.names(expected))]

    def placement_asked(self, before: int) -> list[str]:
        """Check that placement's request count is still ``before``."""
        count = self.cloud.placement_requests() - before
        return ['placement got %s requests' % count] if count else []

    def associate(self, node: str, aggregate: str) -> list[str]:
        """Put a provider into an aggregate as another tool would."""
        return self.run('openstack', 'resource', 'provider', 'aggregate',
                        'set', '--aggregate', aggregate, '--generation', '0',
                        self.nodes[node].uuid)


def create(scene: Scene) -> list[str]:
    """create two aggregates, one with a zone: placement gets no request"""
    before = scene.cloud.placement_requests()
    return [
        *scene.run('openstack', 'aggregate', 'create', '--zone', 'az-a',
                   'zone-a'),
        *scene.run('nova', 'aggregate-create', 'rack-1'),
        *scene.nova_has(aggregate='zone-a'),
        *scene.placement_asked(before)]


def rename(scene: Scene) -> list[str]:
    """rename rack-1 to rack-7 and tag it: placement gets no request"""
    scene.observer.members()
    before = scene.cloud.placement_requests()
    return [
        *scene.run('openstack', 'aggregate', 'set', '--name', 'rack-7',
                   '--property', 'ssd=true', 'rack-1'),
        *scene.nova_has(aggregate='rack-7'),
        *scene.placement_asked(before)]


def add(scene: Scene) -> list[str]:
    """add host cmp-1 to zone-a: placement has it"""
    return [
        *scene.run('openstack', 'aggregate', 'add', 'host', 'zone-a',
                   'cmp-1'),
        *scene.nova_has('cmp-1', aggregate='zone-a'),
        *scene.placement_has('zone-a', node='cmp-1')]


def add_with_nova(scene: Scene) -> list[str]:
    """add host cmp-2 with the nova client: placement has it"""
    return [
        *scene.run('nova', 'aggregate-add-host', 'zone-a', 'cmp-2'),
        *scene.nova_has('cmp-1', 'cmp-2', aggregate='zone-a'),
        *scene.placement_has('zone-a', node='cmp-2')]


def add_to_second(scene: Scene) -> list[str]:
    """add host cmp-1 to rack-7 too: placement has it in both"""
    return [
        *scene.run('nova', 'aggregate-add-host', 'rack-7', 'cmp-1'),
        *scene.placement_has('zone-a', 'rack-7', node='cmp-1')]


def add_many_nodes(scene: Scene) -> list[str]:
    """add host ironic-1 with three compute nodes: placement has all"""
    return [
        *scene.run('openstack', 'aggregate', 'add', 'host', 'zone-a',
                   'ironic-1'),
        *scene.placement_has('zone-a', node='ironic-1-node-1'),
        *scene.placement_has('zone-a', node='ironic-1-node-2'),
        *scene.placement_has('zone-a', node='ironic-1-node-3')]


def add_foreign(scene: Scene) -> list[str]:
    """add host cmp-4, in another tool's aggregate: it is in both"""
    return [
        *scene.associate('cmp-4', FOREIGN),
        *scene.run('nova', 'aggregate-add-host', 'zone-a', 'cmp-4'),
        *scene.placement_has('zone-a', 'of-another-tool', node='cmp-4')]


def add_while_down(scene: Scene) -> list[str]:
    """stop placement, add host cmp-3: nova accepts it and has it"""
    print('(placement stops)')
    scene.cloud.stop('placement')
    return [
        *scene.run('openstack', 'aggregate', 'add', 'host', 'zone-a',
                   'cmp-3'),
        *scene.nova_has('cmp-1', 'cmp-2', 'cmp-3', 'cmp-4', 'ironic-1',
                        aggregate='zone-a')]


def back(scene: Scene) -> list[str]:
    """start placement: it does not have cmp-3 yet"""
    print('(placement starts)')
    scene.cloud.start('placement')
    return scene.placement_has(node='cmp-3')


def sync_addition(scene: Scene) -> list[str]:
    """sync: placement has cmp-3"""
    return [*scene.sync(), *scene.placement_has('zone-a', node='cmp-3')]


def remove(scene: Scene) -> list[str]:
    """remove host cmp-2 from zone-a: placement no longer has it"""
    return [
        *scene.run('openstack', 'aggregate', 'remove', 'host', 'zone-a',
                   'cmp-2'),
        *scene.placement_has(node='cmp-2')]


def remove_foreign(scene: Scene) -> list[str]:
    """remove host cmp-4 from zone-a: the other aggregate stays"""
    return [
        *scene.run('nova', 'aggregate-remove-host', 'zone-a', 'cmp-4'),
        *scene.placement_has('of-another-tool', node='cmp-4')]


def remove_while_down(scene: Scene) -> list[str]:
    """stop placement, remove host cmp-3: nova accepts and removes it"""
    print('(placement stops)')
    scene.cloud.stop('placement')
    return [
        *scene.run('openstack', 'aggregate', 'remove', 'host', 'zone-a',
                   'cmp-3'),
        *scene.nova_has('cmp-1', 'ironic-1', aggregate='zone-a')]


def sync_removal(scene: Scene) -> list[str]:
    """start placement, sync: placement no longer has cmp-3"""
    print('(placement starts)')
    scene.cloud.start('placement')
    return [*scene.sync(), *scene.placement_has(node='cmp-3')]


def delete(scene: Scene) -> list[str]:
    """delete rack-7, which also has shared storage: placement removes it"""
    rack = scene.observer.uuid('rack-7')
    return [
        *scene.associate('storage-1', rack),
        *scene.run('nova', 'aggregate-remove-host', 'rack-7', 'cmp-1'),
        *scene.placement_has('zone-a', node='cmp-1'),
        *scene.run('openstack', 'aggregate', 'delete', 'rack-7'),
        *scene.placement_has(node='storage-1')]


def start_agent(scene: Scene) -> list[str]:
    """start the agent; add host cmp-4 to new aggregate rack-9: both have it"""
    if not scene.stock:
        print('(the agent starts)')
        scene.cloud.start('agent-1')
    return [
        *scene.run('nova', 'aggregate-create', 'rack-9'),
        *scene.run('nova', 'aggregate-add-host', 'rack-9', 'cmp-4'),
        *scene.nova_has('cmp-4', aggregate='rack-9'),
        *scene.placement_has('rack-9', 'of-another-tool', node='cmp-4')]


def change_while_down(scene: Scene) -> list[str]:
    """stop placement; add cmp-2, remove cmp-1, delete rack-9: nova accepts"""
    print('(placement stops)')
    scene.cloud.stop('placement')
    return [
        *scene.run('openstack', 'aggregate', 'add', 'host', 'zone-a',
                   'cmp-2'),
        *scene.run('openstack', 'aggregate', 'remove', 'host', 'zone-a',
                   'cmp-1'),
        *scene.run('openstack', 'aggregate', 'remove', 'host', 'rack-9',
                   'cmp-4'),
        *scene.run('openstack', 'aggregate', 'delete', 'rack-9'),
        *scene.nova_has('cmp-2', 'ironic-1', aggregate='zone-a')]


def kill(scene: Scene) -> list[str]:
    """kill -9 nova-api while it adds cmp-3, and start it again"""
    nova = scene.cloud.nova()
    # Get the token now, so that the next call begins at once.
    nova.get('/os-aggregates')
    zone = scene.observer.identifier('zone-a')

    def add() -> None:
        # There is no answer: the process is killed meanwhile.
        with contextlib.suppress(exceptions.ClientException):
            nova.post('/os-aggregates/%s/action' % zone, json={
                'add_host': {'host': 'cmp-3'}}, connect_retries=0)

    request = threading.Thread(target=add)
    request.start()
    request.join(KILLED_AFTER)
    scene.cloud.kill('nova-api-1')
    request.join()
    print('(nova-api is killed and starts again)')
    scene.cloud.start('nova-api-1')
    added = 'cmp-3' in scene.observer.hosts('zone-a')
    print('(cmp-3 was %sadded before)' % ('' if added else 'not ',))
    return []


def recover(scene: Scene) -> list[str]:
    """start placement: it is in sync within seconds, without any command"""
    print('(placement starts)')
    scene.cloud.start('placement')
    started = time.monotonic()
    different = scene.nodes.values()
    while different and time.monotonic() - started < RECOVERED_AFTER:
        different = [row.node for row in scene.observer.compare(
            scene.nodes.values()) if not row.equal]
        time.sleep(0.2)
    if different:
        return ['%s differs after %s s' % (node.name, RECOVERED_AFTER)
                for node in different]
    print('(equal after %.1f s; the agent says:)' % (
        time.monotonic() - started,))
    print(*['  %s' % line for line in scene.cloud.agent_lines()], sep='\n')
    return []


def equal(scene: Scene) -> list[str]:
    """compare nova and placement: they are equal for every host"""
    rows = scene.observer.compare(scene.nodes.values())
    print()
    print(observer.table(rows))
    print()
    return ['%s differs' % row.node.name for row in rows if not row.equal]


STORY = (
    create, rename, add, add_with_nova, add_to_second, add_many_nodes,
    add_foreign, equal, add_while_down, back, sync_addition, remove,
    remove_foreign, remove_while_down, sync_removal, delete, equal,
    start_agent, change_while_down, kill, recover, equal)
