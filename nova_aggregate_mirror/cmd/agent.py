# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-agent``: the daemon that mirrors and syncs."""

import functools
import gc
import os
import signal
import threading
import types
from typing import Any

from nova.conf import CONF
from oslo_config import cfg
from oslo_log import log as logging
from oslo_reports import guru_meditation_report
from oslo_reports import opts

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import metrics_server
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror.agent import service
from nova_aggregate_mirror.cmd import program
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import option_values
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import modes
from nova_aggregate_mirror.reconcile import sync_history

LOG = logging.getLogger(__name__)
PROGRAM = 'nova-aggregate-mirror-agent'
DESCRIPTION = ('Mirror host aggregates to placement until SIGTERM: the '
               'operations in the journal every second, and all of nova at '
               'an interval. SIGHUP reloads the configuration. SIGUSR2 writes '
               'a guru meditation report.')
# The agent itself logs an unavailable database or catalog, once.
AGENT_LEVELS = ['nova=WARNING', 'nova_aggregate_mirror=INFO',
                'alembic=WARNING', 'oslo_db=CRITICAL', 'keystoneauth=ERROR']
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
# With the names by which oslo.reports asks for a version.
VERSION = types.SimpleNamespace(
    vendor_string=lambda: 'nova-aggregate-mirror contributors',
    product_string=lambda: 'nova-aggregate-mirror',
    version_string_with_package=lambda: rows.VERSION)


def _build(journal: store.Journal, figures: metrics.Metrics) -> service.Agent:
    options = CONF.aggregate_mirror
    # A source each: the full sync waits for a slow cell, also when it repairs,
    # and each source keeps its own record of the cells that did not answer.
    drain_source, sync_source = (
        program.source(skip_late=True), program.source())
    stop = threading.Event()
    placement = _client(request_timeout=drain.timeout(CONF))
    observes = nova_aggregate_mirror.conf.observes(CONF)
    figures.observes = observes
    build = functools.partial(program.mirror, journal, stopping=stop.is_set)
    return service.Agent(
        drain.Drain(CONF, journal.rows, build(drain_source, placement),
                    figures, stopping=stop.is_set),
        periodic_sync.PeriodicSync(
            CONF, build(sync_source, _client()), figures,
            note=functools.partial(sync_history.note, journal.database,
                                   'agent', mode=options.mode),
            zones=sync_source.zones, disagreements=functools.partial(
                modes.find_for_agent, journal, options.mode)),
        lease.Lease(journal.database, options.leader_lease, mode=options.mode),
        binding.Binding(journal.database, drain_source.cell_mappings,
                        drain_source.aggregates),
        figures, stop, audit=_build_audit(figures), observes=observes)


def _client(**options: Any) -> client.Client:
    """Build a client of placement that refuses to write in mode observe."""
    return client.Client(
        CONF, reads_only=nova_aggregate_mirror.conf.observes(CONF), **options)


def _start(agent: service.Agent) -> None:
    """Start an agent, and log whether placement can be used."""
    agent.start()
    # The loops of an agent on standby send placement no request.
    placement = _client(
        request_timeout=drain.timeout(CONF), logs_first_answer=True)
    failure = exceptions.failure_of(placement.probe)
    if failure:
        LOG.warning('Placement cannot be used: %s', failure)
    placement.release()


def _build_audit(figures: metrics.Metrics) -> service.Audit | None:
    """Build the audit; None if it is not configured, or cannot run."""
    interval = CONF.aggregate_mirror.audit_interval
    enforced, trouble = list[str](), None
    try:
        if interval:
            # All imports of nova and of plugins are made here. Some bring
            # eventlet, and a thread that imports it may never be joined.
            _prepare_nova()
            from nova_aggregate_mirror.agent import periodic_audit
            from nova_aggregate_mirror.audit import readers
            from nova_aggregate_mirror.audit import rules
            readers.read_settings(CONF, ())
            enforced = rules.enforced(CONF)
    except exceptions.MirrorError as exc:
        trouble = exc
    except cfg.Error as exc:
        trouble = option_values.invalid_option(CONF, exc)
    figures.expect_audits(enforced)
    if trouble:
        # Mirroring goes on. In the handler, oslo.log would append the error.
        LOG.error('The servers are not audited: %s', trouble)
        # Until the next reload: otherwise the missing loop counts as stuck.
        CONF.set_override('audit_interval', 0, 'aggregate_mirror')
    if not enforced:
        return None
    return periodic_audit.PeriodicAudit(
        lambda: readers.DatabaseAudit(CONF, _client()), interval, figures).step


@functools.cache
def _prepare_nova() -> None:
    """Prepare nova's objects once: the import takes seconds, and memory."""
    from nova_aggregate_mirror.cmd import nova_objects
    nova_objects.prepare(CONF)


def _serve() -> int:
    """Run agents, a new one after each SIGHUP, until SIGTERM or SIGINT."""
    _configure()
    # All threads that start from here on block the signals, too, including
    # those of the metrics: only this thread receives them, from sigwait().
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    options = CONF.aggregate_mirror
    figures = metrics.Metrics(CONF.placement.region_name or '')
    server = metrics_server.Server(
        figures, options.metrics_host, options.metrics_port, _limits
    ) if options.metrics_port else None
    journal = store.Journal(CONF)
    agent = _build(journal, figures)
    # The imported modules live as long as the process: searching them for
    # garbage takes a sixth of its time. What the agent opens does not.
    gc.freeze()
    _start(agent)
    LOG.info('Started; the leader runs a full sync every %g seconds',
             options.sync_interval)
    ended = True
    while (signum := signal.sigwait(SIGNALS)) in (
            signal.SIGHUP, signal.SIGUSR2):
        if signum == signal.SIGUSR2:
            guru_meditation_report.TextGuruMeditation.handle_signal(
                VERSION, PROGRAM, CONF.oslo_reports.log_dir, frame=None)
            continue
        LOG.info('SIGHUP: reloading the configuration')
        ended &= agent.stop(_longest_step())
        reload_options(CONF)
        agent = _build(journal, figures)
        _start(agent)
    LOG.info('Stopping after the current change')
    ended &= agent.stop(_longest_step())
    if server:
        server.close()
    if not ended:
        # The interpreter would wait for the workers of a loop that hangs, and
        # a loop that goes on meanwhile would log a traceback.
        os._exit(0)
    return 0


def _longest_step() -> float:
    """Return the seconds that a step takes if each of its requests fails."""
    options = CONF.aggregate_mirror
    return float(options.request_timeout + options.cell_timeout
                 + drain.ROWS * drain.timeout(CONF))


def _limits() -> dict[str, float]:
    """Return the seconds after which each loop counts as stuck."""
    options, step = CONF.aggregate_mirror, _longest_step()
    # The lease loop pauses for a third of a lease. A sync, or a page of an
    # audit, has several steps.
    limits = {'drain': step, 'lease': step + options.leader_lease,
              'sync': 10 * step}
    if options.audit_interval:
        limits[metrics.AUDIT] = 10 * step
    return limits


def reload_options(conf: cfg.ConfigOpts) -> None:
    """Reload the configuration, except invalid values of our options."""
    before = {(group, option.dest): conf[group][option.dest]
              for group, option in option_values.list_options()}
    try:
        readable = conf.reload_config_files()
    except (OSError, ValueError):
        # A directory instead of a file, or bytes that are not UTF-8.
        readable = False
    if not readable:
        LOG.error('The configuration cannot be read; the previous values '
                  'stay in effect')
    # Where an earlier reload kept the previous value, the file counts again.
    for group, name in before:
        conf.clear_override(name, group)
    mistakes = option_values.override_mistakes(conf, before)
    if mistakes:
        LOG.error('The configuration cannot be used; options with invalid '
                  'values keep their previous values: %s',
                  '; '.join(map(str, mistakes.values())))


def _configure() -> None:
    opts.set_defaults(CONF)
    program.read_configuration(PROGRAM, DESCRIPTION)
    program.set_up_log(CONF, AGENT_LEVELS)
    option_values.check(CONF)
    program.check_configuration()
    auth.load(CONF, 'placement')


def main() -> int:
    """Run until SIGTERM; return the exit status, see ``program.run``."""
    return program.run(PROGRAM, _serve)
