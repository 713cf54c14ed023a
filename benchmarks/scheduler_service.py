# SPDX-License-Identifier: Apache-2.0
"""A real nova-scheduler with an HTTP interface that reports its times.

Served by ``tests/cloud/child.py`` in a separate process. A POST of JSON
replaces the message bus; everything else is nova's code.
"""

import json
import os
import time
from typing import Any
import uuid

from nova import config
from nova import context
from nova import exception
from nova import objects
from nova.scheduler import manager
from nova.scheduler import utils
from oslo_log import log as logging


CONFIGURATION = 'BENCHMARK_NOVA_CONF'
"""Environment variable with the path of nova's configuration file."""


class Scheduler:
    """Nova's SchedulerManager, with the candidates of each request."""

    def __init__(self) -> None:
        self._context = context.get_admin_context()
        self._manager = manager.SchedulerManager()
        self._placed: list[str] = []
        self._candidates: list[str] = []
        self._note_candidates(self._manager.placement_client)

    def sync(self, hosts: list[str]) -> dict[str, Any]:
        """Report no instances, twice: only a host's second report is used."""
        for host in hosts * 2:
            self._manager.sync_instance_info(self._context, host, [])
        return {}

    def schedule(self, extra_specs: dict[str, str], project: str = '',
                 zone: str = '') -> dict[str, Any]:
        """Select a destination, by default for a new project; return all."""
        spec = self._request(extra_specs, project, zone)
        self._candidates = []
        answer = self._select(spec)
        if answer['host']:
            self._placed.append(spec.instance_uuid)
        return answer

    def fill(self, extra_specs: dict[str, str], project: str,
             memories: list[int], each: int, most: int) -> dict[str, Any]:
        """Place servers of some requests in turn, until all hosts are full.

        Nova's host states are read once; only its filters and weighers run,
        what takes a server from a host, and the query of each further request.

        :param memories: MB of each request
        :param each: servers that a host has room for
        :param most: servers to place at most
        """
        specs = []
        for memory in memories:
            specs.append(self._request(extra_specs, project, ''))
            specs[-1].flavor.memory_mb = memory
        spec, *further = specs
        hosts = self._manager.host_manager
        self._select(spec)
        self._placed.append(spec.instance_uuid)
        states = list(hosts.get_host_states_by_uuids(
            self._context, self._candidates, spec))
        left = {state.host: each for state in states}
        placed, cpu, start = 0, time.process_time(), time.perf_counter()
        for other in further:
            self._manager.placement_client.get_allocation_candidates(
                self._context, utils.resources_from_request_spec(
                    self._context, other, hosts))
        while states and placed < most:
            spec = specs[placed % len(specs)]
            passed = hosts.get_filtered_hosts(states, spec)
            if not passed:
                break
            chosen = hosts.get_weighed_hosts(passed, spec)[0].obj
            self._manager._consume_selected_host(
                chosen, spec, instance_uuid=str(uuid.uuid4()))
            placed += 1
            left[chosen.host] -= 1
            states = [state for state in states if left[state.host]]
        return {'seconds': time.perf_counter() - start,
                'cpu_seconds': time.process_time() - cpu, 'placed': placed}

    def clean(self) -> dict[str, Any]:
        """Remove the allocations of all scheduled servers."""
        while self._placed:
            self._manager.placement_client.delete_allocation_for_instance(
                self._context, self._placed.pop(), force=True)
        return {}

    def _select(self, spec: Any) -> dict[str, Any]:
        """Select a destination; return it with the figures."""
        host = node = ''
        cpu, start = time.process_time(), time.perf_counter()
        try:
            [[chosen, *_alternates]] = self._manager.select_destinations(
                self._context, spec_obj=spec,
                instance_uuids=[spec.instance_uuid], return_objects=True,
                return_alternates=True)
            host, node = chosen.service_host, chosen.compute_node_uuid
        # The conductor treats both as NoValidHost.
        except exception.NoValidHost:
            pass
        except Exception as exc:
            if getattr(exc, 'exc_info', (None,))[0] != exception.NoValidHost:
                raise
        seconds = time.perf_counter() - start
        cpu = time.process_time() - cpu
        return {'host': host, 'node': node, 'seconds': seconds,
                'cpu_seconds': cpu, 'candidates': self._candidates}

    def _note_candidates(self, placement: Any) -> None:
        asked = placement.get_allocation_candidates

        def noted(*args: Any, **kwargs: Any) -> Any:
            found = asked(*args, **kwargs)
            self._candidates = sorted(found[1] or ())
            return found

        placement.get_allocation_candidates = noted

    def _request(self, extra_specs: dict[str, str], project: str, zone: str
                 ) -> Any:
        flavor = objects.Flavor(
            id=1, name='bound', flavorid='bound', memory_mb=512, vcpus=1,
            root_gb=1, ephemeral_gb=0, swap=0, rxtx_factor=1.0, disabled=False,
            is_public=True, extra_specs=extra_specs, vcpu_weight=0,
            description=None)
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        return objects.RequestSpec.from_components(
            self._context, str(uuid.uuid4()), image, flavor, None,
            objects.InstancePCIRequests(requests=[]), {}, None, zone or None,
            objects.SecurityGroupList(objects=[]),
            project_id=project or str(uuid.uuid4()), user_id=str(uuid.uuid4()))


def _load() -> Scheduler:
    config.parse_args(
        ['nova-scheduler', '--config-file', os.environ[CONFIGURATION]])
    logging.setup(config.CONF, 'nova')
    objects.register_all()
    objects.Service.enable_min_version_cache()
    return Scheduler()


_SCHEDULER = _load()


def application(environ: Any, start_response: Any) -> list[bytes]:
    """Handle a POST; the path is a method, the body its arguments."""
    body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
    answer: Any = {}
    if environ['REQUEST_METHOD'] == 'POST':
        method = {'/sync': _SCHEDULER.sync, '/clean': _SCHEDULER.clean,
                  '/schedule': _SCHEDULER.schedule,
                  '/fill': _SCHEDULER.fill}[environ['PATH_INFO']]
        answer = method(**json.loads(body))
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps(answer).encode()]
