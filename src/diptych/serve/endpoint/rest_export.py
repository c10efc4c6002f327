"""REST lists as CSV and NDJSON: a page, or with `first=all` the whole list as a stream.

The whole list is read by pages, each by one statement after the cursor of the one before, and the next page is read
when the client has taken the last one (back-pressure). So it takes the memory of a page and no long transaction. It is
no snapshot: a row that is created, deleted or sorted elsewhere meanwhile may be in it or not, or twice. The token is
verified again before each page, as if it were a request of its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from diptych.api.formats import CSV, FORMATS, NDJSON, CsvColumn, csv_columns, csv_header, csv_lines, rows_read
from diptych.api.query_string import bad_parameter
from diptych.api.reply import NO_STORE, Header, Reply
from diptych.api.rest.query import Query, shape_of
from diptych.api.rest.target import PATH_ID, Target
from diptych.ask.nodes import Read
from diptych.engine.rate_limiter import SPENDER
from diptych.engine.read import Engine
from diptych.engine.read_plan import PreparedRead
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.identity.viewer import Caller, Context
from diptych.model.defs import Resources
from diptych.model.view import not_yours
from diptych.policy.values import Inputs
from diptych.serve.asgi import Receive, Send
from diptych.serve.endpoint.deprecation_headers import note_deprecations

log = logging.getLogger("diptych")
ALL = "all"
"""The value of `first` for a whole list."""
_SIZES = (100, 50, 20, 10, 5, 2, 1)
"""Rows of a page: as many as the price of one allows."""
_AT_ONCE = 4
"""Whole lists that one process reads at once."""
_STALLED = 60.0
"""Seconds that a client may take for a page, and a page may wait for the rates of its caller."""
_TYPES = {CSV: b"text/csv; charset=utf-8; header=present", NDJSON: b"application/x-ndjson"}
_SUFFIXES = {CSV: "csv", NDJSON: "ndjson"}
_decoder = msgspec.json.Decoder(list[dict[str, Any]])
_raw_decoder = msgspec.json.Decoder(list[msgspec.Raw])
ReadPage = Callable[[Target, Query, Caller], Awaitable[tuple[Read, PreparedRead, bytes]]]
"""Reads a page: its Ask, its plan, and its connection as JSON."""


class _Info(msgspec.Struct, frozen=True):
    hasNextPage: bool
    endCursor: str | None = None


class _Connection(msgspec.Struct, frozen=True):
    pageInfo: _Info
    nodes: msgspec.Raw
    totalCount: int = 0


_connection = msgspec.json.Decoder(_Connection)


class _Planned(NamedTuple):
    """A page: its Ask, its plan and its values."""

    read: Read
    prepared: PreparedRead
    inputs: Inputs


def wanted_format(accept: bytes) -> bool:
    """May a client want a format other than JSON? (A quick look at its Accept.)"""
    accept = accept.lower()
    return b"csv" in accept or b"ndjson" in accept


def media_header(media: str) -> Header:
    return b"content-type", _TYPES[media]


def formatted(rows: bytes, media: str, read: Read, model: Resources) -> bytes:
    """The rows of a page, a JSON array, as CSV or NDJSON."""
    return Lines(media, read, model).page(rows, head=True)


class Lines:
    """Writes the rows of one list as lines."""

    def __init__(self, media: str, read: Read, model: Resources) -> None:
        inner, picks = rows_read(read)
        self._columns: list[CsvColumn] | None = None
        if media == CSV:
            self._columns = csv_columns(picks, model[inner.resource], model)

    def page(self, rows: bytes | msgspec.Raw, *, head: bool) -> bytes:
        if self._columns is None:
            return b"".join([bytes(row) + b"\n" for row in _raw_decoder.decode(rows)])
        text = csv_lines(_decoder.decode(rows), self._columns)
        return (csv_header(self._columns) * head + text).encode()


class RestExport:
    """The whole lists of one service. `read` reads a page as GET does."""

    def __init__(self, read: ReadPage, engine: Engine, context: Context, max_export: int) -> None:
        self._read = read
        self._engine = engine
        self._context = context
        self._model = engine.model
        self._most = max_export
        self._running = 0

    async def reply(self, target: Target, query: Query, caller: Caller, media: str, *, head: bool) -> Reply:
        """The reply that streams a whole list; raises a Refusal, also if it has too many rows."""
        view = self._model.view(caller.signature)
        resource = view.resources.get(target.resource)
        listed = resource
        if resource is not None and target.relation in resource.relations:
            listed = view.resources[resource.relations[target.relation].relation.target]
        if listed is None or not listed.exports:
            raise not_yours(view)
        for name in ("last", "before", "offset", "count"):
            if name in query.parameters:
                raise bad_parameter(name, f"it cannot go with first={ALL}")
        size, first, page = await self._first(target, query, caller)
        if page.totalCount > self._most:
            message = f"{page.totalCount} rows match; at most {self._most} are read at once. Filter them."
            raise Refusal(Code.TOO_COMPLEX, message, more={"allowed": self._most})
        lines = Lines(media, first.read, self._model.resources)
        name = f"{listed.resource.path}.{_SUFFIXES[media]}"
        headers: tuple[Header, ...] = (
            media_header(media),
            (b"content-disposition", f'attachment; filename="{name}"'.encode()),
            *NO_STORE,
        )
        if first.prepared.uses is not None and (usage := self._engine.usage) is not None:
            headers += note_deprecations(usage, [(first.prepared, first.inputs)], caller)
        if head:
            return Reply(200, headers)
        if self._running >= _AT_ONCE:
            raise Refusal(Code.UNAVAILABLE, "Others are reading whole lists; try again.")

        async def following(cursor: str) -> _Connection:
            await self._context.verify_again(caller)
            return (await self._page(target, query, caller, size, after=cursor))[1]

        self._running += 1
        return Reply(200, headers, stream=_Export(self, lines, page, following, self._most))

    def ended(self) -> None:
        self._running -= 1

    async def _first(self, target: Target, query: Query, caller: Caller) -> tuple[int, _Planned, _Connection]:
        """The first page, with the number of all rows, as large as its price allows."""
        for size in (size for size in _SIZES if size <= self._engine.limits.page):
            try:
                return size, *await self._page(target, query, caller, size, count="exact")
            except Refusal as refusal:
                if refusal.code is not Code.TOO_COMPLEX or size == 1:
                    raise
        raise AssertionError

    async def _page(
        self, target: Target, query: Query, caller: Caller, size: int, **more: str
    ) -> tuple[_Planned, _Connection]:
        parameters = {**query.parameters, "first": str(size), **more}
        inputs = {**query.inputs, "first": str(size), **more, PATH_ID: target.id}
        page = Query(parameters, inputs, shape_of(parameters, inputs))
        read, prepared, answer = await self._read(target, page, caller)
        if read.take == "one":  # a relation: {"postsConnection":{…}}
            answer = answer[answer.index(b":") + 1 : -1]
        return _Planned(read, prepared, inputs), _connection.decode(answer)


class _Export:
    """The stream of a whole list."""

    def __init__(
        self,
        owner: RestExport,
        lines: Lines,
        first: _Connection,
        following: Callable[[str], Awaitable[_Connection]],
        most: int,
    ) -> None:
        self._owner: RestExport | None = owner
        self._lines = lines
        self._page = first
        self._following = following
        self._name = CALLER.get()
        self._spending = SPENDER.get()
        self._left = most

    async def drive(self, receive: Receive, send: Send, streams: Any) -> None:
        CALLER.set(self._name)
        SPENDER.set(self._spending)
        leaving = asyncio.create_task(_left(receive))
        try:
            await self._send_pages(send, leaving)
        except (Refusal, TimeoutError, PermissionError) as error:
            log.warning("a list was not read to its end: %s", error)
            await _abort(send)  # the client sees that it is not complete
        finally:
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await leaving

    async def _send_pages(self, send: Send, leaving: asyncio.Task[None]) -> None:
        head = True
        while not leaving.done():
            body = self._lines.page(self._page.nodes, head=head)
            head = False
            info = self._page.pageInfo
            ends = not info.hasNextPage or info.endCursor is None
            async with asyncio.timeout(_STALLED):
                await send({"type": "http.response.body", "body": body, "more_body": not ends})
            if ends:
                return
            self._left -= len(_raw_decoder.decode(self._page.nodes))
            if self._left <= 0:
                raise PermissionError("more rows than max_export were created meanwhile")
            self._page = await self._next(str(info.endCursor), leaving)

    async def _next(self, cursor: str, leaving: asyncio.Task[None]) -> _Connection:
        """The next page, as soon as the rates of the caller allow it; the last one if the client has left."""
        until = time.monotonic() + _STALLED
        while not leaving.done():
            try:
                return await self._following(cursor)
            except Refusal as refusal:
                wait = refusal.more.get("retryAfter", 1)
                if refusal.code is not Code.RATE_LIMITED or time.monotonic() + wait > until:
                    raise
                await asyncio.wait([leaving], timeout=wait)
        return self._page

    def close(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.ended()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _abort(send: Send) -> None:
    """End the connection in the middle of the body."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await asyncio.sleep(0)


__all__ = ["ALL", "FORMATS", "RestExport", "formatted", "media_header", "wanted_format"]
