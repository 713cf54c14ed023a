# SPDX-License-Identifier: Apache-2.0
"""Parts of a report; needs no installed packages."""

from collections.abc import Sequence
import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    """A benchmark with its size."""

    name: str
    told: str
    """Description of the comparison."""
    module: str
    """Module with ``parse`` and ``measure``, see ``program.Measure``."""
    arguments: Sequence[str]
    quick: Sequence[str]
    """Arguments for ``--quick``."""


PARTS = (
    Part('add-host', 'add-host and remove-host through nova-api',
         'benchmarks.add_host', ['--pairs', '4'],
         ['--pairs', '1', '--calls', '5']),
    Part('sync', 'Full sync compared with nova-manage, cold and warm',
         'benchmarks.sync', [
             '--hosts', '1000', '--pairs', '2', '--agent-pass'],
         ['--hosts', '100', '--pairs', '1', '--agent-pass']),
    Part('agent', 'Full sync of the agent with many hosts',
         'benchmarks.sync', [
             '--hosts', '5000', '--pairs', '1', '--ours-only', '--agent-pass'],
         ['--hosts', '200', '--pairs', '1', '--ours-only', '--agent-pass']),
    Part('scheduler', 'Scheduling a server',
         'benchmarks.scheduler', ['--pairs', '3', '--calls', '3'],
         ['--hosts', '100', '--pairs', '1', '--calls', '1']),
    Part('explain', 'Explaining a request',
         'benchmarks.explain', ['--pairs', '3'],
         ['--hosts', '100', '--pairs', '1']),
    Part('audit', 'Auditing the servers',
         'benchmarks.audit', ['--runs', '3'],
         ['--servers', '500', '5000', '--runs', '1']),
    Part('recovery', 'Recovery after an outage of placement',
         'benchmarks.recovery', ['--hosts', '1000', '--pairs', '2'],
         ['--hosts', '50', '--pairs', '1']))
