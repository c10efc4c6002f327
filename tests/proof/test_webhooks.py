"""Webhooks whose service is killed again and again, among endpoints that are slow, fail and lie.

Each good endpoint has every change at least once, the changes of each row in their order, and the same id for the same
event on every try; the memory of the service stays bounded. `make prove` sends 20,000 changes to 50 endpoints over 20
kills; `make test` a short form. Two planted faults show that it can fail.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from diptych import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.engine.watch import WatchEngine
from diptych.identity.owner import fixed_owner
from diptych.identity.tokens import load_secret
from diptych.policy.limits import Checks
from diptych.webhooks import manage
from tests.proof.webhook_node import model
from tests.support.effort import scaled
from tests.support.running import NewDatabase, environment
from tests.support.webhooks import Message, Receiver

ROOT = Path(__file__).parents[2]
CHANGES, ROWS = scaled(20_000, 160), scaled(200, 20)
KILLS = scaled(20, 2)
GOOD, SLOW, FAILING = scaled(25, 3), scaled(10, 1), scaled(10, 1)
LIARS = ("redirecting", "hanging", "lying", "closing", "flaky")
BURST = 4
"""Changes of one row that follow each other."""
SECONDS = scaled(10_000, 90)
MEMORY = 300 << 20
"""Bytes of the service: what it takes at rest, and its webhooks."""


class Ledger:
    """What good endpoints have received: for each row the highest number, and every fault."""

    def __init__(self) -> None:
        self.reached: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.first = self.again = 0
        self.faults: list[str] = []
        self._events: dict[tuple[str, int], str] = {}

    async def note(self, name: str, message: Message) -> None:
        await asyncio.sleep(random.uniform(0, 0.004))  # so that what is sent at a time is noted in any order
        data = message.event["data"]
        row, number = data["rowId"], data["item"]["number"]
        event = self._events.setdefault((row, number), data["eventId"])
        if event != data["eventId"] or not message.id.endswith("_" + event):
            self.faults.append(f"{name}: {row} {number} has the id {message.id}")
        if not name.startswith("good"):
            return
        if number == self.reached[name][row] + 1:
            self.reached[name][row] = number
            self.first += 1
        elif number <= self.reached[name][row]:
            self.again += 1
        else:
            self.faults.append(f"{name}: {row} is at {self.reached[name][row]} when {number} comes")

    def missing(self, names: list[str], rows: list[str], each: int) -> int:
        return sum(each - self.reached[name][row] for name in names for row in rows)


class Node:
    """A service in a process of its own, killed and started again."""

    def __init__(self, database: str, fault: str) -> None:
        self._arguments = ("-m", "tests.proof.webhook_node", database, *([fault] if fault else []))
        self._process: asyncio.subprocess.Process | None = None
        self.memory = 0

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, *self._arguments), cwd=ROOT, env=environment(), stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert await self._process.stdout.readline() == b"ready\n"

    def look(self) -> None:
        """Note how much memory it takes."""
        assert self._process is not None
        with suppress(OSError):
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
            self.memory = max(self.memory, pages * os.sysconf("SC_PAGE_SIZE"))

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()


async def write(store: Store, rows: list[str], each: int) -> None:
    """Change every row so many times, some times in a row, and some rows in each transaction."""
    for first in range(1, each + 1, BURST):
        for start in range(0, len(rows), 10):
            session = await store.session()
            try:
                for row in rows[start : start + 10]:
                    for number in range(first, min(first + BURST, each + 1)):
                        await session.rows(f"UPDATE items SET number = {number} WHERE id = '{row}'", ())
                await session.commit()
            finally:
                await session.end()
        await asyncio.sleep(0)


async def prove(database: str, fault: str = "") -> tuple[Ledger, int, Node]:
    """Run it all; returns what was received, how much is missing, and the node."""
    ledger, node = Ledger(), Node(database, fault)
    names = [f"good-{number}" for number in range(GOOD)]
    others = [
        *(f"slow-{number}" for number in range(SLOW)),
        *(f"failing-{number}" for number in range(FAILING)),
        *LIARS,
    ]
    store = connect(Config(database=database))
    await store.open(model)
    rows = [f"01900000-0000-7000-8000-{number:012x}" for number in range(ROWS)]
    await store.insert(model.resources["Item"], ["id", "number"], [[row, 0] for row in rows])
    engine = WatchEngine(Engine(model, store, Checks(), await load_secret(store)))
    async with Receiver() as receiver:
        receiver.on_message, receiver.keeps = ledger.note, False
        for name in (*names, *others):
            owner = fixed_owner([])
            await manage.add(engine, name, receiver.url(name), "items", "fields=number", owner, allowed="127.0.0.1")
        await node.start()
        each = CHANGES // ROWS
        writing = asyncio.create_task(write(store, rows, each))
        total, kills, end = GOOD * ROWS * each, 0, time.monotonic() + SECONDS
        quiet_since, before = time.monotonic(), -1
        while ledger.missing(names, rows, each) and time.monotonic() < end:
            await asyncio.sleep(0.05)
            node.look()
            if kills < KILLS and ledger.first + ledger.again > total * (kills + 1) // (KILLS + 1):
                kills += 1
                await node.kill()
                await node.start()
            if ledger.first + ledger.again != before:
                quiet_since, before = time.monotonic(), ledger.first + ledger.again
            if fault and time.monotonic() > quiet_since + 8:  # nothing comes any more
                break
        await writing
        await node.kill()
    missing = ledger.missing(names, rows, each)
    await store.close()
    print(f"{ledger.first} delivered, {ledger.again} again, {missing} missing, {kills} kills, {node.memory >> 20} MB")
    return ledger, missing, node


@pytest.mark.timeout(SECONDS + 60)
def test_every_good_endpoint_has_every_change_in_order_over_kills(new_database: NewDatabase) -> None:
    ledger, missing, node = asyncio.run(prove(new_database()))
    assert (ledger.faults[:5], missing) == ([], 0)
    assert node.memory < MEMORY


@pytest.mark.long
@pytest.mark.parametrize("fault", ["early", "unordered"])
def test_it_fails_where_a_fault_is_planted(new_sqlite: NewDatabase, fault: str) -> None:
    ledger, missing, _ = asyncio.run(prove(new_sqlite(), fault))
    assert ledger.faults or missing
