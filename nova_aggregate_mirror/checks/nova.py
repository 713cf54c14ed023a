# SPDX-License-Identifier: Apache-2.0
"""What the mirror needs of nova: options, the API database, the hook."""

from importlib import metadata

from oslo_config import cfg
from oslo_db import exception as db_exc

from nova_aggregate_mirror import checks
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import attach
from nova_aggregate_mirror.hooks import requirements
from nova_aggregate_mirror import source

ENTRY_POINTS = 'nova.api.extra_spec_validators'
PLUGIN = 'nova_aggregate_mirror.nova_plugin'
REINSTALL = 'pip install --force-reinstall --no-deps nova-aggregate-mirror'
UPGRADE = 'pip install --upgrade nova-aggregate-mirror'
MIRROR_HOOK = ('[aggregate_mirror]', 'hooks = mirror')


def options(conf: cfg.ConfigOpts) -> checks.Findings:
    """Whether every option of this package has a value that it can have.

    One that has not gets its default, so that the other checks can go on.
    """
    mistakes = nova_aggregate_mirror.conf.mistakes(conf)
    found = [
        checks.failure(
            '[%s] %s: %s. Nova-api does not load the mirror until it is '
            'right. A value that works is:'
            % (group, name, reason.rstrip('.')),
            '[%s]' % group, '%s = %s' % (name, conf[group][name]))
        for (group, name), reason in sorted(mistakes.items())]
    files = [*(conf.config_file or ()), *(conf.config_dir or ())]
    return found or [checks.good(
        'Read from %s.' % (', '.join(files) or 'the environment'))]


def database(source: source.Source) -> checks.Findings:
    """Whether nova's API database can be read."""
    try:
        source.aggregates()
    except exceptions.NovaUnavailable as exc:
        return [unavailable(exc)]
    return []


def unavailable(exc: exceptions.NovaUnavailable) -> checks.Finding:
    """What to do about an API database that cannot be read."""
    if isinstance(exc.__cause__, db_exc.DBNonExistentTable):
        return checks.failure('%s. Run:' % exc, 'nova-manage api_db sync')
    return checks.failure(
        '%s. Start the database server, or correct:' % exc, '[api_database]',
        'connection = mysql+pymysql://nova:PASSWORD@HOST/nova_api')


def hook(conf: cfg.ConfigOpts) -> checks.Findings:
    """Whether nova-api would load the hooks, and nova is as they know it."""
    found = [entry_point for entry_point
             in metadata.entry_points(group=ENTRY_POINTS)
             if entry_point.value == PLUGIN]
    if not found:
        return [checks.failure(
            'The package is not installed: nova-api finds no entry point '
            'of it in %s. In nova-api\'s environment, run:' % ENTRY_POINTS,
            REINSTALL)]
    release = metadata.version('nova')
    try:
        requirements.check()
    except exceptions.UnexpectedNova as exc:
        return [checks.failure(
            'Nova %s is not as this release knows it, and goes on to mirror '
            'by itself, best effort: %s. In nova-api\'s environment, run:'
            % (release, exc), UPGRADE)]
    return _hooks(conf) or [checks.good('Nova %s is as expected.' % release)]


def _hooks(conf: cfg.ConfigOpts) -> checks.Findings:
    try:
        loaded = attach.load(conf)
    except exceptions.MissingCredentials:
        # A check of its own says which.
        return []
    except exceptions.MirrorError as exc:
        return [checks.failure(
            '%s. Nova mirrors by itself until then. By default there is:'
            % exc, *MIRROR_HOOK)]
    if not any(hook.replaces_mirroring for hook in loaded):
        return [checks.warning(
            'The mirror is switched off, and nova mirrors by itself, best '
            'effort. To switch it on, have:', *MIRROR_HOOK)]
    return []
