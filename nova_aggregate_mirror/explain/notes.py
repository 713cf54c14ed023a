# SPDX-License-Identifier: Apache-2.0
"""What is not explained, and what may differ in nova-scheduler: pure."""

from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror import plurals

Facts = facts.Facts

MEMORY = ('nova-scheduler has aggregates in its memory, which may be older '
          'than the database that was read here; it reads them again when it '
          'is restarted.')

OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')


def of_answer(facts: Facts) -> list[str]:
    """List what is not explained, and what may differ in nova-scheduler."""
    notes = ['Cell %s did not answer, so that its hosts are not explained: %s'
             % cell for cell in sorted(facts.nova.cells_down.items())]
    notes += facts.notes
    if facts.omitted:
        notes.append(OMITTED % facts.omitted)
    notes += ['Placement has these hosts in %s, nova does not: %s. Run '
              '"%s --prune".' % (membership, ', '.join(hosts), reasons.SYNC)
              for membership, hosts in _stale_hosts(facts)]
    if any(run.rejected and run.name in reasons.OF_AGGREGATES
           for run in facts.filter_runs):
        notes.append(MEMORY)
    notes += ['No enabled filter compares these extra specs of the flavor: '
              '%s. They exclude no host. Enable %s if they should.'
              % (', '.join(names), host_filter)
              for host_filter, names in facts.unread_extra_specs.items()]
    notes += ['No enabled filter of nova or of this package reads the '
              'metadata of aggregates by which %s would reject %s. Enable it '
              'if it should.' % (host_filter, plurals.some(hosts))
              for host_filter, hosts in facts.unread_metadata.items()]
    return notes


def _stale_hosts(facts: Facts) -> list[tuple[str, list[str]]]:
    """List hosts that are candidates only because placement is stale."""
    hosts: dict[str, set[str]] = {}
    nodes = facts.funnel.left if facts.funnel else frozenset[str]()
    for node in nodes:
        for membership in reasons.stale_memberships(facts, node):
            hosts.setdefault(membership, set()).add(facts.host(node))
    return [(membership, sorted(names))
            for membership, names in sorted(hosts.items())]
