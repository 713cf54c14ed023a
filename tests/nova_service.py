# SPDX-License-Identifier: Apache-2.0
"""The API part of a real nova with two cells, in this process."""

from collections import abc
import contextlib
import dataclasses
import pathlib
from typing import Any

import fixtures
from keystoneauth1 import loading as ks_loading
from nova.api import auth
from nova.api import compute_req_id
from nova.api import openstack
from nova.api.openstack import compute
from nova import availability_zones
from nova.compute import api as compute_api
from nova.compute import rpcapi
import nova.conf
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.db import migration
from nova import objects
from nova.scheduler.client import report
from nova.tests import fixtures as nova_fixtures
from nova import utils
from oslo_db.sqlalchemy import enginefacade
from oslo_db.sqlalchemy import test_fixtures as db_fixtures
from oslo_messaging import conffixture as messaging
from oslo_messaging.notify import _impl_test as notification_driver
from oslo_utils import importutils
from oslo_utils import uuidutils
import sqlalchemy as sa
import webob

CONF = nova.conf.CONF
# Since nova 34 a single module has all thread pools.
THREAD_POOLS = importutils.try_import('nova.thread_pool_factory')
_FILES: dict[str, bytes] = {}
CELLS = ('cell0', 'cell1', 'cell2')
LONG_INDEX = 'migrations_by_host_nodes_and_status_idx'
# The headers that keystonemiddleware sets for an administrator's token.
ADMINISTRATOR = {'X-User-Id': 'admin', 'X-Project-Id': 'admin',
                 'X-Roles': 'admin', 'OpenStack-API-Version': 'compute 2.96'}


@dataclasses.dataclass(frozen=True)
class Host:
    """A host with its nova-compute and the UUIDs of its compute nodes."""

    name: str
    service: str
    nodes: tuple[str, ...]


class NovaService(fixtures.Fixture):
    """Nova's REST application, API database, cell0, cell1 and cell2.

    :param urls: empty databases to use, by name; others are SQLite files
    """

    def __init__(self, placement_url: str, placement_token: str,
                 urls: abc.Mapping[str, str]) -> None:
        super().__init__()
        self._placement_url = placement_url
        self._placement_token = placement_token
        self._urls = urls

    def _setUp(self) -> None:
        self._configure(self.useFixture(fixtures.TempDir()).path)
        self._forget()
        self.addCleanup(self._forget)
        self._create_databases()
        # As in nova's api-paste.ini, but without a keystone.
        self.app = compute_req_id.ComputeReqIdMiddleware(
            openstack.FaultWrapper(
                auth.NovaKeystoneContext(compute.APIRouterV21())))

    def _configure(self, path: str) -> None:
        self.conf = self.useFixture(nova_fixtures.ConfFixture(CONF))
        self.conf.config(state_path=path)
        # Registers the option that nova reads when its own fixture starts.
        self.useFixture(messaging.ConfFixture(CONF))
        self.conf.config(driver=['test'], group='oslo_messaging_notifications')
        self.useFixture(nova_fixtures.RPCFixture())
        for group, name in (('api_database', 'api'), ('database', 'cell0')):
            self.conf.config(connection=self._url(name), group=group)
        CONF.register_opts(ks_loading.get_auth_plugin_conf_options(
            'admin_token'), group='placement')
        self.conf.config(auth_type='admin_token', endpoint=self._placement_url,
                         token=self._placement_token, group='placement')
        self.useFixture(nova_fixtures.RealPolicyFixture())

    @staticmethod
    def file(name: str) -> pathlib.Path:
        """Return the file of a database."""
        return pathlib.Path(CONF.state_path, name + '.sqlite')

    @staticmethod
    def _forget() -> None:
        """Reset the state that nova keeps for the life of a process."""
        objects.register_all()
        objects.Service.clear_min_version_cache()
        nova_context.CELL_CACHE = {}
        nova_context.CELLS = []
        compute_api.CELLS = []
        rpcapi.reset_globals()
        NovaService.restart()
        availability_zones.reset_cache()
        notification_driver.reset()
        if THREAD_POOLS:
            # Nova's own fixtures report those of another test as a fault.
            THREAD_POOLS.reset_all_executors()
        # The same in nova 32 and 33.
        getattr(utils, 'destroy_scatter_gather_executor', bool)()

    @staticmethod
    def restart() -> None:
        """Reset nova to a process that has not used placement yet."""
        report.PLACEMENTCLIENT = None

    def _create_databases(self) -> None:
        for nova_db in api_db, main_db:
            manager = enginefacade.transaction_context()
            self.useFixture(db_fixtures.ReplaceEngineFacadeFixture(
                nova_db.context_manager, manager))
            nova_db.configure(CONF)
            self.addCleanup(manager.dispose_pool)
        self._fill('api', 'api')
        for name in CELLS:
            self._fill('main', name)
            uuid = (objects.CellMapping.CELL0_UUID if name == 'cell0'
                    else uuidutils.generate_uuid())
            objects.CellMapping(nova_context.get_admin_context(), uuid=uuid,
                                name=name, transport_url='fake:/',
                                database_connection=self._url(name)).create()

    def _url(self, name: str) -> str:
        return self._urls.get(name, 'sqlite:///%s' % self.file(name))

    def _fill(self, database: str, name: str) -> None:
        """Create the tables; only the first file is migrated."""
        if name in self._urls:
            models = api_models if database == 'api' else main_models
            engine = sa.create_engine(
                self._urls[name], poolclass=sa.pool.NullPool)
            for table in models.BASE.metadata.sorted_tables:
                # Its key is too long for MySQL, as the model has it.
                table.indexes -= {index for index in table.indexes
                                  if index.name == LONG_INDEX}
            models.BASE.metadata.create_all(engine)
            return
        path = self.file(name)
        if database not in _FILES:
            migration.db_sync(database=database)
            _FILES[database] = path.read_bytes()
        path.write_bytes(_FILES[database])

    def request(self, method: str, path: str, body: Any = None
                ) -> webob.Response:
        """Send an administrator's request to nova's REST API."""
        request = webob.Request.blank(path, method=method,
                                      headers=ADMINISTRATOR)
        if body is not None:
            request.content_type = 'application/json'
            request.json = body
        return request.get_response(self.app)

    @contextlib.contextmanager
    def in_cell(self, name: str) -> abc.Iterator[Any]:
        """Return a request context of nova that is targeted at a cell."""
        with nova_context.target_cell(nova_context.get_admin_context(),
                                      self.cell(name)) as context:
            yield context

    @staticmethod
    def cell(name: str) -> objects.CellMapping:
        """Return the mapping of a cell."""
        cells = objects.CellMappingList.get_all(
            nova_context.get_admin_context())
        return next(cell for cell in cells if cell.name == name)

    def create_host(self, name: str, nodes: int, cell: str, mapped: bool
                    ) -> Host:
        with self.in_cell(cell) as context:
            service = objects.Service(
                context, host=name, binary='nova-compute', topic='compute',
                report_count=0, disabled=False, forced_down=False)
            service.create()
        if mapped:
            objects.HostMapping(nova_context.get_admin_context(), host=name,
                                cell_mapping=self.cell(cell)).create()
        return Host(name, service.uuid, tuple(
            self.create_node(name, index, cell) for index in range(nodes)))

    def create_node(self, host: str, index: int, cell: str) -> str:
        """Create a compute node and return its UUID."""
        uuid = uuidutils.generate_uuid()
        with self.in_cell(cell) as context:
            objects.ComputeNode(
                context, uuid=uuid, host=host,
                hypervisor_hostname=node_name(host, index),
                vcpus=1, memory_mb=1, local_gb=1, vcpus_used=0,
                memory_mb_used=0, local_gb_used=0, hypervisor_type='fake',
                hypervisor_version=1, cpu_info='').create()
        return uuid

    def nodes(self) -> dict[str, str]:
        """Return every compute node: its UUID to its host."""
        found = {}
        for cell in CELLS:
            with self.in_cell(cell) as context:
                found.update(
                    (node.uuid, node.host)
                    for node in objects.ComputeNodeList.get_all(context))
        return found

    @staticmethod
    def aggregates_of(host: str) -> frozenset[str]:
        """Return the UUIDs of the aggregates that have a host as a member."""
        found = objects.AggregateList.get_by_host(
            nova_context.get_admin_context(), host)
        return frozenset(aggregate.uuid for aggregate in found)

    @staticmethod
    def add_member(aggregate: str, host: str) -> None:
        """Add a host to an aggregate, without placement."""
        objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), aggregate).add_host(host)

    @staticmethod
    def break_cell(name: str) -> None:
        """Overwrite the database of a cell."""
        NovaService.file(name).write_bytes(b'no database any more' * 999)

    @staticmethod
    def zone(host: str) -> str:
        """Return a host's availability zone, from nova's cache if cached."""
        return availability_zones.get_instance_availability_zone(
            nova_context.get_admin_context(),
            objects.Instance(host=host, availability_zone=None))

    @staticmethod
    def notifications() -> list[str]:
        """Return the event types of nova's notifications, oldest first."""
        return [message['event_type']
                for _, message, _, _ in notification_driver.NOTIFICATIONS]

    @staticmethod
    def forget_notifications() -> None:
        notification_driver.reset()


def node_name(host: str, index: int) -> str:
    """Return the name of a compute node, which its provider shares."""
    return '%s-node%d' % (host, index) if index else host
