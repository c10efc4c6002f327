"""Order under fire: many who write at once, commit late or not at all, and touch the same rows in turn.

Two nodes number the changes meanwhile, and are killed or interrupted now and then. Whoever follows positions is told
every committed change once, those of a row and those of a transaction in their order. Two readers that are often built
instead are held against the same changes, and each is caught: one that goes on from the greatest id loses what
commits late; one that goes by transactions, even if it waits until all before are over, turns the changes of a row round.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import asyncpg
import pytest

from diptych.db.postgres import feed as feed_postgres
from diptych.db.postgres.store import PostgresStore
from diptych.errors import Refusal
from tests.contract.feed.scene import Library, hasten, load, model
from tests.proof.long_running.parts import tell
from tests.support.effort import scaled
from tests.support.running import Postgres

WRITERS = 64
CHANGES = scaled(20_000, 600)
DELAY = scaled(500, 40) / 1000
"""Seconds that a transaction takes at most until it commits."""
SHARED = 40
"""Rows that several transactions touch in turn."""
UNDONE = 0.2


class Event(NamedTuple):
    """A change: the row with its version, and the transaction with the place of the change in it."""

    row: str
    version: int
    writer: str
    step: int


@dataclass
class Fire:
    """What was committed, and what the readers were told."""

    url: str
    committed: list[Event] = field(default_factory=list)
    undone: int = 0
    interrupted: int = 0
    position: int = 0
    """The newest position, when all is over."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Nobody writes any more."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """All is numbered."""

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(self.url)


# who writes


async def write(fire: Fire, number: int, draw: random.Random) -> None:
    """Transactions of one writer, until all together have made enough changes, and a node was interrupted."""
    connection = await fire.connect()
    try:
        turn = 0
        while len(fire.committed) < CHANGES or not fire.interrupted:
            turn += 1
            await _transact(fire, connection, f"{number}.{turn}", draw)
    finally:
        await connection.close()


async def _transact(fire: Fire, connection: asyncpg.Connection, name: str, draw: random.Random) -> None:
    """A few changes: of shared rows, in the order of ids so that none waits in a circle, and of new ones."""
    shared = sorted(draw.sample(range(1, SHARED + 1), draw.choice((0, 1, 1, 2))))
    todo: list[int | None] = [None] * draw.choice((0, 1, 2)) + list(shared) or [1]
    made: list[Event] = []
    transaction = connection.transaction()
    await transaction.start()
    for step, target in enumerate(todo):
        if target is None:
            sql = "INSERT INTO tickets (text) VALUES ($1) RETURNING id, version"
        else:
            sql = f"UPDATE tickets SET text = $1 WHERE id = {target} RETURNING id, version"
        row = await connection.fetchrow(sql, f"{name}:{step}")
        assert row is not None
        made.append(Event(str(row["id"]), row["version"], name, step))
        await asyncio.sleep(draw.uniform(0, DELAY / len(todo)))
    if draw.random() < UNDONE:
        await transaction.rollback()
        fire.undone += 1
    else:
        await transaction.commit()
        fire.committed += made


# who numbers


async def number(fire: Fire, node: PostgresStore) -> None:
    """A node that asks for the newest position again and again."""
    while not fire.over.is_set():
        try:
            await node.head()
        except Refusal:
            await asyncio.sleep(0)


async def interrupt(fire: Fire, draw: random.Random) -> None:
    """Kill the connection of a node, or cancel what it does, in the middle of whatever that is."""
    connection = await fire.connect()
    try:
        while not fire.over.is_set():
            how = draw.choice(("pg_terminate_backend", "pg_cancel_backend"))
            fire.interrupted += len(
                await connection.fetch(
                    f"SELECT {how}(pid) FROM pg_stat_activity WHERE application_name = 'diptych' "
                    "AND datname = current_database() AND state = 'active' ORDER BY random() LIMIT 1"
                )
            )
            await asyncio.sleep(draw.uniform(0, 0.03))
    finally:
        await connection.close()


# who reads


READERS = {
    "positions": ("position > $1", "position, id", 1),
    "ids": ("id > $1", "id, id", 1),
    "transactions": (
        "(xact, id) > ($1::text::xid8, $2) AND xact < pg_snapshot_xmin(pg_current_snapshot())",
        "xact::text::bigint, id",
        2,
    ),
}
"""How each goes on from where it was, the order in which it reads, and how much of its place it has to remember."""


async def follow(fire: Fire, reader: str) -> list[Event]:
    """All that a reader is told, while it happens and once more when all is over."""
    after, order, width = READERS[reader]
    sql = f"SELECT {order}, row_id, new FROM diptych_feed WHERE {after} ORDER BY {order.replace('::text::bigint', '')} LIMIT 200"
    connection = await fire.connect()
    place: list[Any] = [0] * width
    told: list[Event] = []
    try:
        last = False
        while True:
            given = [str(place[0]), *place[1:]] if width == 2 else place
            rows = await connection.fetch(sql, *given)
            for first, second, row_id, new in rows:
                if reader == "positions":
                    assert first == place[0] + 1, "positions have no holes"
                place = [first, second][:width]
                told.append(_event(row_id, new))
            if not rows and last:
                return told
            last = fire.done.is_set()
            await asyncio.sleep(0 if rows else 0.002)
    finally:
        await connection.close()


def _event(row_id: str, new: str) -> Event:
    row = load(new)
    assert row is not None
    writer, _, step = row["text"].partition(":")
    return Event(row_id, row["version"], writer, int(step))


def judge(told: list[Event], committed: list[Event]) -> None:
    """Nothing lost, nothing doubled, nothing reversed for a row or for a transaction."""
    assert len(told) == len(set(told)), "doubled"
    assert set(told) == set(committed), (
        f"{len(set(committed) - set(told))} lost, {len(set(told) - set(committed))} invented"
    )
    rows: dict[str, list[int]] = defaultdict(list)
    transactions: dict[str, list[int]] = defaultdict(list)
    for event in told:
        rows[event.row].append(event.version)
        transactions[event.writer].append(event.step)
    assert all(places == sorted(places) for places in rows.values()), "reversed for a row"
    assert all(places == sorted(places) for places in transactions.values()), "reversed for a transaction"


# the fire


async def prepare(fire: Fire) -> list[PostgresStore]:
    """The shared rows, and two nodes."""
    connection = await fire.connect()
    for row in range(1, SHARED + 1):
        await connection.execute(f"INSERT INTO tickets (id, text) VALUES ({row}, '0.{row}:0')")
        fire.committed.append(Event(str(row), 1, f"0.{row}", 0))
    await connection.execute("SELECT setval(pg_get_serial_sequence('tickets', 'id'), 1000)")
    await connection.close()
    nodes = [PostgresStore(fire.url) for _ in range(2)]
    for node in nodes:
        await node.open(model)
    return nodes


async def burn(library: Library, seed: int) -> tuple[Fire, dict[str, list[Event]]]:
    """Everyone at once, until all changes are made; then the readers finish."""
    fire, draw = Fire(library.url), random.Random(seed)
    nodes = await prepare(fire)
    await asyncio.to_thread(hasten, library)
    readers = {name: asyncio.create_task(follow(fire, name)) for name in READERS}
    numbering = [asyncio.create_task(number(fire, node)) for node in nodes]
    hazard = asyncio.create_task(interrupt(fire, draw))
    await asyncio.gather(*(write(fire, n, random.Random(draw.random())) for n in range(1, WRITERS + 1)))
    fire.over.set()
    await asyncio.gather(hazard, *numbering)
    fire.position = (await nodes[0].head()).position
    fire.done.set()
    told = {name: await task for name, task in readers.items()}
    for node in nodes:
        await node.close()
    return fire, told


def test_everyone_who_follows_positions_is_told_all_in_order(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_postgres, "_MOST", 50)
    library = Library(postgres.create())
    library.sql("ALTER TABLE diptych_feed ADD COLUMN xact xid8 NOT NULL DEFAULT pg_current_xact_id()")
    begun = time.perf_counter()
    fire, told = asyncio.run(burn(library, 6))
    seconds = time.perf_counter() - begun
    judge(told["positions"], fire.committed)
    assert fire.position == len(fire.committed)
    library.told()
    ((settled,),) = library.sql("SELECT settled FROM diptych_feed_head")
    assert settled > 0 and fire.interrupted > 0
    for reader, fault in (("ids", "lost"), ("transactions", "reversed for a row")):
        with pytest.raises(AssertionError, match=fault):
            judge(told[reader], fire.committed)
    tell(
        f"Order under fire: {len(fire.committed)} changes of {WRITERS} writers in {seconds:.1f} s, {fire.undone} transactions "
        f"undone, numbering interrupted {fire.interrupted} times; followed by ids, "
        f"{len(set(fire.committed) - set(told['ids']))} were lost"
    )
