"""One model on one store, whose rows are changed at random, and who is told of it: streams, the log, and the oracle.

proof = FeedProof(model, url, runner)
proof.prove(Random(7))           one sequence of changes; every stream and every log tells what the oracle says
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from diptych.api.graphql.printer import print_subscription
from diptych.api.rest.printer import print_rest_watch
from diptych.ask.change_cursor import FeedPosition
from diptych.ask.nodes import ChangePart, Read, Watch
from diptych.db.store import Store
from diptych.live.log_page import LogPage
from diptych.model.declare.roles import Viewer
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.model import Model
from tests.support.asks import Dice, DrawnWatch, World
from tests.support.edge_cases import pool, rows
from tests.support.following import Recorder, caller_of, follow, ready_for, settle
from tests.support.oracle import wire
from tests.support.oracle_changes import AT, CURSOR, EVENT, Change, fold, stored_changes, told
from tests.support.proof import Reveal, cursor_key, exactly
from tests.support.proof_writes import Run, kind, viewers
from tests.support.random_writes import Wishes, fitting
from tests.support.row_changes import delete_row, insert_row, update_row

LENGTH = 16
"""Transactions in a sequence."""
FOLLOWERS = 5
LOGS = 4


class Follower:
    """A stream of one viewer, and what it must have been told so far."""

    def __init__(self, drawn: DrawnWatch, viewer: Viewer, sink: Recorder, reveal: Reveal) -> None:
        self.drawn = drawn
        self.viewer = viewer
        self.sink = sink
        self.reveal = reveal
        self.wanted: list[Any] = []


class FeedProof:
    """Changes rows, and holds what is told of it against the oracle."""

    def __init__(self, model: Model, url: str, runner: asyncio.Runner, seed: int = 0) -> None:
        self.model = model
        self.runner = runner
        self.first = kind(model, rows(model, seed, 5))
        self.run = Run(model, url, self.first, runner)
        self.handler = self.run.handler
        self.live = self.handler.live
        self.viewers = viewers(model, self.first)
        self.seen: Counter[str] = Counter()

    def close(self) -> None:
        self.runner.run(self.run.stop())

    def key_of(self, viewer: Viewer, read: Read, values: Sequence[Any]) -> bytes:
        return cursor_key(self.handler.engine, viewer, read, values)

    def prove(self, seeds: range) -> None:
        for seed in seeds:
            try:
                self.runner.run(self._sequence(Random(seed)))
            except AssertionError as error:
                raise AssertionError(f"in the sequence {seed}: {error}") from error

    # a sequence

    async def _sequence(self, random: Random) -> None:
        await self.run.reset()
        await settle(self.live)
        start = await self._cursor()
        base = position = self.live.tail.head.position
        state = {name: [dict(row) for row in table] for name, table in self.first.items()}
        hot = random.choice([name for name, table in state.items() if table])
        followers = [await self._follower(random, state, hot) for _ in range(FOLLOWERS)]
        wishes = Wishes(self.model, random)
        changes: list[Change] = []
        for _ in range(LENGTH):
            state, more, position = await self._step(wishes, random, state, position, hot)
            changes += more
            for each in followers:
                each.wanted += [event for _, event in self._told(each.drawn, each.viewer, more, state)]
        await self._check_rows(state)
        for each in followers:
            assert each.sink.ended is None
            self._check_same(each.drawn, each.viewer, each.reveal, each.sink.bodies, each.wanted, "the stream")
            each.sink.close()
        for _ in range(LOGS):
            await self._check_log(random, state, changes, start, base, hot)
        self.seen["changes"] += len(changes)

    async def _step(
        self, wishes: Wishes, random: Random, state: Any, position: int, hot: str
    ) -> tuple[Any, list[Change], int]:
        """One transaction that changes something, and the rows after it."""
        for _ in range(20):
            if random.random() < 0.75:
                await stir(self.run.app.store, self.model, random, state, hot)
            else:
                viewer = random.choice(self.viewers)
                transaction = wishes.transaction(viewer, state)
                await self.run.make(transaction, random.choice(transaction.styles), viewer, (), checked=False)
            await settle(self.live)
            changes, position = await stored_changes(self.run.app.store, self.model, position)
            if changes:
                return fold(state, changes), changes, position
        raise AssertionError("nothing can be changed")

    async def _check_rows(self, state: Any) -> None:
        """What the feed tells leads to the rows that there are."""
        for name, table in (await self.run.rows()).items():
            fields = self.model.resources[name].fields
            wanted = {
                str(row["id"]): {key: wire(fields[key].scalar, value) for key, value in row.items()}
                for row in state[name]
            }
            wanted = {key: self.run.incoming(row) for key, row in wanted.items()}
            assert {key: _sorted(row) for key, row in table.items()} == {
                key: _sorted(row) for key, row in wanted.items()
            }

    # who is told

    def _drawn(self, random: Random, state: Any, hot: str) -> tuple[DrawnWatch, Viewer, Reveal]:
        """A viewer and what it follows; mostly the resource that is changed most."""
        viewer = random.choice(self.viewers)
        world = World(self.model, viewer, state)
        few = [each for each in world.resources if each.resource.name == hot]
        world.resources = few if few and random.random() < 0.8 else world.resources
        if not world.resources:
            return self._drawn(random, state, hot)
        drawn = Dice(random, world).watch(after=False)
        return drawn, viewer, Reveal(self, viewer, drawn.canonical())  # type: ignore[arg-type]  # of the same form

    async def _follower(self, random: Random, state: Any, hot: str) -> Follower:
        drawn, viewer, reveal = self._drawn(random, state, hot)
        sink = await follow(self.handler, await self._caller(viewer), *self._printed(drawn, viewer))
        return Follower(drawn, viewer, sink, reveal)

    def _printed(self, drawn: DrawnWatch, viewer: Viewer, after: str | None = None) -> tuple[str, dict[str, Any]]:
        if after is not None:
            drawn = drawn.resuming()
        raw = drawn.sealed(self.model, lambda read, values: self.key_of(viewer, read, values), after)
        return print_subscription(drawn.label, drawn.watch, raw, self.model)

    def _told(self, drawn: DrawnWatch, viewer: Viewer, changes: Sequence[Change], state: Any) -> list[tuple[int, Any]]:
        show = lambda read, keys: {"cursor": keys}  # noqa: E731  # typed
        found = told(self.model, viewer, drawn.watch, changes, state, drawn.canonical(), show)
        self.seen.update(event.get("kind", "some kind") for _, event in found)
        return found

    async def _caller(self, viewer: Viewer) -> Any:
        roles = [name for name in self.model.roles if name in viewer.roles]
        token = self.handler.context.tokens.make(viewer.id, roles, viewer.scopes) if viewer.signed_in else None
        return await caller_of(self.handler, token)

    async def _cursor(self) -> str:
        return self.live.tail.change_cursors.seal(self.live.tail.end)

    # the log

    async def _check_log(
        self, random: Random, state: Any, changes: Sequence[Change], start: str, base: int, hot: str
    ) -> None:
        """All of it, in pages of some size, from every cursor in it, as a stream, and as REST tells it."""
        drawn, viewer, reveal = self._drawn(random, state, hot)
        caller = await self._caller(viewer)
        wanted = self._told(drawn, viewer, changes, state)
        events = [event for _, event in wanted]

        async def page(after: str, size: int) -> LogPage:
            ready, inputs = await ready_for(self.handler, caller, *self._printed(drawn, viewer, after))
            return await self.live.log(ready, inputs, caller, size)

        whole = await page(start, 20)
        bodies = list(whole.changes)
        cursors = [cursor for cursor in map(_cursor_of, bodies) if cursor is not None]
        while whole.next is not None:
            whole = await page(whole.next, 20)
            bodies += whole.changes
        self._check_same(drawn, viewer, reveal, bodies, events, "the log")
        for size in {1, random.randint(2, 5)}:
            await self._check_pages(page, start, size, drawn, viewer, reveal, wanted, base)
        sink = await follow(self.handler, caller, *self._printed(drawn, viewer, start))
        await settle(self.live)
        self._check_same(drawn, viewer, reveal, sink.bodies, events, "a stream that resumes")
        for number, cursor in enumerate(sink.cursors, 1):
            rest = await page(cursor, 20)
            self._check_same(
                drawn, viewer, reveal, rest.changes, events[number : number + 20], f"the log after {number}"
            )
        sink.close()
        if sink.cursors:
            number = random.randrange(len(sink.cursors))
            again = await follow(self.handler, caller, *self._printed(drawn, viewer, sink.cursors[number]))
            await settle(self.live)
            self._check_same(drawn, viewer, reveal, again.bodies, events[number + 1 :], f"a stream after {number}")
            again.close()
        if drawn.rest:
            await self._check_rest(drawn, viewer, reveal, events, start)
            assert len(cursors) == min(len(events), 20) and len(set(cursors)) == len(cursors)

    async def _check_pages(
        self,
        page: Any,
        start: str,
        size: int,
        drawn: DrawnWatch,
        viewer: Viewer,
        reveal: Reveal,
        wanted: Any,
        base: int,
    ) -> None:
        after: str | None = start
        bodies: list[bytes] = []
        while after is not None:
            found = await page(after, size)
            bodies += found.changes
            assert len(found.changes) == size or found.next is None
            last: FeedPosition = self.live.tail.change_cursors.open(found.last)
            upto = wanted[len(bodies) - 1][0] + base + 1 if found.next is not None else self.live.tail.head.position
            assert last.position == upto
            after = found.next
        self._check_same(drawn, viewer, reveal, bodies, [event for _, event in wanted], f"pages of {size}")

    async def _check_rest(
        self, drawn: DrawnWatch, viewer: Viewer, reveal: Reveal, events: list[Any], start: str
    ) -> None:
        resuming = drawn.resuming()
        after: str | None = start
        bodies: list[bytes] = []
        while after is not None:
            raw = resuming.sealed(self.model, lambda read, values: self.key_of(viewer, read, values), after)
            url = print_rest_watch(resuming.watch, raw, self.model) + "&first=7"
            reply = await self.run.request("GET", url, {}, b"", viewer)
            assert reply.status == 200, (url, reply.body)
            found = json.loads(reply.body)
            bodies += [json.dumps(each).encode() for each in found["data"]]
            after = found["page"]["next"]
        self._check_same(drawn, viewer, reveal, bodies, events, "REST")

    def _check_same(
        self,
        drawn: DrawnWatch,
        viewer: Viewer,
        reveal: Reveal,
        bodies: Sequence[bytes],
        wanted: Sequence[Any],
        what: str,
    ) -> None:
        got = [self._bare(drawn.watch, reveal, json.loads(body)) for body in bodies]
        self.seen["compared"] += len(got)
        if exactly(got) != exactly(list(wanted)):
            document, variables = print_subscription(drawn.label, drawn.watch, drawn.values, self.model)
            raise AssertionError(f"{what}, to {viewer}\n{document}\n{variables}\n got {got}\nnot {list(wanted)}")

    def _bare(self, watch: Watch, reveal: Reveal, event: Any) -> Any:
        """A change without its own cursor and time; cursors in its row as what they hold."""
        parts = {part.label: part for part in watch.parts}
        return {label: self._bare_part(parts[label], watch, reveal, value) for label, value in event.items()}

    @staticmethod
    def _bare_part(part: ChangePart, watch: Watch, reveal: Reveal, value: Any) -> Any:
        if part.what == "row":
            return None if value is None else reveal.read(Read(watch.resource, "one", part.pick), value)
        if part.what in ("cursor", "at", "eventId"):
            assert isinstance(value, str) and len(value) == {"cursor": 64, "at": 27, "eventId": 20}[part.what]
            return {"cursor": CURSOR, "at": AT, "eventId": EVENT}[part.what]
        return value


async def stir(store: Store, model: Model, random: Random, state: Any, hot: str) -> None:
    """Change some values of a row, or delete it, or make one like it: as someone would who knows nothing of rules."""
    there = [each for each in model.resources.values() if state[each.name]]
    resource = model.resources[hot] if state[hot] and random.random() < 0.8 else random.choice(there)
    row = random.choice(state[resource.name][:4])
    fields = [each for each in resource.fields.values() if each.stored and each.name not in SERVER_FIELDS]
    values = {
        each.name: _other(resource, each, random, state)
        for each in random.sample(fields, min(len(fields), random.choice((1, 3, 6))))
    }
    match random.choices(("update", "delete", "insert"), (8, 1, 1))[0]:
        case "update":
            await update_row(store, resource, row["id"], values)
        case "delete":
            await delete_row(store, resource, row["id"])
        case "insert":
            unique = {
                each.name: None if each.nullable else f"{random.getrandbits(60)}@x" for each in fields if each.unique
            }
            digits = f"{random.getrandbits(48):012x}"
            fresh = random.randrange(10**8, 10**9) if isinstance(row["id"], int) else f"{row['id'][:24]}{digits}"
            await insert_row(store, resource, {**row, **values, **unique, "id": fresh, "version": 1})


def _other(resource: ResourceDef, field: FieldDef, random: Random, state: Any) -> Any:
    if field.nullable and random.random() < 0.2:
        return None
    if field.relation:
        there = state[resource.relations[field.relation].target]
        return random.choice(there)["id"] if there else None
    return f"{random.getrandbits(60)}@x" if field.unique else fitting(field, random.choice(pool(field.scalar)))


def _sorted(row: Any) -> Any:
    return dict(sorted(row.items()))


def _cursor_of(body: bytes) -> str | None:
    found = json.loads(body).get("cursor")
    return found if isinstance(found, str) and len(found) == 64 else None
