# SPDX-License-Identifier: Apache-2.0
"""At rest an agent goes on alone, and then the promise has to hold."""

from tests.simulation import processes

# Seconds between two steps, first of a row that waits for its next attempt,
# then of one whose operation may still run on another host.
PATIENCE = (*[61.0] * 12, *[3700.0] * 4)


def judge(cloud: processes.Cloud, parts: processes.Parts) -> str:
    """Let an agent drain, and see what is wrong then.

    It syncs only if something happened that nothing else puts right; what
    that is not about has to be right before.

    :param parts: of an agent that was not there before
    :returns: what broke the promise; empty when nothing did
    """
    world = cloud.world
    world.faults = world.kills = 0
    world.say('rest')
    _drain(cloud, parts)
    if cloud.database.has_rows():
        return 'rows left: %s' % parts.journal.rows()
    unsure = world.disturbed or cloud.nova.unseen
    wrong = world.wrong + _wrong(cloud, world.disturbed)
    if unsure and not wrong:
        processes.sync(parts)
        wrong = world.wrong + _wrong(cloud, set())
    return '; '.join(wrong)


def _drain(cloud: processes.Cloud, parts: processes.Parts) -> None:
    """Until nothing is left; what is late arrives at any time meanwhile."""
    world = cloud.world
    step = processes.drainer(parts)
    for seconds in PATIENCE:
        while world.late and world.choices.likely():
            world.deliver()
        step()
        world.now += seconds
        if not cloud.database.has_rows():
            # Whatever is late now, nobody is there to put it right.
            while world.late:
                world.deliver()
            if not cloud.database.has_rows():
                return


def _wrong(cloud: processes.Cloud, unsure: set[str]) -> list[str]:
    """What is not as it should be, but for these providers."""
    nova, found = cloud.nova, []
    ever = set(nova.ids.values())
    forgotten = _forgotten(cloud) if nova.unseen else set()
    for uuid, state in sorted(cloud.placement.providers.items()):
        has, lost = state.aggregates, cloud.placement.foreign[uuid]
        if lost - has:
            found.append('%s lost %s' % (uuid, sorted(lost - has)))
        if uuid in unsure:
            continue
        wanted = nova.wanted(uuid)
        if uuid in nova.nodes and has & ever - forgotten != wanted:
            found.append('%s is in %s and should be in %s' % (
                uuid, sorted(has), sorted(wanted)))
        gone = has & ever - nova.hosts_of.keys() - nova.unseen
        if gone:
            found.append('%s is in %s, which was deleted' % (
                uuid, sorted(gone)))
    return found


def _forgotten(cloud: processes.Cloud) -> set[str]:
    """Aggregates that went unseen before anybody knew that they were nova's.

    Not ours to remove, says the promise.
    """
    known = processes.Parts(cloud, 'rest').journal.ledger()
    ours = set() if cloud.journal_failed else cloud.placement.added
    return cloud.nova.unseen - cloud.nova.hosts_of.keys() - known - ours
