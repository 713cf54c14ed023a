# SPDX-License-Identifier: Apache-2.0
"""What is not explained, and what may differ in nova-scheduler: pure."""

from nova_aggregate_mirror import commands
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror import plurals

MEMORY = ('nova-scheduler has aggregates in its memory, which may be older '
          'than the database that was read here; it reads them again when it '
          'is restarted.')
OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')
STALE = ('Placement has these hosts in %s, nova does not: %s. Run "%s '
         '--prune".')
NOT_LOOKED_AT = {
    explanation.CREATE: 'quotas, rights to the flavor, image, volumes, '
    'addresses, and the ports of a server that was never on a host',
    'resize': 'quotas, rights to the flavor, state and image of the server, '
    'addresses',
    explanation.MIGRATE: 'state of the server, volumes, addresses',
    explanation.LIVE_MIGRATE: 'state of the server, and what nova-conductor '
    'and nova-compute check of both hosts: nova-scheduler is asked again '
    'without a host that they refuse ([DEFAULT] migrate_max_retries)',
    'evacuate': 'state of the server, whether its host is down, volumes, '
    'addresses',
    explanation.UNSHELVE: 'quotas, state and image of the server, volumes, '
    'addresses',
    explanation.REBUILD: 'state of the server, quotas, the image and its '
    'traits, volumes'}
"""What nova-api, nova-conductor, cinder and neutron may refuse, by operation.
"""


def of_facts(facts: facts.Facts) -> list[str]:
    """Return the notes of the request, and those that follow from facts."""
    notes = list(facts.answer.notes)
    if facts.omitted:
        notes.append(OMITTED % facts.omitted)
    # They are candidates only because placement is stale.
    hosts: dict[str, set[str]] = {}
    for node in facts.funnel.left if facts.funnel else ():
        for membership in reasons.stale_memberships(facts, node):
            hosts.setdefault(membership, set()).add(facts.host(node))
    for membership, names in sorted(hosts.items()):
        listed = ', '.join(sorted(names))
        notes.append(STALE % (membership, listed, commands.SYNC))
    rejecting = {run.name for run in facts.filter_runs if run.rejected}
    if rejecting & reasons.OF_AGGREGATES:
        notes.append(MEMORY)
    notes += ['No enabled filter compares these extra specs of the flavor: '
              '%s. They exclude no host. Enable %s if they should.'
              % (', '.join(names), host_filter)
              for host_filter, names in facts.unread_extra_specs.items()]
    notes += ['No enabled filter of nova or of this package reads the '
              'metadata of aggregates by which %s would reject %s. Enable it '
              'if it should.' % (host_filter, plurals.some(rejected))
              for host_filter, rejected in facts.unread_metadata.items()]
    return notes
