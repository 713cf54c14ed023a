# SPDX-License-Identifier: Apache-2.0
"""The initial content of a cloud: accounts and compute hosts."""

from collections import abc
import dataclasses
from typing import Any
import uuid

from keystoneauth1 import adapter

from tests.cloud import access
from tests.cloud import config
from tests.cloud import sql


# Down for a long time: nothing is scheduled there, and no call waits.
_LAST_SEEN = '2020-01-01 00:00:00.000000'
# Rows per statement.
_CHUNK = 5000


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node and its provider, which share name and UUID."""

    host: str
    name: str
    uuid: str


def accounts(identity: adapter.Adapter, cloud: config.Config,
             others: abc.Sequence[tuple[str, str, str]] = (),
             roles: abc.Sequence[str] = ('service',)) -> None:
    """Create the accounts of all services, and fill the catalog."""
    def create(kind: str, **values: Any) -> str:
        return access.create(identity, '/%ss' % kind, **{kind: values})['id']

    known = {role['name']: role['id']
             for role in identity.get('/roles').json()['roles']}
    project = create('project', name='service', domain_id='default')
    services = (('nova', 'compute', cloud.nova_url()),
                ('placement', 'placement', cloud.url('placement')), *others)
    for name, kind, url in services:
        user = create('user', name=name, domain_id='default',
                      password=cloud.password)
        for role in roles:
            identity.put(
                '/projects/%s/users/%s/roles/%s' % (
                    project, user, known[role]))
        service = create('service', name=name, type=kind)
        for interface in ('public', 'internal', 'admin'):
            create('endpoint', service_id=service, interface=interface,
                   url=url, region_id=config.REGION)


def nodes(hosts: abc.Sequence[str], nodes_per_host: int) -> abc.Iterator[Node]:
    """Name the compute nodes of hosts, and give each a UUID."""
    for host in hosts:
        for name in config.node_names(host, nodes_per_host):
            yield Node(host, name, str(uuid.uuid4()))


def compute_hosts(cloud: config.Config, seeded: abc.Sequence[Node],
                  cell: str = 'cell1', database: str = 'nova') -> None:
    """Insert nova's rows of hosts that once reported: thousands in seconds."""
    services(cloud, sorted({node.host for node in seeded}), cell, database)
    sql.insert(cloud.database_url(database), 'compute_nodes', [
        {'host': node.host, 'hypervisor_hostname': node.name,
         'uuid': node.uuid, 'vcpus': 8, 'memory_mb': 32768, 'local_gb': 500,
         'vcpus_used': 0, 'memory_mb_used': 0, 'local_gb_used': 0,
         'hypervisor_type': 'fake', 'hypervisor_version': 1, 'cpu_info': '{}',
         'mapped': 1, 'deleted': 0}
        for node in seeded])


def services(cloud: config.Config, hosts: abc.Sequence[str],
             cell: str = 'cell1', database: str = 'nova') -> None:
    """Insert a nova-compute service for each host, without a node."""
    # Nova-api refuses to start if a service is too old.
    version = int((cloud.directory / 'service_version').read_text())
    values = {'binary': 'nova-compute', 'topic': 'compute', 'report_count': 1,
              'disabled': False, 'forced_down': False, 'version': version,
              'deleted': 0, 'created_at': _LAST_SEEN,
              'last_seen_up': _LAST_SEEN}
    rows = [{**values, 'host': host, 'uuid': str(uuid.uuid4())}
            for host in hosts]
    sql.insert(cloud.database_url(database), 'services', rows)
    number = _cell_id(cloud, cell)
    sql.insert(cloud.database_url('nova_api'), 'host_mappings', [
        {'host': host, 'cell_id': number} for host in hosts])


def _cell_id(cloud: config.Config, name: str) -> int:
    [(number,)] = sql.execute(
        cloud.database_url('nova_api'),
        'SELECT id FROM cell_mappings WHERE name = :name', name=name)
    return number


def servers(cloud: config.Config, placed: abc.Iterable[tuple[str, str]],
            request: str, flavor: str = '') -> None:
    """Insert servers on hosts, each with the same request.

    :param placed: UUID and host of each server
    :param request: the RequestSpec as nova stores it, JSON
    :param flavor: that of the servers as nova stores it, JSON; without it they
        are in no cell, and only their requests can be read
    """
    rows = list(placed)
    for start in range(0, len(rows), _CHUNK):
        some = rows[start:start + _CHUNK]
        sql.insert(cloud.database_url('nova'), 'instances', [
            {'uuid': server, 'host': host, 'node': host, 'deleted': 0,
             'vm_state': 'active', 'display_name': 'web',
             'project_id': 'project', 'launched_at': _LAST_SEEN}
            for server, host in some])
        sql.insert(cloud.database_url('nova_api'), 'request_specs', [
            {'instance_uuid': server, 'spec': request}
            for server, _host in some])
        if flavor:
            sql.insert(cloud.database_url('nova'), 'instance_extra', [
                {'instance_uuid': server, 'flavor': flavor, 'deleted': 0}
                for server, _host in some])
            sql.insert(cloud.database_url('nova_api'), 'instance_mappings', [
                {'instance_uuid': server, 'cell_id': _cell_id(cloud, 'cell1'),
                 'project_id': 'project'} for server, _host in some])


def aggregates(cloud: config.Config,
               members: abc.Mapping[str, abc.Iterable[str]],
               metadata: abc.Mapping[str, abc.Mapping[str, str]] = {}) -> None:
    """Insert aggregates by UUID, their hosts and metadata, in nova alone."""
    numbers = {aggregate: number
               for number, aggregate in enumerate(members, start=1)}
    url = cloud.database_url('nova_api')
    sql.insert(url, 'aggregates', [
        {'id': number, 'uuid': aggregate, 'name': 'aggregate-%02d' % number}
        for aggregate, number in numbers.items()])
    hosts: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    for aggregate, number in numbers.items():
        hosts += [{'aggregate_id': number, 'host': host}
                  for host in members[aggregate]]
        values += [{'aggregate_id': number, 'key': key, 'value': value}
                   for key, value in metadata.get(aggregate, {}).items()]
    sql.insert(url, 'aggregate_hosts', hosts)
    sql.insert(url, 'aggregate_metadata', values)
