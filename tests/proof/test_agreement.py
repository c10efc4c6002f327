"""The two styles, the two stores and the oracle agree.

A random Ask is printed as a GraphQL document and, where REST can ask it, as a URL. Both are translated back to
the very same Ask; both are sent through the whole service on SQLite and on PostgreSQL; all answers are equal,
and equal to what a slow and obvious evaluator says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from diptych import Diptych
from diptych.api.graphql.node_lookup import is_node
from diptych.api.graphql.printer import print_graphql, print_node
from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.reply import Reply
from diptych.api.rest.printer import print_rest
from diptych.api.rest.query import read_query
from diptych.api.rest.translate import translate as translate_rest
from diptych.ask.nodes import Follow, Read
from diptych.config import Config
from diptych.demo.model import model as default
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request
from tests.support import edge_cases
from tests.support.asks import Drawn, asks
from tests.support.edge_cases import load
from tests.support.effort import long_where, scaled
from tests.support.oracle import Oracle
from tests.support.proof import Proof, Reveal, exactly, shown_cursor
from tests.support.reading import parsed
from tests.support.running import Postgres, with_tables

MODELS = {"default": default, "edge_cases": edge_cases.model}
STORES = ("SQLite", "PostgreSQL")
EXAMPLES = scaled(360, 6)


class Panels:
    """One model with one data set, served from both stores."""

    def __init__(self, model: Model, seed: int, urls: Sequence[str], runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.apps = [
            Diptych(model, config=Config(database=with_tables(url, model), planning_share=0.0)) for url in urls
        ]
        self.handlers: list[Handler] = [runner.run(app.start()) for app in self.apps]
        self.proof = Proof(model, seed, self.apps[0].store, runner)
        runner.run(load(self.apps[1].store, model, self.proof.rows))
        for handler in self.handlers:
            handler.engine.secret = self.proof.engine.secret

    def close(self) -> None:
        for app in self.apps:
            self.runner.run(app.stop())

    def graphql(self, drawn: Drawn, raw: Sequence[Any], viewer: Viewer) -> list[Any]:
        """The answers of the stores to an Ask as a document."""
        document, variables = print_graphql(drawn.asks, raw, self.model)
        view = self.model.view(self.model.signature(viewer))
        operation = translate_graphql(*parsed(document), variables, view)
        assert operation.wish.asks == drawn.reads, f"another Ask came back:\n{document}"
        body = json.dumps({"query": document, "variables": variables}).encode()
        replies = self._send("POST", "/graphql", body, viewer)
        return [json.loads(reply.body)["data"] for reply in replies]

    def node(self, drawn: Drawn, raw: Sequence[Any], viewer: Viewer, answers: Sequence[Any]) -> None:
        """A row by its id alone is what it is by its type."""
        ((label, read),) = drawn.asks
        document, variables = print_node(label, read, raw, self.model)
        body = json.dumps({"query": document, "variables": variables}).encode()
        for reply, answer in zip(self._send("POST", "/graphql", body, viewer), answers, strict=True):
            found = json.loads(reply.body)["data"]
            row = answer[label]
            assert exactly(found) == exactly({label: row, label + "_many": [row, row]}), document

    def rest(self, read: Read, raw: Sequence[Any], viewer: Viewer) -> list[Any]:
        """The answers of the stores to an Ask as a URL, brought into the form of the GraphQL answer."""
        url = print_rest(read, raw, self.model)
        path, _, query = url.partition("?")
        target = self.handlers[0].rest.target(path)
        assert target is not None, url
        view = self.model.view(self.model.signature(viewer))
        wish = translate_rest(target, read_query(query, target), view)
        assert wish.asks == (read,), f"another Ask came back: {url}"
        return [as_connection(read, reply) for reply in self._send("GET", url, b"", viewer, missing=True)]

    def _send(self, method: str, url: str, body: bytes, viewer: Viewer, missing: bool = False) -> list[Reply]:
        replies = [self.runner.run(self._request(handler, method, url, body, viewer)) for handler in self.handlers]
        for reply in replies:
            fine = (
                (200, 404, 401 if url.startswith("/viewer?") and not viewer.signed_in else 404) if missing else (200,)
            )
            assert reply.status in fine and not reply.body.startswith(b'{"errors"'), (url, body, reply.body)
        return replies

    async def _request(self, handler: Handler, method: str, url: str, body: bytes, viewer: Viewer) -> Reply:
        path, _, query = url.partition("?")
        headers = {b"content-type": b"application/json"}
        if viewer.signed_in:
            roles = [name for name in self.model.roles if name in viewer.roles]
            token = handler.context.tokens.make(viewer.id, roles, viewer.scopes)
            headers[b"authorization"] = b"Bearer " + token.encode()

        async def read(most: int) -> bytes:
            return body

        return await handler.handle(Request(method, path, query, headers, read))

    def check(self, drawn: Drawn, viewer: Viewer) -> None:
        """Everybody says the same."""
        raw = drawn.sealed(self.model, lambda read, values: self.proof.key_of(viewer, read, values))
        answers = self.graphql(drawn, raw, viewer)
        told = self.proof.told(drawn)
        for store, answer in zip(STORES, answers, strict=True):
            self._check_oracle(drawn, viewer, answer, f"{store}: {told}")
        if (
            len(drawn.asks) == 1
            and drawn.reads[0].take == "one"
            and is_node(self.model.resources[drawn.reads[0].resource])
        ):
            self.node(drawn, raw, viewer, answers)
        if drawn.rest:
            ((label, read),) = drawn.asks
            for rest, graphql in zip(self.rest(read, raw, viewer), answers, strict=True):
                assert exactly(rest) == exactly(stripped(read, graphql[label])), f"REST and GraphQL differ: {told}"

    def _check_oracle(self, drawn: Drawn, viewer: Viewer, answers: Any, told: str) -> None:
        """What a store answers is what the oracle says; so both stores say the same, to the keys of cursors."""
        values = drawn.canonical()
        oracle = Oracle(self.model, viewer, self.proof.rows, shown_cursor)
        reveal = Reveal(self.proof, viewer, values)
        for label, read in drawn.asks:
            wanted = oracle.answer(read, values)
            got = None if answers[label] is None else reveal.read(read, answers[label])
            assert exactly(got) == exactly(wanted), f"the oracle says otherwise: {told}\n got {got}\nnot {wanted}"


def as_connection(read: Read, reply: Reply) -> Any:
    """A REST answer as the value that GraphQL gives: `next` is the end's cursor where there is a next page."""
    if reply.status in (401, 404):
        return None
    body = json.loads(reply.body)
    if read.take == "one" and not _sub(read):
        return body
    page = body["page"]
    found = {"next": page["next"], "previous": page["previous"], "nodes": body["data"]}
    return found | ({"total": page["total"]} if "total" in page else {})


def stripped(read: Read, answer: Any) -> Any:
    """A GraphQL answer as far as REST tells it."""
    sub = _sub(read)
    if answer is None or (read.take == "one" and not sub):
        return answer
    connection = answer[sub.label] if sub else answer
    info = connection["pageInfo"]
    found = {
        "next": info["endCursor"] if info["hasNextPage"] else None,
        "previous": info["startCursor"] if info["hasPreviousPage"] else None,
        "nodes": connection["nodes"],
    }
    return found | ({"total": connection["totalCount"]} if "totalCount" in connection else {})


def _sub(read: Read) -> Follow | None:
    """The relation of a sub-collection."""
    first = read.pick[0]
    return first if read.take == "one" and isinstance(first, Follow) and first.read.take == "page" else None


@pytest.fixture(scope="module", params=[(name, seed) for name in MODELS for seed in range(2)], ids=str)
def panels(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Panels]:
    name, seed = request.param
    with asyncio.Runner() as runner:
        found = Panels(MODELS[name], seed, ["sqlite:///:memory:", postgres.create()], runner)
        yield found
        found.close()


@long_where(panels=[("default", 0), ("edge_cases", 1)])
@pytest.mark.parametrize("who", ["anonymous", "someone", "integer", "service", "narrow", "middle", "top"])
def test_both_styles_and_both_stores_and_the_oracle_agree(panels: Panels, who: str) -> None:
    viewer = panels.proof.viewers()[who]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(asks(panels.model, viewer, panels.proof.rows))
    def agree(drawn: Drawn) -> None:
        panels.check(drawn, viewer)

    agree()
