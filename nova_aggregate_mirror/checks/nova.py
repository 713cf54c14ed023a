# SPDX-License-Identifier: Apache-2.0
"""Checks of this package's options, the API database and the hook."""

import contextlib
from importlib import metadata

from nova_aggregate_mirror import checks
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.hooks import attach
from nova_aggregate_mirror import option_values

UPGRADE = 'pip install --upgrade WHEEL_OR_REPOSITORY'
# The bit of wsrep_sync_wait for reads, and the option of oslo.db for it.
READS, WAIT = 1, 'mysql_wsrep_sync_wait = 1'
MIRROR_HOOK = ('[aggregate_mirror]', 'hooks = mirror')


def options(deployment: checks.Deployment) -> checks.Findings:
    """Check that each option has a valid value, and that no other is set.

    An invalid option gets its default, so that the other checks can run.
    """
    conf = deployment.conf
    findings: checks.Findings = []
    for mistake in option_values.override_mistakes(conf).values():
        findings += checks.failed(mistake)
    for text in option_values.unknown_names(conf):
        findings += checks.warning('%s.' % text)
    files = [*(conf.config_file or ()), *(conf.config_dir or ())]
    place = ', '.join(files) or 'the environment'
    return findings or checks.good('Options were read from %s.' % place)


def database(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova's API database can be read."""
    deployment.source.aggregates()
    return []


def galera(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova waits for the commits of the other Galera nodes."""
    nodes, sync_wait = deployment.source.galera()
    if nodes < 2:
        return checks.skipped('nova\'s API database is no Galera cluster')
    cluster = 'Nova\'s API database is a Galera cluster of %d nodes' % nodes
    # A value that is set is a decision.
    unset = [] if sync_wait & READS else [
        section for section in ('api_database', 'database')
        if deployment.conf[section].mysql_wsrep_sync_wait is None]
    if not unset:
        return checks.good(
            '%s; mysql_wsrep_sync_wait or the servers\' default is set.'
            % cluster)
    lines: list[str] = []
    for section in unset:
        lines += '[%s]' % section, WAIT
    return checks.warning(
        '%s, and nova reads from a node what that node has applied so far: '
        'a request may not see the change that a nova-api on another node '
        'has just confirmed. The mirror itself waits. Set this for all of '
        'nova\'s services, and restart them:' % cluster, *lines)


def hook(deployment: checks.Deployment) -> checks.Findings:
    """Check that nova-api loads the hooks, and that nova is supported."""
    release = metadata.version('nova')
    try:
        attach.check_nova()
    except exceptions.UnexpectedNova as exc:
        return checks.failure(
            'Nova %s is not supported by this release, and mirrors host '
            'aggregates itself, best effort: %s. In nova-api\'s environment, '
            'run:' % (release, exc), UPGRADE)
    try:
        # The check of the credentials reports those that are missing.
        with contextlib.suppress(exceptions.MissingCredentials):
            attach.load(deployment.conf)
    except exceptions.MirrorError as exc:
        return checks.failure(
            '%s. Until this is corrected, nova mirrors host aggregates '
            'itself, best effort. The default is:' % exc, *MIRROR_HOOK)
    try:
        host_states.check_nova()
    except exceptions.UnexpectedNova as exc:
        return checks.warning(
            'Nova %s is supported, except for "scheduling explain": %s. In '
            'nova-scheduler\'s environment, run:' % (release, exc), UPGRADE)
    observes = nova_aggregate_mirror.conf.observes(deployment.conf)
    return checks.good('Nova %s is supported%s.' % (
        release, ', and mirrors host aggregates itself: the mode is observe'
        if observes else ''))
