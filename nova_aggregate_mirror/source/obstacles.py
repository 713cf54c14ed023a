# SPDX-License-Identifier: Apache-2.0
"""Why nova does not find the compute nodes of member hosts: pure, no I/O."""

from collections import abc
import shlex

from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells

# Without the option it finds no node that was mapped before.
DISCOVER = 'nova-manage cell_v2 discover_hosts --by-service'
MAP = 'run "%s"' % DISCOVER
MAP_AGAIN = ('run "nova-manage cell_v2 delete_host --cell_uuid %s --host %s", '
             'then "' + DISCOVER + '"')
MOVED = ('if it belongs in cell %s, %s, and send SIGHUP to nova-scheduler; if '
         'not, correct transport_url in nova.conf of its nova-compute')
_BACKUP = 'back up nova\'s API database, '
RENAME = ('if {new} is to stay and "openstack server list --all-projects '
          '--host {old}" lists none, ' + _BACKUP + 'replace {old} by {new} in '
          'the rows of its table aggregate_hosts, {map}, and restart '
          'nova-scheduler; otherwise stop its nova-compute, back up the '
          'database of its cell, replace {new} by {old} as host in its tables '
          'compute_nodes, instances and, unless {old} has a row there, '
          'services, set "host = {old}" in nova.conf of that nova-compute, '
          'and start it')
REMOVE = ('if it does not return, ' + _BACKUP + 'and delete the rows of the '
          'host in its table aggregate_hosts')


def find(nova: source.Nova, rows: abc.Iterable[source.NodeRow],
         mapped: abc.Mapping[str, cells.Cell],
         spellings: abc.Mapping[str, str], is_complete: bool
         ) -> abc.Mapping[str, tuple[str, str]]:
    """Describe what is wrong with each host, as far as that is known.

    :param rows: services, and nodes with their names instead of UUIDs
    :param spellings: mapped hosts that are found in each case, by lower case
    :param is_complete: whether the rows are those of all cells
    """
    places: dict[str, set[str]] = {}
    labels: dict[str, set[str]] = {}
    for row in rows:
        places.setdefault(row.host, set()).add(row.cell)
        for name in (row.node, row.host) if row.node else ():
            labels.setdefault(_label(name), set()).add(row.host)
    obstacles: dict[str, tuple[str, str]] = {}
    for host in nova.lost():
        cell, in_cells = mapped.get(host), places.get(host, set())
        step = MAP_AGAIN % (cell.uuid, shlex.quote(host)) if cell else MAP
        spelling = spellings.get(host.casefold(), host)
        renamed = labels.get(_label(host), set()) if is_complete else set()
        if spelling != host:
            obstacles[host] = _respell(nova, host, spelling)
        elif renamed and host not in renamed:
            new = plurals.some(renamed)
            obstacles[host] = (
                'no compute node, and nova has host ' + new,
                RENAME.format(old=host, new=new, map=step))
        elif in_cells and cell and cell.name not in in_cells:
            found = plurals.some(in_cells)
            obstacles[host] = (
                'mapped to cell %s, and its nova-compute is in cell %s'
                % (cell.name, found), MOVED % (found, step))
        elif in_cells and cell:
            obstacles[host] = 'no compute node', source.RESTART
        elif in_cells:
            obstacles[host] = 'no host mapping', step
        elif is_complete:
            obstacles[host] = (
                'neither nova-compute nor compute node, so that nova-api '
                'answers 404 to its removal', REMOVE)
    return obstacles


def _label(name: str) -> str:
    """Return a name without its domain."""
    return name.partition('.')[0]


def _respell(nova: source.Nova, host: str, spelling: str) -> tuple[str, str]:
    commands = []
    for name in sorted(nova.aggregates[uuid] for uuid in nova.members[host]):
        for action, member in (('remove', host), ('add', spelling)):
            commands.append('"openstack aggregate %s host %s %s"' % (
                action, shlex.quote(name), shlex.quote(member)))
    return ('nova has this member as host ' + spelling,
            'run ' + ', then '.join(commands))
