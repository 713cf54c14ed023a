# SPDX-License-Identifier: Apache-2.0
"""How each bad part is made bad, and repaired."""

from collections import abc
import contextlib
import itertools
import signal
import socket

import sqlalchemy as sa

from tests.cloud.outages import lane as lanes
from tests.cloud.outages import wires
from tests.cloud.parts import catalog
from tests.cloud.parts import proxy
from tests.cloud.parts import scene as scenes
from tests.cloud.parts import situations
from tests.cloud import sql

# Seconds; nothing holds a lock that long.
LOCK_TIMEOUT = 5
# Rows of a statement: with more, the server reads and locks the whole table.
CHUNK = 50
# Connections that fill the queue of a socket whose owner accepts none.
FILLING = 2
UUIDS = {'aggregate-text': 'zone-one', 'aggregate-null': None,
         'aggregate-empty': ''}

Lock = abc.Callable[[sa.engine.Connection, abc.Collection[str]], None]


@contextlib.contextmanager
def begun(situation: situations.Situation, lane: lanes.Lane,
          scene: scenes.Scene, proxied: proxy.Proxy) -> abc.Iterator[None]:
    """Make the part bad, with its handed-over rows in the journal.

    The agent is stopped meanwhile, which would mirror the rows.
    """
    agent = lane.processes[lanes.AGENT]
    with contextlib.ExitStack() as stack:
        agent.send(signal.SIGSTOP)
        try:
            if situation.differs:
                scene.add_bad_members()
            # Rows of silent providers come with those of healthy hosts.
            rows = scene.hand_over([] if situation.silent else scene.bad)
            if situation.part == 'range-locked':
                # The lock begins after it, and not before all rows.
                scene.hand_over(scene.healthy[:1], running=True)
            if situation.is_cell:
                for cell in scene.bad_cells:
                    _break(stack, scene, situation.part, cell,
                           lane.wires[cell])
            elif situation.part in LOCKS:
                stack.enter_context(_locked(
                    scene, LOCKS[situation.part], rows))
            elif situation.part in proxy.PARTS:
                proxied.providers = {
                    *scene.silent, *itertools.chain(*scene.bad.values())}
                proxied.part = situation.part
                if situation.kind == 'moved':
                    catalog.move(lane, proxied.target)
            elif situation.kind == 'aggregate':
                stack.callback(scene.set_odd_uuid, scene.aggregates['odd'])
                scene.set_odd_uuid(UUIDS[situation.part])
            elif situation.kind == 'template':
                scene.use_templates()
        finally:
            agent.send(signal.SIGCONT)
        yield


def _break(stack: contextlib.ExitStack, scene: scenes.Scene, part: str,
           cell: str, wire: wires.Wire) -> None:
    """Make a cell bad until the end of the stack."""
    if part == 'cell-slow':
        stack.enter_context(_slow(scene, cell))
    elif part == 'cell-off':
        stack.enter_context(_off(wire))
    else:
        stack.callback(wire.forward)
        {'cell-refuses': wire.refuse, 'cell-silent': wire.hold}[part]()


@contextlib.contextmanager
def _off(wire: wires.Wire) -> abc.Iterator[None]:
    """Let nothing answer a request for a connection."""
    with contextlib.ExitStack() as stack:
        stack.callback(wire.forward)
        wire.refuse()
        silent = stack.enter_context(socket.socket())
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent.bind(('127.0.0.1', wire.port))
        # Packets to a socket whose queue is full are dropped.
        silent.listen(0)
        for _number in range(FILLING):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(silent.getsockname())
        yield


@contextlib.contextmanager
def _slow(scene: scenes.Scene, cell: str) -> abc.Iterator[None]:
    """Let each statement about the compute nodes of a cell take long."""
    scene.execute(cell, 'RENAME TABLE compute_nodes TO nodes')
    scene.execute(cell, 'CREATE VIEW compute_nodes AS SELECT nodes.* '
                  'FROM nodes JOIN (SELECT SLEEP(%d)) AS slow'
                  % situations.SLOW)
    try:
        yield
    finally:
        scene.execute(cell, 'DROP VIEW compute_nodes')
        scene.execute(cell, 'RENAME TABLE nodes TO compute_nodes')


@contextlib.contextmanager
def _locked(scene: scenes.Scene, lock: Lock, rows: abc.Collection[str]
            ) -> abc.Iterator[None]:
    """Hold a lock, as a controller that lost power in its transaction."""
    with sql.engine(scene.journal).connect() as connection:
        mysql = connection.dialect.name == 'mysql'
        connection.exec_driver_sql(
            'SET SESSION innodb_lock_wait_timeout = %d, lock_wait_timeout = %d'
            % (LOCK_TIMEOUT, LOCK_TIMEOUT) if mysql
            else "SET lock_timeout = '%ds'" % LOCK_TIMEOUT)
        lock(connection, rows)
        yield


def _lock_rows(connection: sa.engine.Connection, rows: abc.Collection[str]
               ) -> None:
    ordered = sorted(rows)
    for start in range(0, len(ordered), CHUNK):
        connection.execute(sa.text(
            'SELECT id FROM dirty WHERE id IN :rows FOR UPDATE').bindparams(
                sa.bindparam('rows', ordered[start:start + CHUNK],
                             expanding=True))).all()


def _lock_range(connection: sa.engine.Connection, _rows: abc.Collection[str]
                ) -> None:
    # Also what will be inserted there.
    connection.execute(
        sa.text('SELECT id FROM dirty WHERE id >= :first FOR UPDATE'),
        {'first': scenes.BAD_ROW}).all()


def _lock_table(connection: sa.engine.Connection, _rows: abc.Collection[str]
                ) -> None:
    connection.exec_driver_sql('LOCK TABLES dirty WRITE')


LOCKS: dict[str, Lock] = {
    'row-locked': _lock_rows, 'range-locked': _lock_range,
    'table-locked': _lock_table}
