# SPDX-License-Identifier: Apache-2.0
"""Command lines of a cloud's processes."""

from collections import abc
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent

Server = abc.Callable[[str, int, int], list[str]]
"""Returns the command line that serves a WSGI module on a port with a number
of threads or processes."""


def installed(name: str, *argv: str) -> list[str]:
    """Return the command line of a program of this Python environment."""
    return [str(pathlib.Path(sys.executable).with_name(name)), *argv]


def child(*task: str) -> list[str]:
    """Return the command line of a task of ``tests/cloud/child.py``."""
    return script('child.py', *task)


def script(name: str, *argv: str) -> list[str]:
    """Return the command line of a script of this folder."""
    # -P: this folder's modules must not hide those of the services.
    return [sys.executable, '-P', str(FOLDER / name), *argv]


def waitress(module: str, port: int, threads: int,
             frames: int = 0) -> list[str]:
    """Return the command line that serves a module without a compiler."""
    return child('serve', module, str(port), str(threads), str(frames))


def uwsgi(module: str, port: int, count: int, timeout: int = 60) -> list[str]:
    """Return the command line that serves a module with pyuwsgi."""
    return child('serve_processes', module, str(port), str(count),
                 str(timeout))
