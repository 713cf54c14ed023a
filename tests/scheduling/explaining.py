# SPDX-License-Identifier: Apache-2.0
"""Explanations of requests in the complete nova of the scheduling tests."""

import argparse
from collections import abc
import dataclasses
from typing import Any

from nova.conf import CONF
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import exception as nova_exception
from nova import objects
from nova.scheduler.client import report
from nova.scheduler import manager as nova_manager
import oslo_messaging
import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror.explain import conditions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import gather
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.explain import stored
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import database_servers
from tests import patience
from tests.scheduling import cloud


def named(answer: explanation.Answer) -> dict[str, explanation.Verdict]:
    """Return the verdicts by host, whose name is in the reasons."""
    return {verdict.host: dataclasses.replace(
        verdict, reason=verdict.reason.with_host(verdict.host))
        for verdict in answer.verdicts}


def accepted(answer: explanation.Answer) -> list[str]:
    """Return the names of the acceptable hosts, in their order."""
    return [verdict.host for verdict in answer.acceptable]


class Placement(client.Client):
    """The placement of nova's fixtures, which has no endpoint or token."""

    asked = 0
    """Number of requests."""

    def __init__(self) -> None:
        super().__init__(CONF)

    def read(self, path: str, parse: client.Parse[Any],
             provider: str | None = None, version: str = client.MICROVERSION
             ) -> Any:
        self.asked += 1
        response = report.report_client_singleton().get(path, version=version)
        call = errors.Call(
            lambda: causes.openstack_client('placement'), 'GET %s' % path)
        return parse(call, client.parse_document(call, response, provider))

    def put(self, *_arguments: Any) -> Any:
        raise AssertionError('an explanation writes nothing')


def engine(pool: connections.Pool) -> Any:
    """Return the engine of nova's fixtures for one of this package's pools."""
    context = nova_context.get_admin_context()
    for mapping in objects.CellMappingList.get_all(context):
        if mapping.database_connection == pool._find_url():
            with nova_context.target_cell(context, mapping) as target:
                return target.db_connection.writer.get_engine()
    return api_db.get_engine()


class ExplainingTest(cloud.CloudTest):
    """Has a method that explains requests."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(cloud.base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.connections.Pool._opened', engine))
        self._providers: dict[str, str] = {}
        self.context = nova_context.get_admin_context()

    def explain(self, request: requests.SchedulingRequest,
                hosts: abc.Collection[str] = ()) -> explanation.Answer:
        cloud = self.cloud()
        return conditions.explain(gather.gather(
            cloud, cloud.nova.read_all(), request, hosts))

    def cloud(self) -> gather.Cloud:
        """Return nova and placement, and count what that is asked."""
        self.asked = Placement()
        limits = engines.Limits(patience.seconds(60))
        return gather.Cloud(
            self.context, database.DatabaseSource(limits), self.asked,
            database_servers.DatabaseServers(limits))

    def explain_server(self, server: Any, operation: str = 'create',
                       **changes: Any) -> explanation.Answer:
        return self.explain(self.of_server(server, operation, **changes))

    def of_server(self, server: Any, operation: str = '', **changes: Any
                  ) -> requests.SchedulingRequest:
        """Return the request of a server that exists."""
        return stored.of_server(
            self.context, Placement(), server['id'], operation, **changes)

    def explain_flavor(self, flavor: str, zone: str = '', **options: Any
                       ) -> explanation.Answer:
        return self.explain(self.described(flavor, zone, **options))

    def described(self, flavor: str, zone: str = '', **options: Any
                  ) -> requests.SchedulingRequest:
        """Return the request of a server that does not exist."""
        args = {'flavor': flavor, 'volume': False, 'tenant': '', 'hints': {},
                'project': self.api.project_id, 'zone': zone, 'count': 1,
                'networks': [], 'ports': [], **options}
        image = args.pop('image', {'properties': {}})
        return requests.of_description(
            self.context, argparse.Namespace(**args), image)

    def compared(self, request: abc.Callable[[], requests.SchedulingRequest]
                 ) -> explanation.Answer:
        """Explain; nova must choose the same hosts, the heaviest first."""
        answer = self.explain(request())
        weights = {verdict.host: verdict.weight
                   for verdict in answer.acceptable}
        chosen = self.chosen(request)
        self.assertEqual(set(chosen), weights.keys())
        for host in chosen[:1]:
            self.assertEqual(max(weights.values()), weights[host])
        return answer

    def compared_flavor(self, flavor: str, zone: str = '', **options: Any
                        ) -> explanation.Answer:
        """Explain and compare the request of a server that does not exist."""
        return self.compared(lambda: self.described(flavor, zone, **options))

    def compared_server(self, server: Any, operation: str
                        ) -> explanation.Answer:
        """Explain and compare the request of a server that exists."""
        return self.compared(lambda: self.of_server(server, operation))

    def chosen(self, request: abc.Callable[[], requests.SchedulingRequest]
               ) -> list[str]:
        """Ask nova again and again, without the hosts that it has chosen."""
        scheduler, found = nova_manager.SchedulerManager(), list[str]()
        while True:
            spec = request().spec
            spec.ignore_hosts = [*(spec.ignore_hosts or ()), *found]
            choices = self.select(scheduler, spec)
            if not choices:
                return found
            self.assertNotIn(choices[0]['host'], found)
            found.append(choices[0]['host'])

    def select(self, scheduler: Any, spec: Any, **options: Any) -> Any:
        """Return what nova chooses; nothing for NoValidHost."""
        try:
            return scheduler.select_destinations(
                self.context, spec_obj=spec, **options)
        except oslo_messaging.ExpectedException as exc:
            self.assertIs(nova_exception.NoValidHost, exc.exc_info[0])
            return []

    def reasons(self, answer: explanation.Answer) -> dict[str, str]:
        """Return each host with the phrase of its reason."""
        return {one.host: one.reason.phrase for one in answer.verdicts}

    def targeted(self) -> Any:
        """Return a context of the cell that has the hosts."""
        return self.enterContext(nova_context.target_cell(
            self.context, self.cell_mappings['cell1']))

    def execute(self, cell: str, statement: str) -> None:
        """Change a cell's database."""
        with nova_context.target_cell(
                self.context, self.cell_mappings[cell]) as target:
            with target.db_connection.writer.get_engine().begin() as database:
                database.execute(sa.text(statement))

    def uuid(self, aggregate: int) -> str:
        """Return the UUID of an aggregate."""
        found: str = self.admin_api.api_get(
            '/os-aggregates/%d' % aggregate).body['aggregate']['uuid']
        return found

    def service(self, host: str) -> str:
        """Return the ID of a host's nova-compute."""
        found: str = self.admin_api.get_services(
            binary='nova-compute', host=host)[0]['id']
        return found

    def set_aggregates(self, host: str, *uuids: str) -> None:
        """Change a host's aggregates in placement, without nova."""
        self._put(host, 'aggregates', aggregates=list(uuids))

    def set_trait(self, host: str, trait: str = 'CUSTOM_FAST') -> None:
        """Add a trait to a host's provider."""
        if trait.startswith('CUSTOM_'):
            self.placement.put('/traits/' + trait, None, version='1.6')
        found = self.placement.get(
            self._url(host, 'traits'), version='1.6').body['traits']
        self._put(host, 'traits', traits=[*found, trait])

    def reserve(self, host: str, name: str, amount: int | None = None) -> None:
        """Reserve some or all of an inventory."""
        found = self._inventories(host)
        found[name]['reserved'] = (
            found[name]['total'] if amount is None else amount)
        self._put(host, 'inventories', inventories=found)

    def provide(self, host: str, name: str, total: int) -> None:
        """Add an inventory of a custom resource class."""
        self.placement.put('/resource_classes/' + name, None, version='1.7')
        self._put(host, 'inventories', inventories={
            **self._inventories(host), name: {'total': total}})

    def _inventories(self, host: str) -> dict[str, Any]:
        return self.placement.get(self._url(host, 'inventories'),
                                  version='1.26').body['inventories']

    def create_child(self, host: str, name: str) -> None:
        """Create a provider below that of a host."""
        parent = self._url(host, '').split('/')[2]
        self._providers[name] = self.placement.post('/resource_providers', {
            'name': name, 'parent_provider_uuid': parent},
            version='1.36').body['uuid']

    def delete_provider(self, host: str) -> int:
        """Delete a host's provider; return the status."""
        status: int = self.placement.delete(
            self._url(host, '').rstrip('/'), version='1.36').status
        return status

    def _url(self, host: str, what: str) -> str:
        # It is that of the compute node, and remains the same.
        if host not in self._providers:
            self._providers[host] = self._get_provider_uuid_by_host(host)
        return '/resource_providers/%s/%s' % (self._providers[host], what)

    def _put(self, host: str, what: str, **body: Any) -> None:
        provider = self.placement.get(
            self._url(host, '').rstrip('/'), version='1.36').body
        body['resource_provider_generation'] = provider['generation']
        status = self.placement.put(
            self._url(host, what), body, version='1.26').status
        assert status == 200, status
