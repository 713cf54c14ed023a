# SPDX-License-Identifier: Apache-2.0
"""Text of other services and of users, without what controls a terminal."""

import re

_CONTROLS = re.compile(
    # C0, DEL and C1; line and paragraph separators; directions of text.
    '[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]')


def line(text: str) -> str:
    """Escape all controls, line breaks and tabs as well."""
    return _CONTROLS.sub(
        lambda control: control[0].encode('unicode_escape').decode(), text)


def lines(text: str) -> str:
    """Escape all controls but line breaks."""
    return '\n'.join(line(part) for part in text.split('\n'))
