# SPDX-License-Identifier: Apache-2.0
"""The demonstration's command line, readable without its environment."""

import argparse

_DESCRIPTION = """\
Start a real keystone, placement and nova-api on the loopback interface, lead
the real clients through the life of a few host aggregates, and compare what
nova and placement say after each step. Nothing is left behind but the virtual
environment beside this checkout's files.
"""
_EPILOG = """\
exit status: 0 every expectation held, 1 one did not, 2 the demonstration could
not run, 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """Define the options of tools/demo and of tests.cloud.story."""
    described = argparse.ArgumentParser(
        prog='demo', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    described.add_argument(
        '--stock', action='store_true',
        help='leave this package out: the same story with nova as it is, in a '
             'virtual environment of its own')
    described.add_argument(
        '--keep', action='store_true',
        help='leave the cloud up after the story, print how to use it, and '
             'stop it with Ctrl-C')
    described.add_argument(
        '--verbose', action='store_true',
        help='show what the commands print')
    return described
