# SPDX-License-Identifier: Apache-2.0
"""Description of the machine that runs a benchmark."""

import os
import pathlib
import platform
import re
import sys

import psutil

CPUINFO = pathlib.Path('/proc/cpuinfo')


def processor(cpuinfo: str) -> str:
    """Return the model of the processor.

    :param cpuinfo: /proc/cpuinfo, without a model on some architectures
    """
    found = re.search(r'^model name\s*: (.+)$', cpuinfo, re.MULTILINE)
    return ' '.join(found[1].split()) if found else platform.machine()


def cores() -> int:
    return os.cpu_count() or 1


def load() -> str:
    """Return the load average of the last minute."""
    return '%.1f' % os.getloadavg()[0]


def description() -> dict[str, str]:
    """Return properties of the machine by name, without its hostname."""
    return {
        'processor': processor(
            CPUINFO.read_text() if CPUINFO.exists() else ''),
        'cores': str(cores()),
        'memory': '%.0f GiB' % (psutil.virtual_memory().total / 2 ** 30),
        # The suffix of the version identifies the build.
        'kernel': '%s %s' % (platform.system(), '.'.join(
            platform.release().split('-')[0].split('.')[:2]))}


def warn_if_busy() -> None:
    """Warn about other load, which affects parallel requests more."""
    if os.getloadavg()[0] > cores() / 2:
        print('The machine is busy, with a load of %s on %d cores: '
              'commands with parallel requests appear slower'
              % (load(), cores()), file=sys.stderr)
