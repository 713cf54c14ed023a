# SPDX-License-Identifier: Apache-2.0
"""Reports of imports that may patch the thread in which they are made."""

import sys
import threading

NAMES = ('nova', 'eventlet', 'oslo_service')
REPORT = 'is imported in the thread'


class Guard:
    """A finder of modules that only reports; others find them."""

    def __init__(self) -> None:
        self._main = threading.get_ident()

    def find_spec(self, name: str, *_place: object) -> None:
        """Report an import in another thread than that of the creation."""
        if (name.partition('.')[0] in NAMES
                and threading.get_ident() != self._main):
            print(name, REPORT, threading.current_thread().name,
                  file=sys.stderr, flush=True)


def install() -> None:
    """Watch the imports of this process, before all other finders."""
    sys.meta_path.insert(0, Guard())
