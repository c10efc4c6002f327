"""Two versions of a model behind one PostgreSQL: clients that write and read at a steady rate, and what they saw.

    load = Load(rate=300)
    node = load.node(port, version=1)               # where clients send their requests; it can be led to another port
    load.start(node, clients=12)
    …                                               # migrate, and lead nodes from one service to the next
    await load.stop()
    faults(load, database)                          # lost writes, doubled ones, wrong values

A client owns its rows, so it knows what each of its reads must show. The moment of a request is that of its schedule:
one that waits behind another counts its wait.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from tests.proof.long_running.followers import Follower, Watching
from tests.proof.long_running.parts import Answer, Wire, http, rows, wire

FIRST = """
from typing import Annotated
from diptych import *

class Group(Resource):
    name: str = ""
    access = (grant("read", "create"),)

class Thing(Resource):
    title: str
    code: Annotated[str, Unique()]
    size: int = 1
    note: str | None = None
    flag: bool = False
    access = (grant("read", "create", "update", "delete"),)

model = Model(Group, Thing)
"""
SECOND = """
from enum import StrEnum
from typing import Annotated
from diptych import *

class Mood(StrEnum):
    calm = "calm"
    wild = "wild"

class Group(Resource):
    name: str = ""
    access = (grant("read", "create"),)

class Thing(Resource):
    title: Annotated[str, Index()]
    code: Annotated[str, Unique()]
    rank: int
    slug: str
    size: int = 1
    mood: Mood = Mood.calm
    group: Group | None = None
    keys = (unique("code", "size"), index("size", "title"))
    search = Search("title")
    access = (grant("read", "create", "update", "delete"),)

    @check("It has a size.")
    def sized(self):
        return self.size >= 0

class Tag(Resource):
    name: Annotated[str, Unique()]
    thing: Thing | None = None
    access = (grant("read", "create"),)

model = Model(Group, Thing, Tag)
"""
ANSWERS = (
    *("--drop", "things.note", "--drop", "things.flag"),
    *("--fill", "things.rank=3", "--fill", "things.slug== upper(title)"),
)
SHOWN = {1: "id version title size note", 2: "id version title size rank slug mood"}
"""The fields that clients of each version name."""


# load


@dataclass
class Node:
    """A service, as a client knows it."""

    port: int
    version: int


@dataclass
class Written:
    """An acknowledged write: what became of a row. No values: it was deleted."""

    row_id: str
    values: tuple[str, int] | None


@dataclass
class Load:
    """All clients together, with what they were told."""

    rate: float
    phase: str = ""
    latencies: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from the moment at which a request was due to its answer, for each phase."""
    failed: list[str] = field(default_factory=list)
    """Answers that nobody should get, and reads that do not show what was written."""
    written: list[Written] = field(default_factory=list)
    _clients: list[asyncio.Task[None]] = field(default_factory=list)
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, node: Node, clients: int, total: int) -> None:
        """Begin to send requests to a node; `total` clients share the rate."""
        period = total / self.rate
        for _ in range(clients):
            number = len(self._clients)
            self._clients.append(asyncio.create_task(_Client(self, node, number, period).run(self._done)))

    async def stop(self) -> None:
        self._done.set()
        await asyncio.gather(*self._clients)

    def p99(self, *phases: str) -> float:
        times = sorted(each for phase in phases for each in self.latencies.get(phase, ()))
        return times[int(len(times) * 0.99)] if times else 0.0

    def answers(self, *phases: str) -> int:
        return sum(len(self.latencies.get(phase, ())) for phase in phases)


class _Client:
    def __init__(self, load: Load, node: Node, number: int, period: float) -> None:
        self.load, self.node, self.period = load, node, period
        self.name = f"c{number}"
        self.dice = random.Random(number)
        self.rows: dict[str, tuple[str, int]] = {}
        self.count = 0
        self._wire: Wire | None = None
        self._port = 0

    async def run(self, done: asyncio.Event) -> None:
        acts = {self._create: 4, self._update: 4, self._delete: 1, self._get: 5, self._list: 3, self._query: 4}
        due = time.perf_counter() + self.dice.uniform(0, self.period)
        while not done.is_set():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            phase = self.load.phase
            await self.dice.choices([*acts], [*acts.values()])[0]()
            self.load.latencies.setdefault(phase, []).append(time.perf_counter() - due)
            due = max(due + self.period, time.perf_counter() - 1.0)
        if self._wire is not None:
            self._wire.close()

    # requests

    def _values(self, *, new: bool) -> dict[str, Any]:
        self.count += 1
        values: dict[str, Any] = {"title": f"{self.name} {self.count}", "size": self.dice.randrange(1000)}
        if new:
            values["code"] = f"{self.name}-{self.count}"
        if self.node.version == 2:
            values |= {"rank": self.count, "slug": values["title"].upper(), "mood": self.dice.choice(("calm", "wild"))}
            return values if new else {**values, "mood": "wild"}
        return {**values, "note": self.dice.choice((None, "n"))}

    async def _create(self) -> None:
        values = self._values(new=True)
        if self.dice.random() < 0.5:
            made = self._body(await self._ask(http("POST", "/things", "", values)), 201)
        else:
            query = f"mutation($i: ThingCreate!) {{ made: createThing(input: $i) {{ {SHOWN[self.node.version]} }} }}"
            made = await self._graphql(query, i=values)
        if made:
            self._note(made["id"], (values["title"], values["size"]))

    async def _update(self) -> None:
        if not self.rows:
            return await self._create()
        row_id, patch = self.dice.choice([*self.rows]), self._values(new=False)
        if self.dice.random() < 0.5:
            made = self._body(await self._ask(http("PATCH", f"/things/{row_id}", "", patch)), 200)
        else:
            shown = SHOWN[self.node.version]
            query = f"mutation($id: ID!, $p: ThingPatch!) {{ made: updateThing(id: $id, patch: $p) {{ {shown} }} }}"
            made = await self._graphql(query, id=row_id, p=patch)
        if made:
            self._note(row_id, (patch["title"], patch["size"]))
        return None

    async def _delete(self) -> None:
        if len(self.rows) < 4:
            return await self._create()
        row_id = self.dice.choice([*self.rows])
        answer = await self._ask(http("DELETE", f"/things/{row_id}", ""))
        if answer.status == 204:
            self._note(row_id, None)
        else:
            self._fail(answer)
        return None

    def _note(self, row_id: str, values: tuple[str, int] | None) -> None:
        self.load.written.append(Written(row_id, values))
        if values is None:
            del self.rows[row_id]
        else:
            self.rows[row_id] = values

    async def _get(self) -> None:
        if not self.rows:
            return await self._create()
        row_id = self.dice.choice([*self.rows])
        found = self._body(await self._ask(http("GET", f"/things/{row_id}", "")), 200)
        self._compare(row_id, found)
        return None

    async def _list(self) -> None:
        fields = SHOWN[self.node.version].replace(" ", ",")
        self._body(await self._ask(http("GET", f"/things?first=20&fields={fields}", "")), 200)

    async def _query(self) -> None:
        if not self.rows:
            return await self._create()
        row_id = self.dice.choice([*self.rows])
        query = f"query($id: ID!) {{ made: thing(id: $id) {{ {SHOWN[self.node.version]} group: id }} }}"
        self._compare(row_id, await self._graphql(query, id=row_id))
        return None

    def _compare(self, row_id: str, found: Any) -> None:
        if found is not None and (found["title"], found["size"]) != self.rows[row_id]:
            self.load.failed.append(f"{self.load.phase}: {row_id} is {found}, not {self.rows[row_id]}")

    async def _graphql(self, query: str, **variables: Any) -> Any:
        answer = await self._ask(http("POST", "/graphql", "", {"query": query, "variables": variables}))
        body = self._body(answer, 200)
        if body is None or body.get("errors"):
            if body is not None:
                self._fail(answer)
            return None
        return body["data"]["made"]

    async def _ask(self, raw: bytes) -> Answer:
        try:
            if self._wire is None or self._port != self.node.port:
                if self._wire is not None:
                    self._wire.close()
                self._port = self.node.port
                self._wire = await wire(self._port)
            return await self._wire.ask(raw)
        except OSError as error:
            self._wire = None
            return Answer(0, b"", json.dumps(str(error)).encode())

    def _body(self, answer: Answer, status: int) -> Any:
        if answer.status == status:
            return json.loads(answer.body)
        self._fail(answer)
        return None

    def _fail(self, answer: Answer) -> None:
        self.load.failed.append(
            f"{self.load.phase}, version {self.node.version}: {answer.status} {answer.body[:300]!r}"
        )


# followers


class ThingsWatching(Watching):
    """All changes of things, with the fields of a version."""

    @classmethod
    def of(cls, version: int) -> ThingsWatching:
        return cls(f"version {version}", "thing", "", None, lambda row: True, lambda row: True)

    @property
    def shown(self) -> str:
        return SHOWN[int(self.name[-1])]

    def target(self) -> str:
        return f"/things/changes?fields={self.shown.replace(' ', ',')}"

    def operation(self, after: str) -> dict[str, Any]:
        inner = f"cursor kind rowId at thing {{ {self.shown} }}"
        query = f"subscription($after: String) {{ thingChanged(after: $after) {{ {inner} }} }}"
        return {"query": query, "variables": {"after": after}}


class RowFollower(Follower):
    """A follower that keeps the rows of changes too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rows: list[dict[str, Any] | None] = []

    def hear(self, change: Any, cursor: str) -> None:
        super().hear(change, cursor)
        self.rows.append(change["thing"])


def event_faults(follower: RowFollower, database: str, after: int) -> Iterator[str]:
    """What a follower was told that is not in the feed, or otherwise; all that it was told is compared."""
    truth = rows(
        database,
        "SELECT CASE WHEN old IS NULL THEN 'CREATED' WHEN new IS NULL THEN 'DELETED' ELSE 'UPDATED' END, row_id, "
        "new ->> 'version', new ->> 'title', new ->> 'size' FROM diptych_feed "
        f"WHERE resource = 'things' AND position > {after} ORDER BY position",
    )
    yield from follower.faults
    if len(follower.told) > len(truth):
        yield f"{follower} was told {len(follower.told)} changes of {len(truth)}"
    for told, row, (kind, row_id, version, title, size) in zip(follower.told, follower.rows, truth, strict=False):
        if (told.kind, told.id) != (kind, row_id):
            yield f"{follower} was told {told}, and it was {kind} {row_id} {version}"
            return
        if row is None:
            continue
        if kind != "DELETED" and (str(row["version"]), row["title"], str(row["size"])) != (version, title, size):
            yield f"{follower} was told {row}, and it was {version} {title} {size}"
        if any(row[name] is None for name in ("rank", "slug", "mood") if name in row):
            yield f"{follower} was told a null: {row}"


# the oracle


def faults(load: Load, database: str) -> Iterator[str]:
    """Acknowledged writes that are not in the database, or not in the feed in their order, once each."""
    final: dict[str, tuple[str, int] | None] = {}
    history: dict[str, list[tuple[str, int] | None]] = {}
    for written in load.written:
        final[written.row_id] = written.values
        history.setdefault(written.row_id, []).append(written.values)
    there = {str(row_id): (title, size) for row_id, title, size in rows(database, "SELECT id, title, size FROM things")}
    for row_id, values in final.items():
        if there.get(row_id) != values:
            yield f"{row_id} should be {values}, and is {there.get(row_id)}"
    feed = rows(
        database,
        "SELECT row_id, new ->> 'title', (new ->> 'size')::integer, new IS NULL FROM diptych_feed "
        "WHERE resource = 'things' AND (new IS NULL OR old IS NULL OR old ->> 'title' <> new ->> 'title') "
        "ORDER BY position",
    )
    logged: dict[str, list[tuple[str, int] | None]] = {}
    for row_id, title, size, is_gone in feed:
        logged.setdefault(row_id, []).append(None if is_gone else (title, size))
    for row_id, changes in history.items():
        if logged.get(row_id) != changes:
            yield f"the feed has {logged.get(row_id)} of {row_id}, and {changes} was written"


# locks


TABLES = ("groups", "things")
"""The tables that both versions have; nobody waits for one that is new."""
_LOCKS = """
    SELECT l.pid, l.virtualtransaction, l.relation::regclass::text, l.mode, l.granted,
      extract(epoch FROM clock_timestamp() - l.waitstart)::float8, extract(epoch FROM clock_timestamp())::float8,
      a.application_name
    FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'relation' AND l.relation >= 16384
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (NOT l.granted OR l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
"""


class LockWatch:
    """Looks every few milliseconds how long locks of tables are held that hold up readers or writers, and how long
    services wait for one."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.held: dict[str, float] = {}
        """Seconds for which a strong lock of a table was held, at most, by table."""
        self.waited = 0.0
        self.looks = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._look()), daemon=True)

    def __enter__(self) -> LockWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def longest(self) -> float:
        return max(self.held.values(), default=0.0)

    async def _look(self) -> None:
        since: dict[tuple[Any, ...], float] = {}
        connection = await asyncpg.connect(self.database, server_settings={"application_name": "watch"})
        try:
            while not self._done.is_set():
                found = await connection.fetch(_LOCKS)
                self.looks += 1
                now: dict[tuple[Any, ...], float] = {}
                for pid, transaction, table, mode, granted, waited, at, name in found:
                    if granted and table in TABLES:
                        key = pid, transaction, table, mode
                        now[key] = since.get(key, at)
                        self.held[table] = max(self.held.get(table, 0.0), at - now[key])
                    elif not granted and name == "diptych":
                        self.waited = max(self.waited, waited or 0.0)
                since = now
                await asyncio.sleep(0.004)
        finally:
            await connection.close()
