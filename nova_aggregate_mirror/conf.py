# SPDX-License-Identifier: Apache-2.0
"""Configuration options, for nova.conf or a drop-in in nova.conf.d."""

import copy
from importlib import metadata
from typing import Any

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'aggregate_mirror', title='Mirroring of host aggregates to placement',
    help='Options for mirroring nova host aggregates to placement. The '
         'credentials are those of the ``[placement]`` section.')
DATABASE_GROUP = cfg.OptGroup(
    'aggregate_mirror_database', title='Journal of the aggregate mirror',
    help='The database of the journal, which records the hosts that are still '
         'to be mirrored. The default SQLite file is for one nova-api host '
         'with the agent on it; otherwise configure one MySQL or PostgreSQL '
         'database for all of them. Each nova needs a journal of its own.')
MIRROR, OBSERVE = 'mirror', 'observe'
"""Values of ``mode``."""
MAX_REMOVED_SHARE = 0.3
SYNC_WORKERS = 8
PACKAGE = 'nova-aggregate-mirror'
OPTS = [
    cfg.StrOpt(
        'mode', default=MIRROR, choices=[
            (MIRROR, 'Nova-api and the agent mirror host aggregates'),
            (OBSERVE, 'Nova\'s own mirroring stays in effect; the agent '
                      'compares and reports, and writes nothing to '
                      'placement')],
        help='Whether placement is changed, the same for nova-api and the '
             'agent: restart nova-api after a change, then reload the agent. '
             'Commands do what they are told in either mode.'),
    cfg.ListOpt(
        'hooks', default=['mirror'],
        help='Hooks around aggregate operations in nova-api, in order: entry '
             'points of ``nova_aggregate_mirror.hooks``. ``mirror`` replaces '
             'nova\'s own mirroring, which stays in effect if the list has '
             'an unknown name.'),
    cfg.ListOpt(
        'request_filters', default=[],
        help='Request filters that narrow nova-scheduler\'s queries to '
             'placement to hosts of matching aggregates: %s. Add '
             '``nova_aggregate_mirror.scheduler.filters.all_filters`` to '
             '``[filter_scheduler] available_filters``, and '
             '``AggregateMembershipFilter`` to ``enabled_filters``: without '
             'it or nova\'s host filter of the same kind nova-scheduler does '
             'not start.' % ', '.join(
                 '``%s``' % entry_point.name
                 for entry_point in metadata.distribution(PACKAGE).entry_points
                 if entry_point.group.endswith('.request_filters'))),
    cfg.IntOpt(
        'max_member_of_bytes', default=1200, min=0, max=65536, metavar='bytes',
        help='Maximum bytes of the aggregate conditions in one query to '
             'placement; 39 per aggregate. ``AggregateMembershipFilter`` '
             'checks those that do not fit. The default suits an unconfigured '
             'uWSGI. If nova-scheduler logs that it was too low, raise it to '
             '6000 with Apache, or as ``buffer-size`` of uWSGI allows.'),
    cfg.FloatOpt(
        'inline_timeout', default=5.0, min=0.1, max=120.0, metavar='seconds',
        help='Seconds that mirroring may add to one aggregate request, and '
             '``segment_addresses`` to one scheduling request. Changes that '
             'are not mirrored in time stay in the journal. Lower it if API '
             'users must not wait; raise it if aggregates of hosts with many '
             'ironic nodes should be complete when the request returns.'),
    cfg.FloatOpt(
        'inline_backoff', default=30.0, min=0.0, max=3600.0, metavar='seconds',
        help='Seconds for which a nova-api process does not ask placement, '
             'the journal or a cell that has not answered in time, so that a '
             'hung one does not occupy every worker. After a fast failure of '
             'placement it is at most one second. 0 disables it.'),
    cfg.FloatOpt(
        'request_timeout',
        default=60.0, min=1.0, max=3600.0, metavar='seconds',
        help='Maximum seconds of one placement request of a full sync. Raise '
             'it if placement needs longer to list all resource providers.'),
    cfg.FloatOpt(
        'cell_timeout', default=60.0, min=0.1, max=3600.0, metavar='seconds',
        help='Maximum seconds that a full sync waits for a cell\'s database. '
             'The hosts of a cell that does not answer are not changed.'),
    cfg.IntOpt(
        'sync_workers', default=SYNC_WORKERS, min=1, max=64,
        help='Number of concurrent placement requests of a full sync and of '
             'the agent. Lower it if placement becomes slow for its other '
             'clients during a sync.'),
    cfg.IntOpt(
        'max_call_age',
        # More than four times the longest inline_timeout: a journal row must
        # not be closed while its operation still runs.
        default=600, min=500, max=86400, metavar='seconds',
        help='Maximum seconds that one aggregate request can run in nova-api: '
             'for this time the host of a request whose end is unknown is '
             'mirrored repeatedly. Raise it if the load balancer allows '
             'longer requests.'),
    cfg.FloatOpt(
        'sync_interval', default=60.0, min=1.0, max=86400.0, metavar='seconds',
        help='Seconds between two full syncs of the agent, within which a '
             'recreated resource provider or a change by another tool is '
             'reconciled. Raise it to reduce the load on placement.'),
    cfg.BoolOpt(
        'prune', default=True,
        help='Whether full syncs of the agent and of ``placement '
             'sync_aggregates`` also remove stale owned associations. What '
             'users remove or delete through nova-api is removed from '
             'placement anyway, as long as the journal or placement can be '
             'reached; otherwise nova-api logs the command for it.'),
    cfg.FloatOpt(
        'max_removed_share', default=MAX_REMOVED_SHARE, min=0.0, max=1.0,
        help='Share of all owned associations above which one full sync, if '
             'it would remove more than ten, removes none and reports an '
             'error: the database may be damaged or wrong. Raise it '
             'temporarily for a planned change of that size.'),
    cfg.IntOpt(
        'audit_interval', default=0, min=0, max=7 * 86400, metavar='seconds',
        help='Seconds between two audits of the agent, which count the '
             'servers that ``placement audit_servers`` lists; 0 disables '
             'them. An audit reads every server: use 3600 or more for tens of '
             'thousands. The agent then needs nova-scheduler\'s options.'),
    cfg.IntOpt(
        'leader_lease', default=10, min=3, max=3600, metavar='seconds',
        help='Seconds after which another agent takes over from one that does '
             'not renew its lease; one that is stopped releases it. Raise it '
             'if the journal is often unavailable for longer.'),
    cfg.HostAddressOpt(
        'metrics_host', default='127.0.0.1',
        help='Address on which the agent serves ``/metrics`` for Prometheus '
             'and ``/healthz``, without authentication. Clients cannot use up '
             'the resources of the agent.'),
    cfg.PortOpt(
        'metrics_port', default=9184,
        help='Port of ``/metrics`` and ``/healthz``. 0 disables both.'),
    cfg.StrOpt(
        # Version 1 warns before version 2 fails, as nova announced it in the
        # spec mirror-host-aggregates-in-placement.
        'missing_credentials', default='warn', choices=[
            ('warn', 'Log a warning; operations stay in the journal until '
                     'the credentials are configured'),
            ('fail', 'Do not start nova-api; the error names the missing '
                     'option')],
        help='Action at the start of nova-api without credentials in '
             '``[placement]``, and of a nova-scheduler that uses the segments '
             'of routed networks without credentials in ``[neutron]``. The '
             'default is ``fail`` from version 2 on.'),
]


def observes(conf: cfg.ConfigOpts) -> bool:
    """Check whether nova mirrors by itself and the agent only compares."""
    return bool(conf.aggregate_mirror.mode == OBSERVE)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of this package; idempotent.

    :param conf: nova's configuration. Nova registers ``state_path``, which
        the default of the journal's connection refers to.
    """
    for group, options in list_opts():
        # oslo.config stores the state of a group in the group object itself.
        conf.register_group(copy.deepcopy(group))
        conf.register_opts(options, group=group.name)


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return the options for oslo-config-generator and the documentation."""
    # The client has no journal, and is installed without oslo.db.
    from oslo_db import options as db_options
    # They are nova's own objects: changed in place, they would change nova.
    options: list[cfg.Opt] = copy.deepcopy(db_options.database_opts)
    cfg.set_defaults(options, connection=(
        'sqlite:///$state_path/aggregate_mirror/journal.sqlite'))
    return [(GROUP, OPTS), (DATABASE_GROUP, options)]
