"""A service for tests: it runs on a thread of its own, so tests can be plain functions or coroutines."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct

from diptych.config import Config
from diptych.db.store import Session
from diptych.engine.transaction import ModelTx
from diptych.model.declare.resource import VERBS, Resource
from diptych.model.declare.roles import NOBODY
from diptych.model.declare.tx import Tx
from diptych.model.describe.matrix import matrix
from diptych.model.model import Model
from diptych.serve.app import Diptych
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
_MEMORY = "sqlite:///:memory:"
_RESPONSE = "application/graphql-response+json"
_LONGEST = 2_000
"""Characters of a body that a failed expectation shows."""


@contextmanager
def serve(model: Model, *, database: str = _MEMORY, **settings: Any) -> Iterator[Api]:
    """Serve a model for the time of a `with`: by default from an empty SQLite database in memory.

    `settings` are those of `Config`: `serve(model, max_depth=4)`.
    """
    loop = _Loop()
    app = Diptych(model, config=Config(database=database, **settings))
    try:
        handler = loop.run(app.start())
        try:
            yield Api(model, handler, loop)
        finally:
            loop.run(app.stop())
    finally:
        loop.stop()


class Response(Struct, frozen=True):
    """A response; the names of headers are in lower case."""

    request: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body) if self.body else None

    @property
    def data(self) -> Any:
        """The rows of a list, the `data` of GraphQL, or the row itself."""
        body = self.json()
        return body["data"] if isinstance(body, dict) and "data" in body else body

    @property
    def code(self) -> str:
        """The code of an error, in either style; "" if there is none."""
        body = self.json()
        if not isinstance(body, dict):
            return ""
        errors = body.get("errors")
        return str(body["code"] if "code" in body else errors[0]["extensions"]["code"] if errors else "")

    def expect(self, status: int) -> Response:
        """Assert the status; what came instead is shown."""
        if self.status != status:
            shown = self.body.decode(errors="replace")[:_LONGEST]
            raise AssertionError(f"{self.request} answered {self.status}, not {status}: {shown}")
        return self


class Client:
    """Sends requests as one caller."""

    def __init__(self, api: Api, headers: Mapping[str, str]) -> None:
        self._api = api
        self._headers = headers

    def get(self, url: str, **headers: str) -> Response:
        return self.request("GET", url, **headers)

    def post(self, url: str, json: Any = None, **headers: str) -> Response:
        return self.request("POST", url, {} if json is None else json, **headers)

    def put(self, url: str, json: Any, **headers: str) -> Response:
        return self.request("PUT", url, json, **headers)

    def patch(self, url: str, json: Any, **headers: str) -> Response:
        return self.request("PATCH", url, json, **headers)

    def delete(self, url: str, **headers: str) -> Response:
        return self.request("DELETE", url, **headers)

    def graphql(self, query: str, variables: Mapping[str, Any] | None = None) -> Response:
        """A GraphQL document by POST."""
        body = {"query": query} | ({"variables": dict(variables)} if variables is not None else {})
        return self.request("POST", "/graphql", body, accept=_RESPONSE)

    def request(self, method: str, url: str, json: Any = None, **headers: str) -> Response:
        """Any request. A header `if_match="…"` is `If-Match`."""
        sent = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self._api.send(method, url, json, sent)


class Api:
    """A served model."""

    def __init__(self, model: Model, handler: Handler, loop: _Loop) -> None:
        self.model = model
        self._handler = handler
        self._loop = loop

    @property
    def anonymous(self) -> Client:
        """A caller without a token."""
        return Client(self, {})

    def as_(self, *roles: str, user: str | int | None = None, scopes: Iterable[str] | None = None) -> Client:
        """A caller with a token of these roles (`signed_in` is one that everybody with a token has), and of a user."""
        known = {"signed_in", *self.model.roles}
        unknown = [role for role in roles if role not in known]
        if unknown:
            raise ValueError(f"the model has no role {', '.join(unknown)}; it has {', '.join(sorted(known))}")
        subject = None if user is None else str(user)
        own = [role for role in roles if role != "signed_in"]
        token = self._handler.context.tokens.make(subject, own, scopes, 900)
        return Client(self, {"authorization": f"Bearer {token}"})

    # rows

    def make(self, cls: type[R], **values: Any) -> R:
        """Create a row without access rules; constraints hold. A relation is given by its row: `author=ann`."""

        async def work(tx: Tx) -> R:
            return await tx.save(cls(**values))

        made: R = self._loop.run(self._transaction(work))
        return made

    def all(self, cls: type[R], *, where: Mapping[str, Any] | None = None) -> list[R]:
        """The rows of a class, without access rules; at most 100."""

        async def work(tx: Tx) -> list[R]:
            return await tx.select(cls, where=where)

        rows: list[R] = self._loop.run(self._transaction(work))
        return rows

    async def _transaction(self, work: Any) -> Any:
        engine = self._handler.write_engine
        session: Session = await engine.engine.store.session()
        try:
            done = await work(ModelTx(engine, session, NOBODY, self.model.trusted(False)))
            await session.commit()
            return done
        finally:
            await session.end()

    # rules

    def rules(self, cls: type[Resource] | str, verb: str, *, as_: str = "anonymous") -> str:
        """What a role may do, in the words of `diptych rules`: "always", "never", or the condition on the row.

        `verb` is read, create, update, delete, or the name of an action or query.
        """
        name = cls if isinstance(cls, str) else cls.__name__
        found = next((part for part in matrix(self.model, [as_]) if part.resource.name == name), None)
        if found is None:
            raise ValueError(f"the model has no resource {name}")
        if verb not in found.columns:
            raise ValueError(f"{name} has no {verb}; there are {', '.join(found.columns or VERBS)}")
        return found.rows[as_][found.columns.index(verb)].text

    # requests

    def send(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> Response:
        """Send a request to the handler of the service."""
        path, _, query = url.partition("?")
        sent = {name.lower().encode(): value.encode("latin-1") for name, value in headers.items()}
        raw = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            sent.setdefault(b"content-type", b"application/json")

        async def read(most: int) -> bytes:
            return raw

        async def work() -> Response:
            reply = await self._handler.handle(Request(method, path, query, sent, read))
            shown = {name.decode(): value.decode("latin-1") for name, value in reply.headers}
            return Response(f"{method} {url}", reply.status, shown, reply.body)

        return self._loop.run(work())


class _Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="diptych.testing", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
