# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a measured case: pure."""

from collections import abc

from tests.cloud.outages import cases
from tests.cloud.outages import measure
from tests import patience

# Seconds that the hook may take in addition to inline_timeout.
MARGIN = patience.seconds(1)

Healthy = abc.Mapping[str, measure.Answer]
"""Call to stock nova's answer without a fault."""


def problems(measured: measure.Measured, healthy: Healthy,
             inline_timeout: float) -> list[str]:
    """List how a case breaks the promise.

    The answer has to be stock nova's under the same fault, or without a fault:
    stock nova also fails or waits because of its own mirroring, and this
    package does not.
    """
    case, stock, ours = measured.case, measured.stock, measured.ours
    limit, found = inline_timeout + MARGIN, []
    allowed = {(each.status, each.message)
               for each in (stock, healthy[case.call])}
    waits = case.exempt in (cases.TIME, cases.OF_NOVA)
    if (ours.status, ours.message) not in allowed and not (
            waits and not ours.status):
        found.append('the answer is %s' % described(ours))
    if ours.hook > limit and case.exempt != cases.TIME:
        found.append('the hook took %.1f s' % ours.hook)
    if stock.status and ours.seconds > stock.seconds + limit and not waits:
        found.append('it took %.1f s longer' % (ours.seconds - stock.seconds))
    return [*found, *measured.different]


def described(answer: measure.Answer) -> str:
    """Describe an answer for people."""
    if not answer.status:
        return 'missing (%s)' % (answer.message or 'no answer in time')
    return ' '.join(filter(None, (str(answer.status), answer.message)))
