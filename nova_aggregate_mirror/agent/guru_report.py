# SPDX-License-Identifier: Apache-2.0
"""Guru meditation reports of the agent, as of every nova service."""

from collections import abc
import types

from oslo_config import cfg
from oslo_reports import guru_meditation_report
from oslo_reports.models import with_default_views
from oslo_reports.views.text import generic

from nova_aggregate_mirror.journal import api_processes

_Meditation = guru_meditation_report.TextGuruMeditation

# With the names by which oslo.reports asks for a version.
_VERSION = types.SimpleNamespace(
    vendor_string=lambda: 'nova-aggregate-mirror contributors',
    product_string=lambda: 'nova-aggregate-mirror',
    version_string_with_package=lambda: api_processes.VERSION)


def set_up(state: abc.Callable[[], abc.Mapping[str, str]]) -> None:
    """Add the state of the agent to the reports.

    :param state: describes it; must not wait for another process
    """
    _Meditation.register_section(
        'Agent', lambda: with_default_views.ModelWithDefaultViews(
            dict(state()), text_view=generic.KeyValueView()))


def write(conf: cfg.ConfigOpts, program: str) -> None:
    """Write a report now, to the standard error or a file."""
    _Meditation.handle_signal(
        _VERSION, program, conf.oslo_reports.log_dir, None)
