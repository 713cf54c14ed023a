# SPDX-License-Identifier: Apache-2.0
"""Guru meditation reports of the agent, as of every nova service."""

from collections import abc
import types

from oslo_config import cfg
from oslo_reports import guru_meditation_report
from oslo_reports.models import with_default_views
from oslo_reports import opts
from oslo_reports.views.text import generic

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import api_processes

_Meditation = guru_meditation_report.TextGuruMeditation

# With the names by which oslo.reports asks for a version.
_VERSION = types.SimpleNamespace(
    vendor_string=lambda: 'nova-aggregate-mirror contributors',
    product_string=lambda: 'nova-aggregate-mirror',
    version_string_with_package=lambda: api_processes.VERSION)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[oslo_reports]``; idempotent."""
    opts.set_defaults(conf)


def set_up(conf: cfg.ConfigOpts, program: str,
           state: abc.Callable[[], abc.Mapping[str, str]]) -> None:
    """Prepare reports, which are written to the standard error or a file.

    If ``[oslo_reports] file_event_handler`` is set, a report is also written
    when that file changes.

    :param state: describes the agent; must not wait for another process
    :raises InvalidConfiguration: when the file cannot be watched
    """
    def describe() -> with_default_views.ModelWithDefaultViews:
        return with_default_views.ModelWithDefaultViews(
            dict(state()), text_view=generic.KeyValueView())

    _Meditation.register_section('Agent', describe)
    try:
        # The agent handles the signal itself, with ``write``.
        _Meditation.setup_autorun(
            _VERSION, program, conf=conf, setup_signal=False)
    except OSError as exc:
        step = ('create the file' if isinstance(exc, FileNotFoundError)
                else 'correct')
        raise exceptions.InvalidConfiguration(
            '[oslo_reports] file_event_handler: %s: %s; %s or unset the '
            'option' % (conf.oslo_reports.file_event_handler, exc.strerror,
                        step)) from exc


def write(conf: cfg.ConfigOpts, program: str) -> None:
    """Write a report now."""
    _Meditation.handle_signal(
        _VERSION, program, conf.oslo_reports.log_dir, None)
