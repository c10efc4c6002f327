"""Requests straight into the one handler of a service, in both styles, without a socket between.

    with in_process(model, "sqlite:///:memory:") as service:
        answer = service.get("/users?first=2", token=service.token(ANN, "admin"))
        assert answer.status == 200
        assert service.data("{ users { name } }") == {"users": […]}

A service counts how often its store ran, so that a test can say "before any SQL".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from diptych import Diptych, Model
from diptych.api.reply import Reply
from diptych.compile.plan import Plan
from diptych.config import Config
from diptych.db.postgres.store import PostgresStore
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.store import SqliteStore
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import Code, Refusal
from diptych.jobs.service import JobService
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request
from tests.support.following import Recorder, caller_of, follow, settle
from tests.support.running import with_tables

RESPONSE = "application/graphql-response+json"
Headers = Mapping[str, str]


_ASKING: ContextVar[bool] = ContextVar("asking", default=False)
"""Does this task handle a request of a test?"""


@dataclass(frozen=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: Headers
    body: bytes
    body_was_read: bool

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """The media type."""
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def code(self) -> str:
        """The code of an error, in either style."""
        body = self.json()
        if self.kind == "application/problem+json":
            return str(body["code"])
        (code,) = {str(error["extensions"]["code"]) for error in body["errors"]}
        return code

    @property
    def places(self) -> list[str]:
        """Where the faults are, in either style, as pointers."""
        body = self.json()
        if self.kind == "application/problem+json":
            return [error["pointer"] for error in body.get("errors", ())]
        arguments = [error["extensions"].get("argument", ()) for error in body["errors"]]
        return ["".join(f"/{step}" for step in argument) for argument in arguments]


async def _no_rounds(_: JobService) -> None:
    """Nothing looks at the queue of jobs but a test."""


class Service:
    """One model on one store, opened, with its handler."""

    def __init__(self, app: Diptych, runner: asyncio.Runner, *, rounds: bool = False) -> None:
        self.app = app
        self.runner = runner
        with pytest.MonkeyPatch.context() as patch:
            if not rounds:  # a first round might begin a job, which then waits between two requests of a test
                patch.setattr(JobService, "_rounds", _no_rounds)
            self.handler: Handler = runner.run(app.start())
        runner.run(self.handler.context.revoked.stop())  # so that nothing runs but what a test asks for
        if not rounds:
            runner.run(self.handler.node.stop())
            runner.run(self.handler.webhooks._going.stop())
            if self.handler.jobs is not None:
                runner.run(self.handler.jobs._going.stop())
        self.runs = 0
        self._count_runs(app.store)

    def _count_runs(self, store: Store) -> None:
        run = store.run

        async def counted(plan: Plan, parameters: Sequence[Any]) -> Sequence[bytes | None]:
            self.runs += _ASKING.get()
            return await run(plan, parameters)

        store.run = counted  # type: ignore[method-assign]  # a spy

    async def _handle(self, request: Request) -> Reply:
        """Answer a request; only its own statements count, not those of background tasks."""
        asking = _ASKING.set(True)
        try:
            return await self.handler.handle(request)
        finally:
            _ASKING.reset(asking)

    def forget(self) -> None:
        """Begin anew, with the same store and secrets: nothing was seen before, no plan is remembered."""
        old = self.handler
        engine = Engine(old.engine.model, old.engine.store, old.engine.checks, old.engine.secret)
        self.handler = Handler(engine, old.context, old.config)

    # who asks

    def token(self, user: str | None = None, *roles: str, scopes: Iterable[str] | None = None, ttl: int = 900) -> str:
        """An access token of this service."""
        return self.handler.context.tokens.make(user, roles, scopes, ttl)

    # any request

    def send_json(self, method: str, url: str, value: Any, token: str | None = None) -> Answer:
        """A request with a body of JSON."""
        headers = {"content-type": "application/json"}
        return self.send(method, url, headers=headers, body=json.dumps(value).encode(), token=token)

    def send(
        self, method: str, url: str, *, headers: Headers | None = None, body: bytes = b"", token: str | None = None
    ) -> Answer:
        """Any request. Headers are those given and the token, and no other."""
        path, _, query = url.partition("?")
        sent = {name.lower().encode(): value.encode("latin-1") for name, value in (headers or {}).items()}
        if token is not None:
            sent[b"authorization"] = b"Bearer " + token.encode()
        was_read = False

        async def read(most: int) -> bytes:
            nonlocal was_read
            was_read = True
            if len(body) > most:
                raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The body may have {most} bytes.")
            return body

        reply: Reply = self.runner.run(self._handle(Request(method, path, query, sent, read)))
        found = {name.decode(): value.decode("latin-1") for name, value in reply.headers}
        cookies = [value.decode("latin-1") for name, value in reply.headers if name == b"set-cookie"]
        assert len(found) == len(reply.headers) - max(0, len(cookies) - 1), f"a header stands twice: {reply.headers}"
        found |= {"set-cookie": "\n".join(cookies)} if cookies else {}
        return Answer(reply.status, found, reply.body, was_read)

    # the resource style

    def get(self, url: str, *, token: str | None = None, headers: Headers | None = None) -> Answer:
        """GET, as a client that says nothing of what it accepts."""
        return self.send("GET", url, headers=headers, token=token)

    def rows(self, url: str, *, token: str | None = None) -> Any:
        """The rows of a list, which must be there."""
        answer = self.get(url, token=token)
        assert answer.status == 200, answer.body
        return answer.json()["data"]

    # the query style

    def post(
        self,
        request: Any,
        *,
        token: str | None = None,
        accept: str = "",
        kind: str = "application/json",
        headers: Headers | None = None,
    ) -> Answer:
        """POST to /graphql; bytes go as they are, anything else as JSON."""
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        given = {"content-type": kind, **({"accept": accept} if accept else {}), **(headers or {})}
        return self.send("POST", "/graphql", headers=given, body=body, token=token)

    def query(
        self, document: str, variables: Any = None, *, token: str | None = None, accept: str = RESPONSE
    ) -> Answer:
        """A document with its variables, by POST."""
        request = {"query": document} if variables is None else {"query": document, "variables": variables}
        return self.post(request, token=token, accept=accept)

    def data(self, document: str, variables: Any = None, *, token: str | None = None) -> Any:
        """The data of a query that must succeed."""
        answer = self.query(document, variables, token=token)
        assert answer.status == 200 and "errors" not in answer.json(), answer.body
        return answer.json()["data"]

    def get_query(
        self,
        parameters: Mapping[str, str],
        *,
        token: str | None = None,
        accept: str = RESPONSE,
        headers: Headers | None = None,
    ) -> Answer:
        """A query by GET."""
        url = "/graphql?" + urlencode(parameters, quote_via=quote)
        return self.get(url, token=token, headers={"accept": accept, **(headers or {})})

    # changes

    def follow(self, document: str, variables: Any = None, *, token: str | None = None) -> Recorder:
        """Begin to follow changes; raises what refuses it."""

        async def begin() -> Recorder:
            return await follow(self.handler, await caller_of(self.handler, token), document, variables)

        return self.runner.run(begin())

    def settle(self) -> None:
        """Until everyone is told all that was committed before this."""
        self.runner.run(settle(self.handler.live))

    def end_of_changes(self) -> str:
        """The cursor of all that was committed before this."""
        self.settle()
        tail = self.handler.live.tail
        return tail.change_cursors.seal(tail.end)

    def changes(self, url: str, *, token: str | None = None) -> Any:
        """A page of the log, which must be there."""
        answer = self.get(url, token=token)
        assert answer.status == 200, answer.body
        return answer.json()

    # the database, from outside

    def execute(self, sql: str) -> None:
        """Run a statement as someone would who knows nothing of the service."""
        self.runner.run(self.execute_soon(sql))

    async def execute_soon(self, sql: str) -> None:
        store = self.app.store
        if isinstance(store, SqliteStore):
            other = SqliteConnection(store.path, store._dog, write=True)
            try:
                other.db.execute(sql)
            finally:
                other.close()
        elif isinstance(store, PostgresStore):
            link = await store.pool.take()
            try:
                await link.connection.execute(sql)
            finally:
                store.pool.give(link)

    def close(self) -> None:
        self.runner.run(self.app.stop())


@contextmanager
def in_process(
    model: Model,
    database: str,
    runner: asyncio.Runner,
    rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    *,
    rounds: bool = False,
    **settings: Any,
) -> Iterator[Service]:
    """A service with rows of canonical values, by resource; with `rounds`, it tells that it runs, and sends webhooks."""
    config = Config(database=with_tables(database, model), **{"planning_share": 0.0, **settings})
    service = Service(Diptych(model, config=config), runner, rounds=rounds)
    try:
        for name, some in (rows or {}).items():
            resource = model.resources[name]
            names = [field.name for field in resource.fields.values() if field.stored]
            values = [[row.get(field) for field in names] for row in some]
            runner.run(service.app.store.insert(resource, names, values))
        yield service
    finally:
        service.close()


def encoded(**parameters: Any) -> str:
    """A query string; whatever is no text is JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    return urlencode(texts, quote_via=quote)
