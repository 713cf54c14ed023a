# SPDX-License-Identifier: Apache-2.0
"""Programs of the full cloud's processes that no package provides.

Run by path, never imported, like ``tests/cloud/child.py``.
"""

import contextlib
import importlib
import json
import pathlib
import sys
import time
from typing import Any
import uuid

# The first report is lost if neutron's workers start later.
REPORT_INTERVAL = 5
# No server gets one unless [pci] device_spec names it.
DEVICES = [
    {'address': '0000:0%d:00.0' % number, 'vendor_id': '15b3',
     'product_id': '1018', 'dev_type': 'type-PCI', 'numa_node': None,
     'parent_addr': None, 'label': 'label_15b3_1018', 'status': 'available'}
    for number in (1, 2)]


def compute(conf: str, refusal: str, *nodes: str) -> None:
    """Run a nova-compute that can refuse to build a server.

    :param refusal: a file; the host that removes it refuses one build
    :param nodes: the names of its nodes, if several; their UUIDs are stable
    """
    # Import this first: it decides about threads.
    program = importlib.import_module('nova.cmd.compute')
    fake = importlib.import_module('nova.virt.fake')
    node = importlib.import_module('nova.virt.node')
    exception = importlib.import_module('nova.exception')

    class OneNode(fake.FakeDriverWithoutFakeNodes):
        def spawn(self, *args: Any, **kwargs: Any) -> None:
            with contextlib.suppress(FileNotFoundError):
                pathlib.Path(refusal).unlink()
                raise exception.InstanceDeployFailure(reason='a test wants it')
            super().spawn(*args, **kwargs)

        def get_available_resource(self, nodename: str) -> dict:
            return {**super().get_available_resource(nodename),
                    'pci_passthrough_devices': json.dumps(DEVICES)}

    class SeveralNodes(OneNode):
        def init_host(self, host: str) -> None:
            super().init_host(host)
            self._set_nodes(list(nodes))

        def get_available_resource(self, nodename: str) -> dict:
            return {**super().get_available_resource(nodename),
                    'uuid': _identity(nodename)}

        def get_nodenames_by_uuid(self, refresh: bool = False) -> dict:
            return {_identity(name): name for name in nodes}

    def _identity(name: str) -> str:
        return str(uuid.uuid5(uuid.UUID(node.get_local_node_uuid()), name))

    # Nova loads drivers from its own modules only.
    fake.OneNode, fake.SeveralNodes = OneNode, SeveralNodes
    sys.argv = ['nova-compute', '--config-file', conf]
    program.main()


def network_agents(conf: str, networks: str) -> None:
    """Report the agents of all hosts to neutron: it needs live agents.

    Neutron binds ports only to hosts with a live agent. These agents plug
    nothing, and with nova's fake driver nothing waits for that.

    :param networks: JSON, the physical networks of each host
    """
    # Import this first: it decides about threads.
    importlib.import_module('neutron.cmd.server')
    common = importlib.import_module('neutron.common.config')
    rpc = importlib.import_module('neutron.agent.rpc')
    context = importlib.import_module('neutron_lib.context')
    # This registers the interval at which agents report.
    options = importlib.import_module('neutron.conf.agent.common')
    options.register_agent_state_opts_helper(common.cfg.CONF)
    common.register_common_config_options()
    common.init(['--config-file', conf])
    common.setup_logging()
    reports = rpc.PluginReportStateAPI('q-reports-plugin')
    first = True
    while True:
        for host, names in json.loads(networks).items():
            state = {
                'binary': 'neutron-openvswitch-agent', 'host': host,
                'agent_type': 'Open vSwitch agent', 'topic': 'N/A',
                'configurations': {
                    'bridge_mappings': {name: 'br-%s' % (
                        name) for name in names},
                    'tunnel_types': [], 'tunneling_ip': None}}
            if first:
                state['start_flag'] = True
            reports.report_state(
                context.get_admin_context_without_session(), state)
        first = False
        time.sleep(REPORT_INTERVAL)


if __name__ == '__main__':
    {'compute': compute,
     'network_agents': network_agents}[sys.argv[1]](*sys.argv[2:])
