# SPDX-License-Identifier: Apache-2.0
"""The final check: one agent, no more faults, and the promise must hold."""

from collections import abc

from tests.simulation import bad_parts
from tests.simulation import processes

# Seconds between two steps of an agent: a little more than 2 x inline_timeout.
STEP = 11.0
# Steps within which everything that a crash left is mirrored: the agent sees a
# row, finds it overdue, and converges it.
SOON = 3
# Seconds between later steps, and the number of steps until no row is left:
# rows of calls that may run are closed after ``max_call_age``.
LONG = 301.0
MANY = 5
# Batches of one step at most, until the agent pauses.
BATCHES = 20


def judge(cloud: processes.Cloud, parts: processes.Parts,
          sync: processes.Parts,
          bad_part: bad_parts.BadPart | None = None) -> str:
    """Let an agent drain, then sync; check placement after each.

    :param parts: of the drain of an agent that did not run before
    :param sync: of its full sync
    :param bad_part: what has been bad from the start
    :returns: what broke the promise; empty when it was kept
    """
    world = cloud.world
    world.faults = world.kills = 0
    world.say('rest')
    for number, host in cloud.unrecorded.values():
        cloud.nova.unexpected(number, host)
    step = processes.drainer(parts)
    wrong = bad_part and bad_parts.judge(cloud, bad_part, step, parts, sync)
    wrong = wrong or _settle(cloud, step) or _age(cloud, step)
    if wrong:
        return wrong
    wrong = world.wrong + _wrong(cloud)
    if not wrong:
        processes.compare(sync)
        world.disturbed.clear()
        wrong = world.wrong + _wrong(cloud, synced=True)
    return '; '.join(wrong)


def state(cloud: processes.Cloud) -> str:
    """Render everything that the verdict depends on, if nothing is late.

    Equal texts are equal states; equal states may differ in the order of sets.
    """
    world, rows = cloud.world, map(repr, cloud.database.dump())
    found = [
        world.now, world.down, world.wrong, world.disturbed, cloud.judged,
        cloud.began, cloud.unrecorded, cloud.journal_failures, cloud.fed,
        cloud.syncs, *sorted(rows)]
    for part in (cloud.nova, cloud.placement):
        found += [value for name, value in vars(part).items()
                  if name not in ('_world', '_nova')]
    text = repr(found)
    # The IDs of rows are random.
    for number, row in enumerate(cloud.began):
        text = text.replace(row, 'row %d' % number)
    return text


def _settle(cloud: processes.Cloud, step: abc.Callable[[], bool]) -> str:
    """Check that placement is in sync a few steps after the last event."""
    while True:
        for _ in range(SOON):
            # A step on an empty journal changes nothing.
            if cloud.database.has_rows():
                _step(cloud, step)
        wrong = _wrong(cloud)
        if wrong:
            return 'after %d steps: %s' % (SOON, '; '.join(wrong))
        if not cloud.world.late or not cloud.world.choices.likely():
            return ''
        cloud.world.deliver()


def _age(cloud: processes.Cloud, step: abc.Callable[[], bool]) -> str:
    """Step until no row is left; late writes arrive at the end."""
    while True:
        for _ in range(MANY):
            if not cloud.database.has_rows():
                break
            _step(cloud, step, LONG)
        else:
            return 'rows left'
        if not cloud.world.late:
            return ''
        cloud.world.deliver()


def _step(cloud: processes.Cloud, step: abc.Callable[[], bool],
          seconds: float = STEP) -> None:
    for _batch in range(BATCHES):
        if not step():
            break
    cloud.world.now += seconds


def _wrong(cloud: processes.Cloud, synced: bool = False) -> list[str]:
    """List violations of the promise.

    :param synced: whether a full sync has followed; without it, deletions and
        changes by other tools need not be mirrored
    """
    nova, found = cloud.nova, []
    ever = set(nova.ids.values())
    about = ever - _unknown(cloud) if synced else set(nova.hosts_of)
    for uuid, state in sorted(cloud.placement.providers.items()):
        has = state.aggregates
        if lost := cloud.placement.foreign[uuid] - has:
            found.append('%s lost %s' % (uuid, sorted(lost)))
        wanted = nova.wanted(uuid)
        if uuid in nova.nodes and has & about != wanted and (
                uuid not in cloud.world.disturbed):
            found.append('%s is in %s and should be in %s' % (
                uuid, sorted(has), sorted(wanted)))
        gone = has & nova.marked - nova.hosts_of.keys()
        if synced and gone and not cloud.journal_failures:
            found.append('%s is in %s, which was deleted' % (
                uuid, sorted(gone)))
    return found


def _unknown(cloud: processes.Cloud) -> set[str]:
    """Return the deleted aggregates that the ledger could not know.

    By the promise, these are not owned and must not be removed.
    """
    known = cloud.fed | cloud.database.ledger()
    if not cloud.journal_failures:
        known |= cloud.placement.added | cloud.nova.marked
    return set(cloud.nova.ids.values()) - cloud.nova.hosts_of.keys() - known
