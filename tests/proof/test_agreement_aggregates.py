"""Numbers of rows: the two styles, the two stores and the oracle agree.

A random summary, groups, or list that is sorted, filtered or described by numbers of related rows is sent as a document and
as a URL. Both are the same Ask; both are answered by SQLite and PostgreSQL; all answers are those of the oracle, and
the pages of a list or of groups, one after the other, are the whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.reply import Reply
from diptych.api.rest.query import read_query
from diptych.api.rest.translate import translate as translate_rest
from diptych.ask.measures import Limits
from diptych.ask.nodes import Nodes, Read
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.policy.values import Binder
from tests.proof.test_agreement import MODELS, Panels
from tests.support.effort import LONG, scaled
from tests.support.oracle_aggregates import AggregateOracle, LongSum
from tests.support.proof import exactly
from tests.support.random_aggregates import Draw, Drawn
from tests.support.reading import parsed
from tests.support.running import Postgres

EXAMPLES = scaled(180, 9)
"""For each of two models, and each of seven viewers."""
WHO = ["anonymous", "someone", "integer", "service", "narrow", "middle", "top"]


@pytest.fixture(scope="module", params=list(MODELS))
def panels(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Panels]:
    with asyncio.Runner() as runner:
        found = Panels(MODELS[request.param], 3, ["sqlite:///:memory:", postgres.create()], runner)
        yield found
        found.close()


@pytest.mark.parametrize("who", WHO)
def test_numbers_of_rows_agree(panels: Panels, who: str) -> None:
    viewer = panels.proof.viewers()[who]
    view = panels.model.view(panels.model.signature(viewer))
    draw = Draw(Random(None if LONG else who), view, panels.proof.rows)
    for _ in range(EXAMPLES):
        drawn = draw()
        if drawn is not None:
            _check(panels, drawn, viewer)


def _check(panels: Panels, drawn: Drawn, viewer: Viewer) -> None:
    request = f"{drawn.document} {json.dumps(drawn.variables)}\n{drawn.url}"
    read, values = _translated(panels, drawn, viewer, request)
    oracle = AggregateOracle(panels.model, viewer, panels.proof.rows)
    try:
        wanted: Any = oracle.numbers(read, values)
        whole = _whole(oracle, read, values) if drawn.kind == "list" else wanted.get("all")
    except LongSum:
        wanted = None  # refused, wherever the sum is needed
    body = json.dumps({"query": drawn.document, "variables": drawn.variables}).encode()
    for handler in panels.handlers:
        by_graphql = panels.runner.run(panels._request(handler, "POST", "/graphql", body, viewer))
        by_rest = panels.runner.run(panels._request(handler, "GET", drawn.url, b"", viewer))
        if wanted is None:
            assert all(_is_fine(reply) for reply in (by_graphql, by_rest)), (request, by_graphql.body, by_rest.body)
            continue
        assert (by_graphql.status, by_rest.status) == (200, 200), (request, by_graphql.body, by_rest.body)
        found, listed = json.loads(by_graphql.body)["data"]["answer"], json.loads(by_rest.body)
        if drawn.kind == "summary":
            assert exactly(found) == exactly(listed) == exactly(wanted), (request, found, listed, wanted)
            continue
        assert exactly(found["nodes"]) == exactly(listed["data"]) == exactly(wanted["nodes"]), (request, found, wanted)
        if drawn.count:
            assert found["totalCount"] == listed["page"]["total"] == wanted["total"], request
        _follow(panels, handler, drawn, viewer, listed, whole, request)


def _whole(oracle: AggregateOracle, read: Read, values: list[Any]) -> list[Any]:
    """All rows of a list, whatever its page is."""
    nodes = read.pick[-1]
    assert isinstance(nodes, Nodes)
    return [oracle.picked(nodes.pick, row, values) for row in oracle.listed(read, values)]


def _is_fine(reply: Reply) -> bool:
    return reply.status == 200 or (reply.status in (200, 400) and b"more than 18 digits" in reply.body)


def _follow(
    panels: Panels, handler: Any, drawn: Drawn, viewer: Viewer, page: Any, wanted: list[Any], request: str
) -> None:
    """All pages, forwards, and the last one backwards again."""
    found = list(page["data"])
    for _ in range(60):
        if page["page"]["next"] is None:
            break
        url = f"{drawn.url}&after={quote(page['page']['next'])}"
        reply = panels.runner.run(panels._request(handler, "GET", url, b"", viewer))
        assert reply.status == 200, (request, reply.body)
        page = json.loads(reply.body)
        found += page["data"]
    assert page["page"]["next"] is None and exactly(found) == exactly(wanted), (request, found, wanted)
    if page["page"]["previous"] is not None:
        url = drawn.url.replace(f"&first={drawn.size}", f"&last={drawn.size}")
        url = f"{url}&before={quote(page['page']['previous'])}"
        reply = panels.runner.run(panels._request(handler, "GET", url, b"", viewer))
        end = len(wanted) - len(page["data"])
        before = json.loads(reply.body)["data"]
        assert exactly(before) == exactly(wanted[max(0, end - drawn.size) : end]), (request, before)


def _translated(panels: Panels, drawn: Drawn, viewer: Viewer, request: str) -> tuple[Read, list[Any]]:
    """The Ask that both styles ask, and its values."""
    view = panels.model.view(panels.model.signature(viewer))
    wish = translate_graphql(*parsed(drawn.document), drawn.variables, view).wish
    path, _, query = drawn.url.partition("?")
    target = panels.handlers[0].rest.target(path)
    assert target is not None, request
    asked = translate_rest(target, read_query(query, target), view)
    assert asked.asks == wish.asks, f"another Ask came back: {request}\n{asked.asks}\n{wish.asks}"
    values = Binder(wish.slots, wish.sources, Limits(), Code.BAD_USER_INPUT)(drawn.variables)
    (read,) = wish.asks
    return read, values
