# SPDX-License-Identifier: Apache-2.0
"""Every option of this package, for nova.conf or a drop-in in nova.conf.d."""

import copy
from typing import Any

from oslo_config import cfg
from oslo_db import options as db_options

from nova_aggregate_mirror import exceptions

GROUP = cfg.OptGroup(
    'aggregate_mirror',
    title='Mirroring of host aggregates to placement',
    help='How host aggregates are mirrored to placement. The credentials are '
         'those of the ``[placement]`` section.')

DATABASE_GROUP = cfg.OptGroup(
    'aggregate_mirror_database',
    title='Journal of the aggregate mirror',
    help='The database of the journal: what is still to be mirrored. With one '
         'controller the default, an SQLite file, is enough, and the agent '
         'runs on that host. With several controllers, or with the agent in a '
         'container or on a host of its own, name one MySQL or PostgreSQL '
         'database for all of them. A journal belongs to one nova.')

DEFAULT_CONNECTION = 'sqlite:///$state_path/aggregate_mirror/journal.sqlite'

MAX_REMOVED_SHARE = 0.3

OPTS = [
    cfg.ListOpt(
        'hooks',
        default=['mirror'],
        help='What runs around an aggregate operation in nova-api, by name '
             'of the entry point in ``nova_aggregate_mirror.hooks``, in this '
             'order. ``mirror`` keeps placement equal to nova and takes the '
             'place of nova\'s own mirroring. An empty list leaves nova as '
             'it is. An unknown name is an error at start, and leaves nova '
             'as it is too.'),
    cfg.ListOpt(
        'request_filters',
        default=[],
        help='What narrows the queries of nova-scheduler to placement, by '
             'name of the entry point in '
             '``nova_aggregate_mirror.request_filters``, so that placement '
             'offers hosts of the right aggregates in the first place: '
             '``flavor_extra_specs``, ``tenant_isolation``, '
             '``image_properties``, ``type_affinity`` and '
             '``default_availability_zone``. They run if ``[filter_scheduler] '
             'available_filters`` names '
             '``nova_aggregate_mirror.scheduler.filters.all_filters``, and '
             'want ``AggregateMembershipFilter`` among the '
             '``enabled_filters`` there. An unknown name keeps nova-scheduler '
             'from starting.'),
    cfg.IntOpt(
        'max_member_of_bytes',
        default=1200, min=0, max=65536,
        help='The most bytes that the aggregates in one query to placement '
             'may take in its URL; an aggregate takes 39. What does not fit '
             'is left out, and left to ``AggregateMembershipFilter``. The '
             'default is what uWSGI takes without configuration. Raise it to '
             '6000 when placement runs in Apache, or higher when it runs in '
             'uWSGI with a larger ``buffer-size``, if the log says that it '
             'was too low.'),
    cfg.FloatOpt(
        'inline_timeout',
        default=5.0, min=0.1, max=300.0,
        help='The longest time in seconds that mirroring may add to one '
             'aggregate request: token, discovery and every placement request '
             'share it. What is not mirrored by then stays in the journal. '
             'Lower it when users must never wait, raise it when hosts have '
             'many ironic nodes and you want their aggregates complete when '
             'the request returns.'),
    cfg.FloatOpt(
        'inline_backoff',
        default=30.0, min=0.0, max=3600.0,
        help='After placement did not answer within ``inline_timeout``, this '
             'nova-api process does not try again for so many seconds and '
             'only writes the journal, so that a hung placement cannot occupy '
             'every worker. So it does when placement or keystone refused '
             'only after more than a second. When they refused at once it is '
             'one second, or less if this is. 0 tries at every request.'),
    cfg.FloatOpt(
        'request_timeout',
        default=60.0, min=1.0, max=3600.0,
        help='The longest time in seconds that one placement request of a '
             'full sync may take, token and discovery included. Raise it when '
             'placement needs longer to list all providers.'),
    cfg.FloatOpt(
        'cell_timeout',
        default=60.0, min=0.1, max=3600.0,
        help='The longest time in seconds that a full sync waits for one cell '
             'database. A cell that does not answer is reported and its hosts '
             'are left as they are.'),
    cfg.IntOpt(
        'sync_workers',
        default=8, min=1, max=64,
        help='How many placement requests a full sync and the agent make at '
             'once. Placement\'s own workers are the limit: more than they '
             'are only wait. Lower it when placement serves others slowly '
             'meanwhile.'),
    cfg.IntOpt(
        'max_call_age',
        default=600, min=60, max=86400,
        help='The longest time in seconds that one aggregate request can run '
             'in nova-api. An operation of which the journal does not know '
             'whether it has ended, because nova-api was killed or could not '
             'write, is mirrored again and again for so long, and then taken '
             'out of the journal. Must be more than four times '
             '``inline_timeout``. Raise it when your load balancer lets '
             'requests run longer.'),
    cfg.FloatOpt(
        'sync_interval',
        default=60.0, min=1.0, max=86400.0,
        help='Seconds between two full syncs of the agent, which compare all '
             'of nova with all of placement and repair what differs: it is '
             'within this time that a recreated provider or another tool\'s '
             'change is put right. Raise it when placement is to be asked '
             'less often.'),
    cfg.BoolOpt(
        'prune',
        default=True,
        help='Whether full syncs, of the agent and of '
             '``nova-aggregate-mirror-manage placement sync_aggregates``, '
             'also remove associations that are ours and no longer true. '
             'Without it they only add, and remove what a user has deleted '
             'or taken out through nova-api.'),
    cfg.FloatOpt(
        'max_removed_share',
        default=MAX_REMOVED_SHARE, min=0.0, max=1.0,
        help='A full sync that would remove more than ten associations, and '
             'more than this share of all that are ours, removes nothing and '
             'says so: it looks like a damaged or a wrong database. Raise it '
             'for the time of a planned change of that size.'),
    cfg.IntOpt(
        'forget_after',
        default=7 * 24 * 3600, min=60,
        help='The journal remembers the UUID of a deleted aggregate for so '
             'many seconds, and until placement is empty of it, so that a '
             'write that comes late is still recognized as ours.'),
    cfg.IntOpt(
        'leader_lease',
        default=10, min=3, max=3600,
        help='Of several agents one works: it drains the journal and does the '
             'full syncs. When it has not renewed its lease for so many '
             'seconds, another one takes over; an agent that is stopped '
             'leaves it at once. Raise it when the journal\'s database is '
             'often unavailable for longer.'),
    cfg.HostAddressOpt(
        'metrics_host',
        default='127.0.0.1',
        help='The address on which the agent serves /metrics for Prometheus '
             'and /healthz. There is no authentication: another address than '
             'the loopback one shows the figures to whoever can reach it.'),
    cfg.PortOpt(
        'metrics_port',
        default=9184,
        help='The port of /metrics and /healthz. 0 serves neither.'),
    cfg.StrOpt(
        'missing_credentials',
        default='warn',
        choices=[
            ('warn', 'Log a warning; operations stay in the journal until '
                     'the credentials are there'),
            ('fail', 'Refuse to start nova-api and say which option to add'),
        ],
        help='What to do at the start of nova-api when the ``[placement]`` '
             'section has no credentials. The default will become ``fail`` in '
             'the next major release.'),
]


def _database_opts() -> list[cfg.Opt]:
    # oslo.db hands out the very objects that nova registers for its own
    # databases: a default changed on them would be changed for nova too.
    opts: list[cfg.Opt] = copy.deepcopy(db_options.database_opts)
    cfg.set_defaults(opts, connection=DEFAULT_CONNECTION)
    return opts


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option of this package; a second call changes nothing.

    :param conf: nova's configuration. ``state_path``, which the default of
        the journal's connection names, is registered by nova.
    """
    # oslo.config keeps what is set on a group in the group object itself.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP.name)
    conf.register_group(copy.deepcopy(DATABASE_GROUP))
    if 'connection' not in conf[DATABASE_GROUP.name]:
        conf.register_opts(_database_opts(), group=DATABASE_GROUP.name)


def forget_mistakes(conf: cfg.ConfigOpts) -> None:
    """Undo what ``mistakes`` has replaced, once the files were read again."""
    for group, options in list_opts():
        for option in options:
            conf.clear_override(option.dest, group.name)


def mistakes(conf: cfg.ConfigOpts) -> dict[tuple[str, str], str]:
    """Read every option once, and replace a wrong value by one that works.

    :returns: group and option to what is wrong with the value
    """
    found = {}
    for group, options in list_opts():
        for option in options:
            try:
                conf[group.name][option.dest]
            except cfg.Error as exc:
                found[group.name, option.dest] = str(exc)
                # Nova-api reads every option once more to log it, and would
                # not start.
                conf.set_override(option.dest, option.default, group.name)
    options = conf.aggregate_mirror
    if options.max_call_age <= 4 * options.inline_timeout:
        found.setdefault(
            (GROUP.name, 'max_call_age'),
            '%d is not more than four times inline_timeout, which is %g: an '
            'operation could leave the journal while it runs'
            % (options.max_call_age, options.inline_timeout))
        conf.set_override('max_call_age', int(8 * options.inline_timeout),
                          GROUP.name)
    return found


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option once; one that cannot be used is replaced.

    :raises InvalidConfiguration: names each that has a value it cannot have
    """
    wrong = mistakes(conf)
    if wrong:
        raise exceptions.InvalidConfiguration('; '.join(
            '[%s] %s: %s' % (group, name, reason)
            for (group, name), reason in wrong.items()))


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """List the options for oslo-config-generator and the documentation."""
    return [(GROUP, OPTS), (DATABASE_GROUP, _database_opts())]
