# SPDX-License-Identifier: Apache-2.0
"""Servers of one request, one after the other, without nova's filters."""

import types

from nova import objects
import testtools

from nova_aggregate_mirror.explain import filling
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.scheduler import request_spec


class Fitted(filling.Filling):
    """The request of each server is fitted to the cells of its host."""

    def __init__(self, servers):
        super().__init__(None, ())
        self._left = servers
        self.pagesizes = []

    def choose(self, spec, _answers, _hosts=None):
        [cell] = spec.numa_topology.cells
        self.pagesizes.append(cell.pagesize)
        self._left -= 1
        host = types.SimpleNamespace(obj=types.SimpleNamespace(host='h1'))
        return [host] if self._left >= 0 else []

    def place(self, _server, _state, spec):
        spec.numa_topology.cells[0].pagesize = 1048576


class TestFill(testtools.TestCase):

    def test_each_server_has_the_request_of_the_first(self):
        """Nova-api builds a request for each: here, for pages of any size."""
        objects.register_all()
        spec = request_spec.RequestSpec(
            instance_group=None, scheduler_hints={},
            numa_topology=objects.InstanceNUMATopology(cells=[
                objects.InstanceNUMACell(
                    id=0, cpuset={0}, pcpuset=set(), memory=1024,
                    pagesize=-2)]))
        fitted = Fitted(3)
        fitted.fill(spec, (), reconcile.Progress())
        self.assertEqual([-2] * 4, fitted.pagesizes)
