# SPDX-License-Identifier: Apache-2.0
"""Check of this package's options in nova's configuration files."""

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror import option_values


def values(deployment: inputs.Deployment) -> checks.Findings:
    """Check that each option has a valid value, and that no other is set.

    An invalid option gets its default, so that the other checks can run.
    """
    conf = deployment.conf
    mistakes = option_values.override_mistakes(conf)
    findings = [
        checks.failure(
            '%s. Nova-api does not load the mirror until this is corrected. A '
            'valid value is:' % mistake,
            '[%s]' % group, '%s = %s' % (name, _text(conf[group][name])))
        for (group, name), mistake in sorted(mistakes.items())]
    findings += [checks.warning('%s.' % text)
                 for text in option_values.unknown_names(conf)]
    files = [*(conf.config_file or ()), *(conf.config_dir or ())]
    return findings or [checks.good(
        'Options were read from %s.' % (
            ', '.join(files) or 'the environment'))]


def _text(value: object) -> str:
    return ','.join(value) if isinstance(value, list) else str(value)
