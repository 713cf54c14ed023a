# SPDX-License-Identifier: Apache-2.0
"""The summary of an explanation in one sentence: pure, no I/O."""

import collections
from collections.abc import Iterable

from nova_aggregate_mirror.explain import explanation

SHOWN = 5
"""Hosts that the sentence names."""
UNKNOWN = 'nova shows no compute node'
"""Nova has none, or the cells with all of them did not answer."""


def sentence(answer: explanation.Answer) -> str:
    """Return how many hosts are left, and why the others are not."""
    total = len(answer.verdicts)
    left = [one.host for one in answer.acceptable]
    start = '%d of %d hosts' % (len(left), total)
    failure = answer.failure or ('' if total else UNKNOWN)
    if failure:
        return '%s: %s' % (start, failure)
    counted = collections.Counter(
        one.reason.phrase for one in answer.verdicts
        if one.reason.kind != explanation.ACCEPTABLE)
    parts = ['%d %s' % (count, phrase) for phrase, count in sorted(
        counted.items(), key=lambda item: (-item[1], item[0]))]
    if left:
        start += ' can take the server (%s)' % names(left, SHOWN)
    text = start + (': ' + ', '.join(parts) if parts else '')
    if answer.count == 1:
        return text
    by_host = collections.Counter(answer.placed)
    return '%s. %d of %d servers fit at once%s' % (
        text, len(answer.placed), answer.count, ': ' + ', '.join(
            '%d on %s' % (count, host) for host, count
            in by_host.most_common(SHOWN)) if by_host else '')


def names(hosts: Iterable[str], shown: int) -> str:
    """Join the first hosts; a host with several nodes is named once.

    :param hosts: the host of each compute node
    :param shown: the number of hosts that are named
    """
    listed = [host if nodes == 1 else '%s with %d nodes' % (host, nodes)
              for host, nodes in collections.Counter(hosts).items()]
    named = ', '.join(listed[:shown])
    more = len(listed) - shown
    return '%s and %d more' % (named, more) if more > 0 else named
