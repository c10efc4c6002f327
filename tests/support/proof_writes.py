"""Changes straight into a service, on a store whose rows can be set back to what they were.

    run = Run(model, "sqlite:///:memory:", rows, runner)
    await run.make(transaction, "rest", viewer, made)     →  Outcome: a code and the places at fault, or the answers

An answer is told with the ids of the ledger, and with its time, where the database itself set it.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diptych import Diptych
from diptych.api.graphql.translate import translate
from diptych.api.reply import STATUS, Reply
from diptych.api.rest.precondition import versions
from diptych.api.rest.query import read_query
from diptych.api.rest.target import find_target
from diptych.api.rest.translate import translate_bulk, translate_write
from diptych.ask.nodes import Field, Page, Read, Write
from diptych.ask.slots import SIZE
from diptych.compile.read import compile_reads
from diptych.config import Config
from diptych.db.postgres.store import PostgresStore
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.store import SqliteStore
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import Slot
from diptych.model.scalars import INTEGER_ID
from diptych.model.view import View
from diptych.serve.http.request import Request
from tests.support import edge_cases
from tests.support.edge_cases import Data, load
from tests.support.oracle_writes import TOUCHED
from tests.support.random_writes import (
    Names,
    Sent,
    Style,
    Transaction,
    argument_places,
    fitting,
    mapped,
    pointer_place,
    send_batch,
    send_graphql,
    send_rest,
)
from tests.support.reading import parsed
from tests.support.running import with_tables

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_BEGUN = dt.datetime.now(dt.UTC).isoformat()


@dataclass
class Clock:
    """Tells the time of a step, the same in every run."""

    step: int = 0

    @property
    def moment(self) -> str:
        return f"2031-01-01T00:{self.step // 60:02}:{self.step % 60:02}.000000Z"

    def now(self, *_: Any) -> str:
        return self.moment


@dataclass(frozen=True)
class Outcome:
    """What came of a transaction; `places` is None where an answer does not tell them."""

    code: Code | None
    places: Sequence[tuple[int, str]] | None = ()
    answers: Any = None
    at: int | None = None


def untimed(text: str) -> str:
    """A text with TOUCHED in the place of every time that a database set by its own clock."""
    return _TIME.sub(lambda found: TOUCHED if _BEGUN <= found[0] <= _now() else found[0], text)


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat() + "~"


class Run:
    """A model on one store, whose rows can be set back to what they were."""

    def __init__(self, model: Model, url: str, data: Data, runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.app = Diptych(model, config=Config(database=with_tables(url, model), planning_share=0.0))
        self.handler = runner.run(self.app.start())
        self.tables = [resource.table for resource in edge_cases.in_order(model)]
        self.names = Names()
        self._outside: SqliteConnection | None = None
        self._reset_at: int | None = None
        runner.run(
            self._execute(
                "".join(f'CREATE TABLE "first_{each}" AS SELECT * FROM "{each}" WHERE false;' for each in self.tables)
            )
        )
        runner.run(self.refill(data))

    async def refill(self, data: Data) -> None:
        """Other rows in the place of all that were there."""
        await self._execute("".join(f'DELETE FROM "{each}"; DELETE FROM "first_{each}";' for each in self.tables))
        await load(self.app.store, self.model, data)
        await self._execute(
            "".join(
                [
                    *(f'INSERT INTO "first_{each}" SELECT * FROM "{each}";' for each in self.tables),
                    *map(self._far_ids, self.model.resources.values()),
                ]
            )
        )

    async def _execute(self, script: str) -> None:
        store = self.app.store
        self._reset_at = None
        if isinstance(store, SqliteStore):
            if self._outside is None:
                self._outside = SqliteConnection(store.path, store._dog, write=True)
                self._outside.db.execute("PRAGMA foreign_keys=OFF")
            self._outside.db.execute(f"BEGIN IMMEDIATE; {script} COMMIT")
            await asyncio.sleep(0)  # reads of one iteration of the loop may share a snapshot from before
        elif isinstance(store, PostgresStore):
            link = await store.pool.take()
            await link.connection.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {script} COMMIT")
            store.pool.give(link)

    def _far_ids(self, resource: ResourceDef) -> str:
        """Let the database make integer ids that are no other value anywhere."""
        if resource.key is not INTEGER_ID:
            return ""
        if isinstance(self.app.store, SqliteStore):
            return f"UPDATE sqlite_sequence SET seq = 60000000 WHERE name = '{resource.table}';"
        return f"SELECT setval(pg_get_serial_sequence('{resource.table}', 'id'), 60000000);"

    async def reset(self) -> None:
        """All rows as they were at first. On SQLite, nothing is done if nobody has committed anything since the last time."""
        self.names = Names()
        if self._reset_at is None or self._version() != self._reset_at:
            await self._execute(
                "".join(
                    f'DELETE FROM "{each}"; INSERT INTO "{each}" SELECT * FROM "first_{each}";' for each in self.tables
                )
            )
            self._reset_at = self._version()

    def _version(self) -> int | None:
        """A number that changes with every commit of any other connection; None if there is none."""
        return None if self._outside is None else int(self._outside.db.pragma("data_version"))

    async def stop(self) -> None:
        if self._outside is not None:
            self._outside.close()
        await self.app.stop()

    async def rows(self) -> dict[str, Any]:
        """All rows, as JSON has them, whoever may read them."""
        found = {}
        for name, resource in self.model.resources.items():
            picks = tuple(Field(each.name, each.name) for each in resource.fields.values() if each.stored)
            ask = Read(name, "list", picks, page=Page(Slot(0, SIZE)))
            plan = compile_reads([ask], self.model, self.app.store.dialect)
            (body,) = await self.app.store.run(plan, plan.parameters([10_000], self.model.anonymous, {}))
            found[name] = {row["id"]: row for row in map(self.incoming, json.loads(body or b"[]"))}
        return found

    def incoming(self, value: Any) -> Any:
        """An answer with the ids of the ledger."""
        return mapped(value, self._incoming)

    def _incoming(self, text: str) -> str:
        return untimed(self.names.ours.get(text, text))

    # one transaction

    async def make(
        self, transaction: Transaction, style: Style, viewer: Viewer, made: Sequence[tuple[int, Any]], checked: bool
    ) -> Outcome:
        """Send it, and note the ids of new rows."""
        sent = SENDERS[style](transaction, self.model, self.names)
        if checked:
            self._check_asks(sent, viewer)
        reply = await self.send(sent, viewer)
        outcome = self.outcome(reply, sent)
        self.note_ids(transaction, outcome, made)
        if style == "rest" and (checked or made):  # else it is not known what it makes
            self._check_headers(reply, transaction, outcome, created=bool(made))
        return replace(outcome, answers=self.incoming(outcome.answers))

    def outcome(self, reply: Reply, sent: Sent) -> Outcome:
        """What an answer tells, with the ids of this database."""
        return self._graphql(reply, sent) if sent.style == "graphql" else self._rest(reply, sent)

    def _batch(self, body: Any) -> Outcome:
        return Outcome(None, (), [response.get("body") for response in body["responses"]])

    def note_ids(self, transaction: Transaction, outcome: Outcome, made: Sequence[tuple[int, Any]]) -> None:
        """Note which new rows are which of the ledger."""
        if outcome.code is None:
            for index, ours in made:
                self.names.add(str(ours), outcome.answers[index]["id"])

    def _check_asks(self, sent: Sent, viewer: Viewer) -> None:
        """The request is translated back to the Ask from which it was printed."""
        view = self.model.view(self.model.signature(viewer))
        found = ASKS[sent.style](sent, view, self.model)
        assert found == sent.asks, f"another Ask came back:\n{sent.document or sent.url}\n{found}\n{sent.asks}"

    async def send(self, sent: Sent, viewer: Viewer) -> Reply:
        return await self.request(sent.method, sent.url, sent.headers, sent.body, viewer)

    async def request(self, method: str, url: str, given: Mapping[str, str], body: bytes, viewer: Viewer) -> Reply:
        """Any request of a viewer."""
        path, _, query = url.partition("?")
        headers = {name.encode(): value.encode() for name, value in given.items()}
        if viewer.signed_in:
            roles = [name for name in self.model.roles if name in viewer.roles]
            token = self.handler.context.tokens.make(viewer.id, roles, viewer.scopes)
            headers[b"authorization"] = b"Bearer " + token.encode()

        async def read(most: int) -> bytes:
            return body

        return await self.handler.handle(Request(method, path, query, headers, read))

    def _graphql(self, reply: Reply, sent: Sent) -> Outcome:
        body = json.loads(reply.body)
        if "errors" not in body:
            assert reply.status == 200
            return Outcome(None, (), list(body["data"].values()))
        (code,) = {Code(error["extensions"]["code"]) for error in body["errors"]}
        at = None
        if "data" in body:
            (error,) = body["errors"]
            assert reply.status == 200 and body["data"] is None and len(error["path"]) == 1
            at = int(error["path"][0][1:])
        else:
            assert reply.status == STATUS[code], reply.body
        if at is not None and "errors" not in body["errors"][0]["extensions"]:
            return Outcome(code, (), at=at)
        places = argument_places(body["errors"], sent)
        return Outcome(code, None if places is None else sorted(places), at=at)

    def _rest(self, reply: Reply, sent: Sent) -> Outcome:
        if reply.status == 204:
            return Outcome(None, (), [None])
        body = json.loads(reply.body)
        if reply.status < 300 and sent.style == "batch":
            return self._batch(body)
        if reply.status < 300:
            return Outcome(None, (), body if sent.several else [body])
        code = Code(body["code"])
        method = sent.method
        if sent.style == "batch" and "request" in body:
            method = json.loads(sent.body)["requests"][int(body["request"][1:])]["method"]
        assert reply.status == (401 if (method, code) == ("DELETE", Code.FORBIDDEN) else STATUS[code])
        return Outcome(code, sorted(pointer_place(each["pointer"], sent.several) for each in body.get("errors", ())))

    def _check_headers(self, reply: Reply, transaction: Transaction, outcome: Outcome, *, created: bool) -> None:
        headers = dict(reply.headers)
        (first, *others) = transaction.wishes
        if outcome.code is not None or others or first.verb == "delete" or first.where is not None:
            assert b"etag" not in headers and b"location" not in headers
            return
        answer = outcome.answers[0]
        has_version = any(pick == Field("version", "version") for pick in first.pick)
        assert re.fullmatch(rf'"{answer["version"]}\.\w+"' if has_version else r'"\w+"', headers[b"etag"].decode())
        assert reply.status == (201 if created else 200)
        assert created or b"location" not in headers
        if created:
            path = self.model.resources[first.resource].path
            assert headers[b"location"].decode() == f"/{path}/{answer['id']}"


def graphql_asks(sent: Sent, view: View, _: Model) -> tuple[Write, ...]:
    operation = translate(*parsed(sent.document), sent.variables, view)
    return tuple(wish.ask for wish in operation.parts if isinstance(wish.ask, Write))


def rest_asks(sent: Sent, view: View, model: Model) -> tuple[Write, ...]:
    """The Ask of a request; of several new rows, that of the first."""
    path, _, query = sent.url.partition("?")
    target = find_target(path, model)
    assert target is not None
    if_match = sent.headers.get("if-match")
    body: Any = json.loads(sent.body) if sent.body else None
    (verb,) = {ask.verb for ask in sent.asks}
    if sent.asks[0].rows is not None:
        return (translate_bulk(verb, target, read_query(query, target), body, view).ask,)
    wish = translate_write(
        verb,
        target,
        read_query(query, target),
        body[0] if sent.several else body,
        versions(if_match.encode() if if_match else None, None),
        view,
        answer=bool(sent.asks[0].pick),
    )
    return (wish.ask,)


def batch_asks(sent: Sent, view: View, model: Model) -> tuple[Write, ...]:
    """The Asks of the requests of a batch."""
    asks: list[Write] = []
    for request, ask in zip(json.loads(sent.body)["requests"], sent.asks, strict=True):
        body = json.dumps(request["body"]).encode() if "body" in request else b""
        one = Sent("rest", request["method"], request["url"], request["headers"], body, {}, False, asks=(ask,))
        asks += rest_asks(one, view, model)
    return tuple(asks)


SENDERS: Mapping[Style, Callable[[Transaction, Model, Names], Sent]] = {
    "graphql": send_graphql,
    "rest": send_rest,
    "batch": send_batch,
}
ASKS: Mapping[Style, Callable[[Sent, View, Model], tuple[Write, ...]]] = {
    "graphql": graphql_asks,
    "rest": rest_asks,
    "batch": batch_asks,
}


def told(run: Run) -> str:
    return "SQLite" if isinstance(run.app.store, SqliteStore) else "PostgreSQL"


def kind(model: Model, data: dict[str, list[dict[str, Any]]]) -> Data:
    """The same rows, as clients could have written them: with versions that can grow, and within their markers."""
    for name, found in data.items():
        fields = model.resources[name].fields
        for row in found:
            row |= {key: fitting(fields[key], value) for key, value in row.items()}
            row["version"] = 1 + abs(row["version"]) % 50
    return data


def viewers(model: Model, data: Data) -> Sequence[Viewer]:
    """Viewers of all kinds; those who may do much come more often."""
    who = next(name for name in ("User", "Person") if name in model.resources)
    ids = [row["id"] for row in data[who]]
    path = model.resources[who].path
    lower, upper = [frozenset({name}) for name in model.roles if name != "signed_in"]
    everything = lower | upper
    often = [
        model.viewer(frozenset(), ids[0]),
        model.viewer(frozenset(), ids[1]),
        model.viewer(lower, ids[2]),
        model.viewer(lower, ids[0]),
        model.viewer(upper, ids[1]),
        model.viewer(upper, ids[-1]),
    ]
    return [
        *often * 3,
        model.anonymous,
        model.viewer(frozenset(), str(data["Thing"][0]["id"]) if "Thing" in data else "1"),
        model.viewer(everything),
        model.viewer(everything, ids[1], frozenset({"read"})),
        model.viewer(everything, ids[1], frozenset({"read", f"{path}:write"})),
        model.viewer(everything, ids[1], frozenset({"write", f"{path}:read"})),
    ]
