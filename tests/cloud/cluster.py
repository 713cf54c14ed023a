# SPDX-License-Identifier: Apache-2.0
"""The cloud's Galera cluster, and its load balancers.

Each controller has a load balancer that prefers a node of its own, and the
other services have a third.
"""

import pathlib

from tests.cloud import loopback
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import statefile
from tests import galera

OTHERS = ''
HOSTS = ('controller-1', 'controller-2', OTHERS)
NODES = tuple('galera-%d' % (number + 1) for number in range(galera.NODES))
# Only InnoDB knows the position of a node that was killed. Without it, the
# node would get a copy of all data. Systemd's unit of MariaDB does the same.
AGAIN = """
if [ -e "$0/grastate.dat" ]; then
    position=$("$@" --wsrep-recover 2>&1 |
        sed -n 's/.*WSREP: Recovered position: *//p')
fi
exec "$@" ${position:+--wsrep-start-position="$position"}
"""
BALANCERS = ('galera-of-1', 'galera-of-2', 'galera-of-others')


def start(state: statefile.State, folders: list[tuple[pathlib.Path, str]]
          ) -> dict[str, str]:
    """Start the nodes and the load balancers.

    :param folders: of the nodes, and the account that runs each
    :returns: the address for each of ``HOSTS``
    """
    count = len(NODES)
    ports = loopback.free_ports(4 * count + len(BALANCERS))
    nodes = [galera.Node(name, str(folder), port) for name, (folder, _user),
             port in zip(NODES, folders, ports)]
    for node, argv, (_folder, user) in zip(
            nodes, galera.commands(nodes, ports[count:4 * count]), folders):
        is_first = node is nodes[0]
        node.fill(user or None, is_first)
        process = state.start(processes.Process(
            node.name, [*argv, galera.FIRST] if is_first else argv,
            state.log(node.name), {}, node.port, folder=node.folder,
            user=user))
        process.wait(node.is_synced, 'is not synced')
        # It joins the others when it is started again.
        process.argv = ['sh', '-c', AGAIN, str(node.data), *argv]
    state.write()
    found = {}
    for number, (host, name) in enumerate(zip(HOSTS, BALANCERS)):
        port = ports[4 * count + number]
        order = [str(node.port) for node in nodes[number:] + nodes[:number]]
        state.start(processes.Process(
            name, programs.script('balancer.py', str(port), *order),
            state.log(name), {}, port)).wait_ready()
        found[host] = galera.MYSQL_URL % port
    return found


def node(process: processes.Process) -> galera.Node:
    """Return the node that a process is."""
    return galera.Node(process.name, process.folder, process.port)
