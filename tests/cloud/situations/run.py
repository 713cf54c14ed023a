# SPDX-License-Identifier: Apache-2.0
"""A run of the table: each situation is set up, explained and resolved."""

from collections import abc
import contextlib
import dataclasses
import re

from keystoneauth1 import exceptions

from tests.cloud import cloud
from tests.cloud import output
from tests.cloud import processes
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers

ERRORS = (processes.CloudError, exceptions.ClientException, StopIteration,
          LookupError)


@dataclasses.dataclass
class Result:
    """What has happened in a situation."""

    situation: scene.Situation
    got: str = ''
    """What the user got."""
    summary: str = ''
    """The first line of the first explanation."""
    reason: str = ''
    """What the first explanation says about the host."""
    done: list[str] = dataclasses.field(default_factory=list)
    """How the step was followed."""
    after: str = ''
    """What the same request got in the end."""
    problems: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        problems = '; '.join(self.problems)
        return '%s | %s | %s | %s | %s | %s' % (
            self.situation.name, self.got, self.reason, '; '.join(self.done),
            self.after, 'FAILED: ' + problems if problems else 'as expected')


class Run:
    """A run of some situations on a running cloud."""

    def __init__(self, running: cloud.Cloud) -> None:
        self._cloud = running
        self._schedulers = schedulers.Schedulers(running)
        self.results: list[Result] = []

    def play(self, situations: abc.Sequence[scene.Situation]) -> None:
        """Play situations, so that few processes have to be restarted."""
        tell = output.teller()
        try:
            for one in sorted(situations, key=lambda one: (
                    one.scheduler, not one.agents)):
                self._schedulers.use(one.scheduler)
                if one.agents:
                    self._cloud.start(*cloud.AGENTS)
                else:
                    self._cloud.kill(*cloud.AGENTS)
                result = Result(one)
                self.results.append(result)
                try:
                    with contextlib.ExitStack() as stack:
                        at = scene.Scene(
                            self._cloud, self._schedulers, stack.callback)
                        self._play(at, result, one.play(at))
                except ERRORS as exc:
                    text = ' '.join(str(exc).split())
                    result.problems.append('%s: %s' % (
                        type(exc).__name__, text))
                tell(str(result))
        finally:
            self._schedulers.use('')
            self._cloud.start(*cloud.AGENTS)

    def _play(self, at: scene.Scene, result: Result,
              rounds: abc.Iterator[scene.Round]) -> None:
        last: scene.Round | None = None
        # The situation continues, and follows the step, for the next round.
        for one in rounds:
            if last is None:
                _check_refusal(one, result)
            found = at.explain(one.request.arguments(), one.error)
            result.problems += found.problems(one)
            reason, step = _about(found, one)
            if last is None:
                result.summary = found.summary
                result.reason = reason
            done = one.action or scene.command(step)
            result.done.append(done)
            if scene.is_command(done):
                at.check(done)
            last = one
        assert last is not None
        if last.is_final:
            result.after = result.got
            return
        outcome = (last.again or last.request).make()
        result.after = str(outcome)
        if (last.takes or last.host) not in outcome.hosts and not (
                last.anywhere and outcome.hosts):
            result.problems.append('it did not get ' + (
                last.takes or last.host))


def _check_refusal(expected: scene.Round, result: Result) -> None:
    """Make the request, which has to fail or get a wrong host."""
    outcome = expected.request.make()
    result.got = str(outcome)
    if expected.wrong:
        if outcome.hosts != {expected.wrong}:
            result.problems.append('it did not get ' + expected.wrong)
    elif outcome.hosts or not re.search(
            expected.refusal or scene.NO_HOST, outcome.message):
        result.problems.append('it got %s' % outcome)


def _about(found: scene.Explanation, expected: scene.Round
           ) -> tuple[str, str]:
    """Return what is said of the host, or of none, and the step."""
    if not expected.host:
        notes = [one for one in found.notes.splitlines()
                 if expected.note and expected.note in one]
        return ' '.join(notes) or found.summary, ''
    row = found.of(expected.host)
    detail = ' (%s)' % row['detail'] if row['detail'] else ''
    return row['reason'] + detail, row['step']
