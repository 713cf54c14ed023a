# SPDX-License-Identifier: Apache-2.0
"""What a report is made of, readable without the benchmarks' environment."""

from collections.abc import Sequence
import dataclasses


@dataclasses.dataclass(frozen=True)
class Part:
    """One benchmark at one size."""

    name: str
    told: str
    """What it compares, in words."""
    module: str
    """Has ``parse`` and ``measure``, see ``program.Measure``."""
    arguments: Sequence[str]
    quick: Sequence[str]
    """The same with the smallest sizes that show that it works."""


PARTS = (
    Part('add-host', 'add-host and remove-host through nova-api',
         'benchmarks.add_host', ['--pairs', '4'],
         ['--pairs', '1', '--calls', '5']),
    Part('sync', 'The full sync beside nova-manage\'s, cold and warm',
         'benchmarks.sync', [
             '--hosts', '1000', '--pairs', '2', '--agent-pass'],
         ['--hosts', '100', '--pairs', '1', '--agent-pass']),
    Part('agent', 'The agent\'s pass over many hosts',
         'benchmarks.sync', [
             '--hosts', '5000', '--pairs', '1', '--ours-only', '--agent-pass'],
         ['--hosts', '200', '--pairs', '1', '--ours-only', '--agent-pass']),
    Part('scheduler', 'Placing a server',
         'benchmarks.scheduler', ['--pairs', '3', '--calls', '3'],
         ['--hosts', '100', '--pairs', '1', '--calls', '1']),
    Part('recovery', 'Recovery after an outage of placement',
         'benchmarks.recovery', ['--hosts', '1000', '--pairs', '2'],
         ['--hosts', '50', '--pairs', '1']))
