# SPDX-License-Identifier: Apache-2.0
"""What nova's host filters log about a host."""

import logging
import types

from nova.objects import instance_pci_requests as objects
from oslo_utils.fixture import uuidsentinel
import testtools

from nova_aggregate_mirror.explain import filter_runs


class TestMessages(testtools.TestCase):

    def test_requests_of_pci_devices(self):
        """They are named by the flavor's alias, or by their port."""
        state = types.SimpleNamespace(
            uuid=uuidsentinel.node, host='cmp-1', nodename='node')
        requests = objects.InstancePCIRequests(requests=[
            objects.InstancePCIRequest(count=2, alias_name='nic'),
            objects.InstancePCIRequest(
                count=1, alias_name=None, requester_id=uuidsentinel.port)])
        with filter_runs.listening([state]) as messages:
            logging.getLogger(filter_runs.NOVA_FILTERS).debug(
                '%(state)s lacks %(requests)s',
                {'state': state, 'requests': requests})
        self.assertEqual('<host> lacks 2 nic, 1 for port %s'
                         % uuidsentinel.port, messages.last_message(state))
