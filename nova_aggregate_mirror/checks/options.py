# SPDX-License-Identifier: Apache-2.0
"""Check of this package's options in nova's configuration files."""

import difflib

from oslo_config import cfg

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror import conf as package_options


def values(deployment: inputs.Deployment) -> checks.Findings:
    """Check that each option has a valid value, and that no other is set.

    An invalid option gets its default, so that the other checks can run.
    """
    conf = deployment.conf
    mistakes = package_options.override_mistakes(conf)
    findings = [
        checks.failure(
            '[%s] %s: %s. Nova-api does not load the mirror until this is '
            'corrected. A valid value is:'
            % (group, name, reason.rstrip('.')),
            '[%s]' % group, '%s = %s' % (name, _text(conf[group][name])))
        for (group, name), reason in sorted(mistakes.items())]
    findings += [
        checks.warning('[%s] in %s sets %s, which is no option%s' % (
            group, file, name, _suggestion(conf, group, name)))
        for file, group, name in package_options.unknown_names(conf)]
    files = [*(conf.config_file or ()), *(conf.config_dir or ())]
    return findings or [checks.good(
        'Options were read from %s.' % (
            ', '.join(files) or 'the environment'))]


def _text(value: object) -> str:
    return ','.join(value) if isinstance(value, list) else str(value)


def _suggestion(conf: cfg.ConfigOpts, group: str, name: str) -> str:
    similar = difflib.get_close_matches(name, list(conf[group]), 1)
    return '; the option is %s.' % similar[0] if similar else '. Delete it.'
