# SPDX-License-Identifier: Apache-2.0
"""What a cloud consists of: its directory, ports, databases and hosts."""

from collections import abc
import dataclasses
import pathlib
from typing import Any
from typing import Self

REGION = 'RegionOne'
# Processes with a port; an agent's port serves its metrics.
SMALL = ('keystone', 'placement', 'nova-api-1', 'agent-1')
FULL = (*SMALL, 'nova-api-2', 'agent-2', 'glance', 'neutron')
# All hosts reach the first network; only the hosts of a rack reach its
# network.
PUBLIC = 'public'
RACKS = ('rack-1', 'rack-2')
NODES = 3

Section = dict[str, str | None]
Options = abc.Mapping[str, abc.Mapping[str, str | None]]
"""Sections of a configuration file, with their options; None removes one."""


def node_names(host: str, count: int) -> list[str]:
    """Name a host's compute nodes; the only one has the host's name."""
    if count == 1:
        return [host]
    return ['%s-node-%d' % (host, number) for number in range(1, count + 1)]


@dataclasses.dataclass(frozen=True)
class Config:
    """What a cloud consists of.

    :param directory: everything the cloud writes is below it
    :param database: ``sqlite``, or the URL of a server with a prefix of
        database names, as in mysql+pymysql://root@127.0.0.1/demo_; the empty
        databases with this prefix and ``keystone``, ``placement``,
        ``nova_api``, ``nova_cell0`` and ``nova`` have to exist, in the full
        profile also ``glance``, ``neutron`` and ``journal``
    :param hosts: the number of hosts with a nova-compute; the last has three
        nodes
    :param token_seconds: how long keystone's tokens are valid
    """

    directory: pathlib.Path
    database: str
    password: str
    ports: abc.Mapping[str, int]
    nova_options: Options = dataclasses.field(default_factory=dict)
    transport_url: str = 'fake:/'
    hosts: int = 0
    token_seconds: int = 3600

    @property
    def is_full(self) -> bool:
        """Check whether this is the full profile."""
        return self.hosts > 0

    @property
    def auth_url(self) -> str:
        return '%s/v3' % self.url('keystone')

    @property
    def nova_conf(self) -> str:
        return self.path('nova.conf')

    @property
    def controllers(self) -> tuple[int, ...]:
        """Return the numbers of the controllers, which have a nova-api."""
        return tuple(number for number in (1, 2)
                     if 'nova-api-%d' % number in self.ports)

    @property
    def refusal(self) -> pathlib.Path:
        """Return a file that makes the next build of a server fail."""
        return self.directory / 'state' / 'refusal'

    def url(self, process: str) -> str:
        """Return the URL of a process's port."""
        return 'http://127.0.0.1:%d' % self.ports[process]

    def nova_url(self, controller: int = 1) -> str:
        """Return the endpoint of a controller's nova-api."""
        return '%s/v2.1' % self.url('nova-api-%d' % controller)

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a service's database."""
        if self.database == 'sqlite':
            return 'sqlite:///%s/%s.sqlite' % (self.directory, name)
        # For each connection that may use TLS, PyMySQL reads all certificates
        # of this machine.
        return '%s%s?charset=utf8mb4&ssl_disabled=true' % (self.database, name)

    def path(self, name: str) -> str:
        """Return the path of a file or folder of the cloud."""
        return str(self.directory / name)

    def host_names(self) -> list[str]:
        """Return the hosts with a nova-compute; the last has several nodes."""
        return [*('compute-%s' % number for number in range(1, self.hosts)),
                'ironic-1']

    def nodes_of(self, host: str) -> list[str]:
        """Return the names of a host's compute nodes."""
        return node_names(host, NODES if host.startswith('ironic') else 1)

    def rack_of(self, host: str) -> str:
        """Return a host's physical network other than the public network."""
        return RACKS[self.host_names().index(host) % len(RACKS)]

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON, from which ``from_dict`` makes an equal."""
        return dataclasses.asdict(self) | {'directory': str(self.directory)}

    @classmethod
    def from_dict(cls, values: abc.Mapping[str, Any]) -> Self:
        """Read the output of ``to_dict``."""
        return cls(**{**values, 'directory': pathlib.Path(
            values['directory'])})
