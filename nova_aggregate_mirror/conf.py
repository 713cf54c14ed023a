# SPDX-License-Identifier: Apache-2.0
"""Configuration options, for nova.conf or a drop-in in nova.conf.d.

Long because it has every option with its help text.
"""

from collections import abc
import contextlib
import copy
from importlib import metadata
import math
import pathlib
from typing import Any

from oslo_config import cfg
from oslo_db import options as db_options

from nova_aggregate_mirror import exceptions

GROUP = cfg.OptGroup(
    'aggregate_mirror',
    title='Mirroring of host aggregates to placement',
    help='Options for mirroring nova host aggregates to placement. The '
         'credentials are those of the ``[placement]`` section.')

DATABASE_GROUP = cfg.OptGroup(
    'aggregate_mirror_database',
    title='Journal of the aggregate mirror',
    help='Options for the database of the journal, which records the hosts '
         'that are still to be mirrored. With a single controller, the '
         'default SQLite file is sufficient, and the agent must run on that '
         'controller. With several controllers, or with the agent in a '
         'container or on a separate host, configure one MySQL or PostgreSQL '
         'database for all of them. Separate nova deployments must not share '
         'a journal.')

DEFAULT_CONNECTION = 'sqlite:///$state_path/aggregate_mirror/journal.sqlite'

# Of oslo.db: empty leaves the mode to the database server.
MEANINGFUL_WHEN_EMPTY = frozenset({'mysql_sql_mode'})

MAX_REMOVED_SHARE = 0.3
SYNC_WORKERS = 8

PACKAGE = 'nova-aggregate-mirror'


def missing_credentials(version: str) -> str:
    """Return the default of ``missing_credentials`` in a release.

    A release warns before the next major release fails, as nova announced
    missing credentials of placement: spec mirror-host-aggregates-in-placement.
    """
    return 'warn' if int(version.split('.')[0]) < 2 else 'fail'


OPTS = [
    cfg.ListOpt(
        'hooks',
        default=['mirror'],
        help='Hooks that run around aggregate operations in nova-api: names '
             'of entry points in ``nova_aggregate_mirror.hooks``, in order. '
             '``mirror`` mirrors host aggregates to placement and replaces '
             'nova\'s own mirroring, which stays in effect if the list is '
             'empty or has an unknown name. An unknown name is logged as an '
             'error at startup.'),
    cfg.ListOpt(
        'request_filters',
        default=[],
        help='Request filters that narrow the queries of nova-scheduler to '
             'placement to hosts of matching aggregates: names of entry '
             'points in ``nova_aggregate_mirror.request_filters``. Available '
             'are %s. They run only if ``[filter_scheduler] '
             'available_filters`` includes '
             '``nova_aggregate_mirror.scheduler.filters.all_filters``; also '
             'add ``AggregateMembershipFilter`` to ``enabled_filters``. '
             'Nova-scheduler does not start with an unknown name, or if '
             'neither this filter nor the corresponding host filter of nova '
             'is enabled.' % ', '.join(
                 '``%s``' % entry_point.name
                 for entry_point in metadata.distribution(PACKAGE).entry_points
                 if entry_point.group.endswith('.request_filters'))),
    cfg.IntOpt(
        'max_member_of_bytes',
        default=1200, min=0, max=65536,
        help='Maximum size in bytes of the aggregate conditions '
             '(``member_of``) in the URL of one query to placement. Each '
             'aggregate takes 39 bytes. Conditions that do not fit are '
             'omitted from the query and left to '
             '``AggregateMembershipFilter``. The default works with an '
             'unconfigured uWSGI. If nova-scheduler logs that the limit was '
             'too low, raise it to 6000 if placement runs in Apache, or '
             'higher if it runs in uWSGI with a larger ``buffer-size``.'),
    cfg.FloatOpt(
        'inline_timeout',
        default=5.0, min=0.1, max=300.0,
        help='Maximum time in seconds that mirroring may add to one '
             'aggregate request, shared by all requests to keystone and '
             'placement and all statements in databases. Changes that are not '
             'mirrored in time stay in the journal. It also limits the '
             'requests of ``segment_addresses`` for one scheduling request, '
             'which is not narrowed after that time. A request of the agent '
             'for the journal has this time or, if longer, 5 seconds. Lower '
             'it if API users must not wait. Raise it if hosts have many '
             'ironic nodes and their aggregates should be complete when the '
             'request returns.'),
    cfg.FloatOpt(
        'inline_backoff',
        default=30.0, min=0.0, max=3600.0,
        help='Seconds for which a nova-api process does not contact placement '
             'and only writes the journal, after it did not answer a request '
             'within ``inline_timeout`` or a connection or authentication '
             'failure took more than one second: a hung placement must not '
             'occupy every worker. After a faster failure the back-off is at '
             'most one second. The same applies to the journal and to each '
             'cell. 0 disables it.'),
    cfg.FloatOpt(
        'request_timeout',
        default=60.0, min=1.0, max=3600.0,
        help='Maximum time in seconds of one placement request of a full '
             'sync, including authentication and discovery. Raise it if '
             'placement needs longer to list all resource providers.'),
    cfg.FloatOpt(
        'cell_timeout',
        default=60.0, min=0.1, max=3600.0,
        help='Maximum time in seconds that a full sync waits for one cell '
             'database. A cell that does not answer is reported, and its '
             'hosts are not changed.'),
    cfg.IntOpt(
        'sync_workers',
        default=SYNC_WORKERS, min=1, max=64,
        help='Number of concurrent placement requests of a full sync and of '
             'the agent. Requests that exceed the number of placement\'s '
             'own workers only queue. Lower it if placement becomes slow for '
             'its other clients during a sync.'),
    cfg.IntOpt(
        'max_call_age',
        default=600, min=60, max=86400,
        help='Maximum time in seconds that one aggregate request can run in '
             'nova-api. If nova-api was killed or could not write the '
             'journal, it is unknown whether the operation has ended: its '
             'host is mirrored repeatedly for this time, then its row is '
             'closed. Must be more than four times ``inline_timeout``. Raise '
             'it if the load balancer allows longer requests.'),
    cfg.FloatOpt(
        'sync_interval',
        default=60.0, min=1.0, max=86400.0,
        help='Seconds between two full syncs of the agent. A full sync '
             'compares all of nova with all of placement and repairs the '
             'differences, so that a recreated resource provider or a change '
             'by another tool is reconciled within this time. Raise it to '
             'reduce the load on placement.'),
    cfg.BoolOpt(
        'prune',
        default=True,
        help='Whether full syncs, both of the agent and of '
             '``nova-aggregate-mirror-manage placement sync_aggregates``, '
             'also remove stale owned associations. If false, they only add '
             'associations; aggregates that users delete and hosts that they '
             'remove through nova-api are still removed from placement.'),
    cfg.FloatOpt(
        'max_removed_share',
        default=MAX_REMOVED_SHARE, min=0.0, max=1.0,
        help='Maximum share of all owned associations that one full sync may '
             'remove. A sync that would remove more than ten associations, '
             'and more than this share, removes none and reports this, '
             'because such a plan indicates a damaged or wrong database. '
             'Raise it temporarily for a planned change of that size.'),
    cfg.IntOpt(
        'forget_after',
        default=7 * 24 * 3600, min=60,
        help='Seconds for which the journal keeps the UUID of a deleted '
             'aggregate, so that a delayed write is still recognized as '
             'owned. The UUID is kept longer while any resource provider is '
             'in the aggregate.'),
    cfg.IntOpt(
        'audit_interval',
        default=0, min=0, max=7 * 86400,
        help='Seconds between two audits of the agent, which count the '
             'servers whose host contradicts their request, as '
             '``nova-aggregate-mirror-manage placement audit_servers`` lists '
             'them. 0 disables the audit, and with it the metric '
             '``nova_aggregate_mirror_misplaced_servers``. An audit reads '
             'every server and its request from nova\'s databases: use 3600 '
             'or more for a cloud with tens of thousands of servers. The '
             'agent then needs nova-scheduler\'s options as well.'),
    cfg.IntOpt(
        'leader_lease',
        default=10, min=3, max=3600,
        help='Seconds for which an agent holds the lease without renewing '
             'it. Of several agents only the lease holder drains the journal '
             'and runs full syncs. When its lease expires, another agent '
             'takes over; an agent that is stopped releases the lease '
             'immediately. Raise it if the database of the journal is often '
             'unavailable for longer.'),
    cfg.HostAddressOpt(
        'metrics_host',
        default='127.0.0.1',
        help='Address on which the agent serves ``/metrics`` for Prometheus '
             'and ``/healthz``. There is no authentication: an address other '
             'than loopback exposes the metrics to every client that can '
             'reach it. Such clients cannot use up the resources of the '
             'agent: a connection lasts at most 5 seconds, and of more than '
             '20 connections the one that waits longest is closed.'),
    cfg.PortOpt(
        'metrics_port',
        default=9184,
        help='Port of ``/metrics`` and ``/healthz``. 0 disables both.'),
    cfg.StrOpt(
        'missing_credentials',
        default=missing_credentials(metadata.version(PACKAGE)),
        choices=[
            ('warn', 'Log a warning; operations stay in the journal until '
                     'the credentials are configured'),
            ('fail', 'Do not start nova-api; the error names the missing '
                     'option'),
        ],
        help='Action at the start of nova-api if the ``[placement]`` section '
             'has no credentials; and of nova-scheduler if it uses the '
             'segments of routed networks, and the ``[neutron]`` section has '
             'none. The default is ``warn`` in version 1, and ``fail`` from '
             'version 2 on.'),
]


def _database_opts() -> list[cfg.Opt]:
    # oslo.db returns the objects that nova registers for its own databases:
    # changing a default in place would change it for nova, too.
    opts: list[cfg.Opt] = copy.deepcopy(db_options.database_opts)
    cfg.set_defaults(opts, connection=DEFAULT_CONNECTION)
    return opts


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of this package; idempotent.

    :param conf: nova's configuration. Nova registers ``state_path``, which
        the default of the journal's connection refers to.
    """
    # oslo.config stores the state of a group in the group object itself.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)
    conf.register_group(copy.deepcopy(DATABASE_GROUP))
    if 'connection' not in conf[DATABASE_GROUP.name]:
        conf.register_opts(_database_opts(), group=DATABASE_GROUP.name)


def forget_mistakes(conf: cfg.ConfigOpts) -> None:
    """Clear the overrides set by ``mistakes`` after a configuration reload."""
    for group, options in list_opts():
        for option in options:
            conf.clear_override(option.dest, group.name)


def values(conf: cfg.ConfigOpts) -> dict[tuple[str, str], Any]:
    """Return the value of every option, by group and option."""
    return {(group.name, option.dest): conf[group.name][option.dest]
            for group, options in list_opts() for option in options}


def mistakes(conf: cfg.ConfigOpts,
             valid: abc.Mapping[tuple[str, str], Any] | None = None
             ) -> dict[tuple[str, str], str]:
    """Read every option once and override each invalid value.

    :param valid: what to override it with, instead of the default
    :returns: (group, option) to the reason why the value is invalid
    """
    reasons = {}
    for group, options in list_opts():
        for option in options:
            try:
                _check_meaning(option, conf[group.name][option.dest])
            except (cfg.Error, ValueError) as exc:
                # Without the text about where oslo.config has read it.
                reasons[group.name, option.dest] = str(
                    exc.__context__ if isinstance(
                        exc, cfg.ConfigFileValueError) and exc.__context__
                    else exc)
                # Nova-api reads every option again to log it, and would
                # fail to start.
                conf.set_override(
                    option.dest, valid[group.name, option.dest]
                    if valid else option.default, group.name)
    options = conf.aggregate_mirror
    if options.max_call_age <= 4 * options.inline_timeout:
        reasons.setdefault(
            (GROUP.name, 'max_call_age'),
            '%d is not more than four times inline_timeout (%g): a journal '
            'row could be closed while its operation still runs'
            % (options.max_call_age, options.inline_timeout))
        fitting = {'max_call_age': int(8 * options.inline_timeout)}
        if valid:
            fitting = {name: valid[GROUP.name, name]
                       for name in ('max_call_age', 'inline_timeout')}
        for name, value in fitting.items():
            conf.set_override(name, value, GROUP.name)
    return reasons


def unknown(conf: cfg.ConfigOpts) -> list[tuple[str, str, str]]:
    """List what the files set in this package's groups, but is no option.

    :returns: file, group and name; a file that cannot be read is left out,
        as it was when nova read it
    """
    known = {group.name: {name for option in options
                          for name in (option.name, option.dest)}
             for group, options in list_opts()}
    files = [*(conf.config_file or ()), *(
        str(path) for directory in conf.config_dir or ()
        for path in sorted(pathlib.Path(directory).glob('*.conf')))]
    names = []
    for file in files:
        sections: dict[str, dict[str, list[str]]] = {}
        with contextlib.suppress(OSError, ValueError, cfg.Error):
            cfg.ConfigParser(file, sections).parse()
        names += [(file, group, name) for group in known
                  for name in sections.get(group, ()) if
                  name not in known[group]]
    return names


def _check_meaning(option: cfg.Opt, value: Any) -> None:
    """Raise ValueError if a value has the right type, but no meaning.

    Oslo.config reads the empty value of a number as None, and compares limits
    with ``<`` and ``>``, which are false for nan. An empty list is valid.
    """
    for element in value if isinstance(value, list) else [value]:
        if element is None or isinstance(element, str) and not element.strip():
            if (option.default not in (None, '')
                    and option.name not in MEANINGFUL_WHEN_EMPTY):
                raise ValueError(
                    'the value is empty; without the option the default '
                    'applies')
        elif isinstance(element, float) and (
                not math.isfinite(element)
                or element == 0 and math.copysign(1, element) < 0):
            raise ValueError('%r is not a usable number' % element)


def check(conf: cfg.ConfigOpts,
          valid: abc.Mapping[tuple[str, str], Any] | None = None) -> None:
    """Check every option; invalid values are overridden as in ``mistakes``.

    :raises InvalidConfiguration: names each option with an invalid value
    """
    reasons = mistakes(conf, valid)
    if reasons:
        raise exceptions.InvalidConfiguration('; '.join(
            '[%s] %s: %s' % (group, name, reason)
            for (group, name), reason in reasons.items()))


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return the options for oslo-config-generator and the documentation."""
    return [(GROUP, OPTS), (DATABASE_GROUP, _database_opts())]
