# SPDX-License-Identifier: Apache-2.0
"""The machine that a figure was measured on."""

import os
import pathlib
import platform
import re
import sys

import psutil

CPUINFO = pathlib.Path('/proc/cpuinfo')


def processor(cpuinfo: str) -> str:
    """The model of the processor.

    :param cpuinfo: what Linux says of it; some architectures name no model
    """
    found = re.search(r'^model name\s*: (.+)$', cpuinfo, re.MULTILINE)
    return ' '.join(found[1].split()) if found else platform.machine()


def cores() -> int:
    return os.cpu_count() or 1


def load() -> str:
    """The load over the last minute."""
    return '%.1f' % os.getloadavg()[0]


def description() -> dict[str, str]:
    """What figures depend on, by name; nothing that names this machine."""
    return {
        'processor': processor(
            CPUINFO.read_text() if CPUINFO.exists() else ''),
        'cores': str(cores()),
        'memory': '%.0f GiB' % (psutil.virtual_memory().total / 2 ** 30),
        # What follows its version is the name of somebody's build.
        'kernel': '%s %s' % (platform.system(), '.'.join(
            platform.release().split('-')[0].split('.')[:2]))}


def warn_if_busy() -> None:
    """Say that others use the machine: it matters more to one of the two."""
    if os.getloadavg()[0] > cores() / 2:
        print('The machine is busy, with a load of %s on %d cores: a '
              'command that asks in parallel seems slower than it is'
              % (load(), cores()), file=sys.stderr)
