"""Changes of two databases that look the same to their viewer, as that viewer is told of them.

Both databases are changed in the same way as far as the viewer sees, and each in its own way behind their back: hidden
rows change, come and go, in different numbers; hidden fields of visible rows get different values by the same change.
A pair is one random request for changes, sent to both: the log in pages, with its headers and its tag, and streams,
those that were open all the while and those that resume. All that is told must be equal, but for cursors and ids of
events, which must tell nothing, and for times that a database set by its own clock.

What has been seen of a row is told by the oracle, version by version. (A rule looks at related rows as they are now: a
change that nobody noticed may let an old version show in one database and not in the other. That is the rule's own
word; such deals are left out, and counted.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from diptych.api.graphql.printer import print_subscription
from diptych.api.reply import Reply
from diptych.api.rest.printer import print_rest_watch
from diptych.ask.nodes import OrderBy
from diptych.identity.viewer import Caller
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import Expr
from diptych.model.scalars import DATETIME, ID, INTEGER_ID
from tests.proof.interference.altering import alike
from tests.proof.interference.databases import Leak, Pairs, RequestMeasures
from tests.proof.interference.dealing import Deal, SecretWorld, deal
from tests.proof.interference.reading import WHO, Keen
from tests.support.asks import DrawnWatch
from tests.support.edge_cases import pool
from tests.support.following import Recorder, caller_of, follow, ready_for, settle
from tests.support.oracle import Row, Sight
from tests.support.oracle_changes import Change, History
from tests.support.oracle_writes import TOUCHED
from tests.support.proof import cursor_key
from tests.support.proof_writes import Run, untimed
from tests.support.random_writes import fitting
from tests.support.row_changes import delete_row, insert_row, update_row

State = dict[str, list[dict[str, Any]]]
CHANGES = 16
PER_DEAL = 6
STREAMS = 3
_CURSOR = re.compile(r'"[A-Za-z0-9_-]{64}"')
_EVENT = re.compile(r'"eventId":"[A-Za-z0-9_-]{20}"')
"""The id of an event: a keyed hash of its position, which differs with what others have changed."""


class Curious(Keen):
    """Draws Watches that reach for what is hidden; never by a time that a database sets itself."""

    def key(self, each: ResourceView) -> OrderBy:
        found = super().key(each)
        return found if "updatedAt" not in str(found) else self.key(each)

    def compare(self, each: ResourceView, field: FieldDef) -> Expr:
        found = super().compare(each, field)
        return found if "updatedAt" not in str(found) else super().compare(each, each.fields["id"].field)


class One:
    """One of the two databases: its rows as they are, and what was changed."""

    def __init__(self, run: Run, rows: Any) -> None:
        self.run = run
        self.rows: State = {name: [dict(row) for row in table] for name, table in rows.items()}
        self.changes: list[Change] = []
        self.start = ""
        self.streams: list[Recorder] = []

    def find(self, resource: str, id: Any) -> dict[str, Any] | None:
        return next((row for row in self.rows[resource] if row["id"] == id), None)

    def with_(self, change: Change) -> State:
        """The rows after a change."""
        others = [row for row in self.rows[change.resource] if row["id"] != change.id]
        return {**self.rows, change.resource: [*others, *([dict(change.new)] if change.new is not None else [])]}

    async def make(self, change: Change, resource: ResourceDef) -> None:
        """Make a change."""
        store = self.run.app.store
        if change.new is None:
            await delete_row(store, resource, change.id)
        elif change.old is None:
            await insert_row(store, resource, change.new)
        else:
            values = {name: value for name, value in change.new.items() if name not in SERVER_FIELDS}
            await update_row(store, resource, change.id, values)
        self.rows = self.with_(change)
        self.changes.append(change)


class Following(Pairs):
    """One viewer follows the changes of both databases."""

    def deal(self, random: Random) -> Deal:
        return deal(self.model, random, WHO)

    async def send(self, dealt: Deal, random: Random, end: int) -> None:
        both = [One(run, rows) for run, rows in zip(self.runs, dealt.both, strict=True)]
        world = SecretWorld(dealt)
        for one in both:
            one.start = await self._end(one)
        open_ = [Curious(random, world).watch(after=False) for _ in range(STREAMS)]
        for one in both:
            one.streams = [await self._stream(one, drawn, dealt) for drawn in open_]
        await self._stir(both, dealt, random)
        for one in both:
            await settle(one.run.handler.live)
        if not self._same_history(both, dealt):
            self.seen["reveals"] += 1
            for one in both:
                for stream in one.streams:
                    stream.close()
            return
        for number, drawn in enumerate(open_):
            self._check([one.streams[number].bodies for one in both], dealt, drawn, "a stream")
            for one in both:
                one.streams[number].close()
        for _ in range(min(PER_DEAL, end - self.pairs)):
            drawn = Curious(random, world).watch(after=False)
            await self._compare(both, drawn, dealt, random)
            changed = [[change for change in one.changes if change.resource == drawn.watch.resource] for one in both]
            self.seen.update(pairs=1, touching=changed[0] != changed[1])

    # changes

    async def _stir(self, both: Sequence[One], dealt: Deal, random: Random) -> None:
        for _ in range(CHANGES):
            if random.random() < 0.6:
                await self._seen(both, dealt, random)
            else:
                await self._unseen(random.choice(both), both, dealt, random)
            for one in both:  # a row is told as it is when it is told, so that must not depend on who is faster
                await settle(one.run.handler.live)

    async def _seen(self, both: Sequence[One], dealt: Deal, random: Random) -> None:
        """The same change to both, as far as the viewer sees."""
        resource = random.choice(list(self.model.resources.values()))
        sights = [Sight(self.model, dealt.viewer, one.rows) for one in both]
        ids = [row.id for row in sights[0].rows[resource.name] if sights[0].readable(row)]
        if not ids:
            return
        id = random.choice(ids)
        rows = [sight.find(resource.name, id) for sight in sights]
        if any(row is None for row in rows):
            return
        changes = self._drawn(resource, [row for row in rows if row is not None], sights, both, random)
        if changes and alike(
            self.model, dealt.viewer, *(one.with_(each) for one, each in zip(both, changes, strict=True))
        ):
            for one, change in zip(both, changes, strict=True):
                await one.make(change, resource)

    def _drawn(
        self, resource: ResourceDef, rows: Sequence[Row], sights: Sequence[Sight], both: Sequence[One], random: Random
    ) -> list[Change]:
        if random.random() < 0.1:
            free = not any(_is_referred(one, self.model.resources, resource, rows[0].id) for one in both)
            return [Change(resource.name, row.id, row.data, None) for row in rows] if free else []
        new = [dict(row.data) for row in rows]
        for field in random.sample(_given(resource), min(random.choice((1, 2, 5)), len(_given(resource)))):
            choices = [value for one in both[:1] for value in _choices(resource, field, one, random)]
            if not choices:
                continue
            shown = all(sight.shows(field.name, row) for sight, row in zip(sights, rows, strict=True))
            value = random.choice(choices)
            new[0][field.name] = value
            new[1][field.name] = value if shown or field.relation else random.choice(choices)
        for each in new:
            each |= {"version": each["version"] + 1, "updatedAt": TOUCHED}
        return [Change(resource.name, row.id, row.data, each) for row, each in zip(rows, new, strict=True)]

    async def _unseen(self, one: One, both: Sequence[One], dealt: Deal, random: Random) -> None:
        """A change to one of them, of a row that the viewer sees neither before nor after."""
        resource = random.choice(list(self.model.resources.values()))
        sight = Sight(self.model, dealt.viewer, one.rows)
        hidden = [row for row in sight.rows[resource.name] if not sight.readable(row)]
        if not hidden:
            return
        row = random.choice(hidden)
        change = self._hidden(resource, row, one, random)
        after = one.with_(change)
        if change.new is not None and Sight(self.model, dealt.viewer, after).readable(Row(resource, change.new)):
            return
        others = [each.rows if each is not one else after for each in both]
        if alike(self.model, dealt.viewer, *others):
            await one.make(change, resource)

    def _hidden(self, resource: ResourceDef, row: Row, one: One, random: Random) -> Change:
        kind = random.choices(("update", "insert", "delete"), (6, 1, 1))[0]
        if kind == "delete" and not _is_referred(one, self.model.resources, resource, row.id):
            return Change(resource.name, row.id, row.data, None)
        new = dict(row.data)
        for field in random.sample(_given(resource), min(3, len(_given(resource)))):
            choices = _choices(resource, field, one, random)
            if choices:
                new[field.name] = random.choice(choices)
        if kind == "insert":
            self.ids += 1
            fresh = 10**7 + self.ids if isinstance(row.id, int) else self.new_id()
            unique = {each.name: f"{random.getrandbits(60)}@new" for each in resource.fields.values() if each.unique}
            return Change(resource.name, fresh, None, {**new, **unique, "id": fresh})
        return Change(resource.name, row.id, row.data, {**new, "version": new["version"] + 1, "updatedAt": TOUCHED})

    def _same_history(self, both: Sequence[One], dealt: Deal) -> bool:
        """Has the viewer seen the same versions of rows, as far as rules tell by now?"""
        one, other = (list(_versions(History(self.model, dealt.viewer, each.rows), each.changes)) for each in both)
        return one == other and alike(self.model, dealt.viewer, *(each.rows for each in both))

    # what is told

    async def _end(self, one: One) -> str:
        live = one.run.handler.live
        await settle(live)
        return live.tail.change_cursors.seal(live.tail.end)

    async def _caller(self, one: One, dealt: Deal) -> Caller:
        viewer = dealt.viewer
        roles = [name for name in self.model.roles if name in viewer.roles]
        tokens = one.run.handler.context.tokens
        return await caller_of(
            one.run.handler, tokens.make(viewer.id, roles, viewer.scopes) if viewer.signed_in else None
        )

    def _raw(self, one: One, drawn: DrawnWatch, dealt: Deal, after: str | None = None) -> list[Any]:
        engine = one.run.handler.engine
        return drawn.sealed(self.model, lambda read, values: cursor_key(engine, dealt.viewer, read, values), after)

    async def _stream(self, one: One, drawn: DrawnWatch, dealt: Deal, after: str | None = None) -> Recorder:
        drawn = drawn if after is None else drawn.resuming()
        document, variables = print_subscription(
            drawn.label, drawn.watch, self._raw(one, drawn, dealt, after), self.model
        )
        return await follow(one.run.handler, await self._caller(one, dealt), document, variables)

    async def _compare(self, both: Sequence[One], drawn: DrawnWatch, dealt: Deal, random: Random) -> None:
        """The log in pages, and a stream that resumes."""
        size = random.choice((1, 2, 3, 20))
        resuming = drawn.resuming()
        after = [one.start for one in both]
        while True:
            pages = [
                await self._log(one, resuming, dealt, cursor, size) for one, cursor in zip(both, after, strict=True)
            ]
            self._check([[*page.changes, repr(page.next is None).encode()] for page in pages], dealt, drawn, "the log")
            self._check([page.bare for page in pages], dealt, drawn, "the log without cursors")
            if pages[0].next is None or pages[1].next is None:
                break
            after = [str(page.next) for page in pages]
        if drawn.rest:
            await self._compare_rest(both, resuming, dealt, size)
        streams = [await self._stream(one, drawn, dealt, one.start) for one in both]
        for one in both:
            await settle(one.run.handler.live)
        self._check([stream.bodies for stream in streams], dealt, drawn, "a stream that resumes")
        for stream in streams:
            stream.close()
        if random.random() < 0.5:
            await self._compare_cursors(both, drawn, dealt, random)

    async def _log(self, one: One, drawn: DrawnWatch, dealt: Deal, after: str, size: int) -> Any:
        handler, caller = one.run.handler, await self._caller(one, dealt)
        raw = self._raw(one, drawn, dealt, after)
        printed = print_subscription(drawn.label, drawn.watch, raw, self.model)
        ready, inputs = await ready_for(handler, caller, *printed)
        return await handler.live.log(ready, inputs, caller, size)

    async def _compare_rest(self, both: Sequence[One], drawn: DrawnWatch, dealt: Deal, size: int) -> None:
        after = [one.start for one in both]
        while True:
            replies, asked = [], []
            for one, cursor in zip(both, after, strict=True):
                url = print_rest_watch(drawn.watch, self._raw(one, drawn, dealt, cursor), self.model) + f"&first={size}"
                asked.append(RequestMeasures("GET", url))
                replies.append(await one.run.request("GET", url, {}, b"", dealt.viewer))
            assert all(reply.status == 200 for reply in replies), self.told(replies, dealt, asked)
            self.check_same([_bare(reply) for reply in replies], dealt, asked)
            pages = [json.loads(reply.body)["page"] for reply in replies]
            if pages[0]["next"] is None:
                return
            after = [page["next"] for page in pages]

    async def _compare_cursors(self, both: Sequence[One], drawn: DrawnWatch, dealt: Deal, random: Random) -> None:
        """Nobody can tell by two cursors whether something happened between them."""
        made: list[list[str]] = [[], []]
        for turn in range(2):
            for one, found in zip(both, made, strict=True):
                page = await self._log(one, drawn.resuming(), dealt, one.start, 1)
                found += [page.last, *([page.next] if page.next else [])]
            if turn == 0:
                await self._unseen(both[0], both, dealt, random)
        equal = [[one == other for one in found for other in found] for found in made]
        if equal[0] != equal[1] or any(one == other for one in made[0] for other in made[1]):
            raise Leak(f"deal {self.deals}, {dealt.who}: {made}")

    def _check(self, bodies: Sequence[Sequence[bytes]], dealt: Deal, drawn: DrawnWatch, what: str) -> None:
        one, other = ([_anonymous(untimed(body.decode())) for body in each] for each in bodies)
        if one != other:
            document, variables = print_subscription(drawn.label, drawn.watch, drawn.values, self.model)
            raise Leak(f"deal {self.deals}, {dealt.who}: {what}\n{document}{variables}\n{one}\n{other}")


def _anonymous(body: str) -> str:
    """A body without cursors and ids of events."""
    return _CURSOR.sub('""', _EVENT.sub("", body))


def _bare(reply: Reply) -> Reply:
    headers = tuple((name, b"" if name == b"change-cursor" else value) for name, value in reply.headers)
    return Reply(reply.status, headers, _anonymous(reply.body.decode()).encode())


def _given(resource: ResourceDef) -> list[FieldDef]:
    return [
        each for each in resource.fields.values() if each.stored and each.name not in SERVER_FIELDS and not each.unique
    ]


def _choices(resource: ResourceDef, field: FieldDef, one: One, random: Random) -> list[Any]:
    """Values for a field that every row may have."""
    nothing = [None] if field.nullable else []
    if field.relation:
        return [row["id"] for row in one.rows[resource.relations[field.relation].target]] + nothing
    if field.scalar in (ID, INTEGER_ID):
        return []
    found = [fitting(field, value) for value in random.sample(list(pool(field.scalar)), 2)]
    return [value for value in found if field.scalar is not DATETIME or value < "2026"] + nothing


def _is_referred(one: One, resources: Any, resource: ResourceDef, id: Any) -> bool:
    """Does some row refer to it?"""
    return any(
        row[way.name + "Id"] == id
        for name, each in resources.items()
        for way in each.relations.values()
        if (way.kind, way.target) == ("one", resource.name)
        for row in one.rows[name]
    )


def _versions(history: History, changes: Sequence[Change]) -> Iterator[Any]:
    """What has been seen of each change: the row before and after, as far as its fields show."""
    for change in changes:
        resource = history.model.resources[change.resource]
        pair = [_version(history, resource, data) for data in (change.old, change.new)]
        if pair != [None, None]:
            yield change.resource, change.id, pair


def _version(history: History, resource: ResourceDef, data: Any) -> Any:
    if data is None or not history.readable(row := Row(resource, data)):
        return None
    sees: Callable[[FieldDef], bool] = lambda field: field.python is None and history.shows(field.name, row)  # noqa: E731  # typed
    return {field.name: history.shown(field.name, row) for field in resource.fields.values() if sees(field)}
