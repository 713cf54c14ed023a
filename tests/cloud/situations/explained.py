# SPDX-License-Identifier: Apache-2.0
"""The explanation of a request, as the real command gives it."""

from collections import abc
import dataclasses
import json
import re
from typing import Any

from tests.cloud.situations import scene

CELL_DOWN = 5
# A command ends where a sentence continues.
_COMMAND = re.compile(r'(?:openstack|%s) [^,;"]*' % scene.MANAGE)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The document that the command has printed, and its exit status."""

    status: int
    document: dict[str, Any]

    @property
    def summary(self) -> str:
        return str(self.document['summary'])

    @property
    def notes(self) -> str:
        return '\n'.join([*self.document['remarks'], *self.document['notes']])

    def of(self, host: str) -> dict[str, Any]:
        """Return the row of a host's first compute node."""
        return next(one for one in self.document['hosts']
                    if one['host'] == host)

    def problems(self, expected: scene.Round) -> list[str]:
        """List what differs from what a situation expects."""
        found = []
        if expected.host:
            row = self.of(expected.host)
            if row['kind'] != expected.kind:
                found.append('the kind is %s' % row['kind'])
            if expected.reason not in row['reason']:
                found.append('the reason is "%s"' % row['reason'])
            if expected.step not in row['step']:
                found.append('the step is "%s"' % row['step'])
        wanted = expected.summary or expected.reason
        if wanted not in self.summary:
            found.append('the summary lacks "%s"' % wanted)
        if expected.looked not in self.document['not_looked_at']:
            found.append('"%s" was looked at' % expected.looked)
        if expected.note not in self.notes:
            found.append('the notes are "%s"' % self.notes)
        return found


def run(at: scene.Scene, arguments: abc.Sequence[str], error: bool = False
        ) -> Explanation:
    """Run the command with arguments.

    :param error: whether it cannot explain what is asked; the summary is its
        error then
    """
    status, out, err = at.run([
        scene.MANAGE, 'scheduling', 'explain', *arguments, '--format',
        'json'])
    end = err[-500:]
    if error and not out:
        *_rest, summary = err.strip().splitlines()
        return Explanation(status, {'summary': summary, 'remarks': [],
                                    'notes': [], 'not_looked_at': ''})
    if error or status not in (0, 1, CELL_DOWN):
        raise scene.Failed('explain exits with %d: %s' % (status, end))
    try:
        return Explanation(status, json.loads(out))
    except ValueError:
        raise scene.Failed('explain prints %r: %s' % (out[:500], end))


def is_command(text: str) -> bool:
    """Check whether a text is a command."""
    return bool(_COMMAND.match(text))


def command(step: str) -> str:
    """Return the command in a step."""
    found = _COMMAND.search(step)
    if not found:
        raise scene.Failed('no command in "%s"' % step)
    return found[0].strip()
