# SPDX-License-Identifier: Apache-2.0
"""Generation of a page from its template; all values are escaped."""

import base64
from collections import abc
import hashlib
import importlib.metadata
import pathlib
import socket
from typing import Any

import jinja2

from nova_aggregate_mirror import dates


def generate(name: str, now: float, **values: Any) -> abc.Iterator[str]:
    """Generate a page, part by part.

    :param name: name of its template and of its script
    :param now: Unix time of its data, from which it counts ages
    """
    loader = jinja2.FileSystemLoader(pathlib.Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        time=lambda seconds: dates.iso(seconds)[:-1].replace('T', ' '),
        age=lambda seconds: _age(now - seconds))
    script = environment.get_template(name + '.js').render()
    # The browser runs only the script with this hash.
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest())
    return environment.get_template(name + '.html').generate(
        script_hash=script_hash.decode(),
        version=importlib.metadata.version('nova-aggregate-mirror'),
        machine=socket.gethostname(), now=now, **values)


def _age(seconds: float) -> str:
    """Return a duration in the largest unit of which it has two or more."""
    for size, unit in ((86400, 'd'), (3600, 'h'), (60, 'min'), (1, 's')):
        if seconds >= 2 * size:
            break
    return '%d %s' % (max(0.0, seconds) / size, unit)
