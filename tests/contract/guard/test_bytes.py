"""The answer to a read has a most of bytes, which its price does not bound: texts may be long."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

from diptych import MaxLen, Model, Resource, grant
from diptych.compile.plan import MAX_ANSWER
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

LONG = 500_000
PATIENT: dict[str, Any] = {"statement_timeout": 120.0, "request_timeout": 120.0}
"""Megabytes take their time on a busy machine."""


class Page(Resource):
    """A long text."""

    text: Annotated[str, MaxLen(1_000_000)]

    access = (grant("read", "create"),)


model = Model(Page)


def add(service: Service) -> None:
    headers = {"content-type": "application/json"}
    assert service.send("POST", "/pages", headers=headers, body=b'{"text":"%b"}' % (b"x" * LONG)).status == 201


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_refused_in_both_styles(
    new_database: NewDatabase, runner: asyncio.Runner
) -> None:
    with in_process(model, new_database(), runner, **PATIENT) as service:
        for _ in range(40):
            add(service)
        fits = MAX_ANSWER // LONG
        document = "query($n: Int!) { pages(first: $n) { text } }"
        assert service.query(document, {"n": fits}).status == 200
        assert len(service.get(f"/pages?first={fits}").json()["data"]) == fits, "the row beyond a page does not count"
        for answer in (
            service.query(document, {"n": fits + 1}),
            service.query("{ pages(first: 40) { text } }"),
            service.query("{ pages(first: 1) { id } pagesConnection(first: 40) { nodes { text } } }"),
            service.get("/pages?first=40"),
        ):
            assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body[:300]
        assert service.get("/pages?first=2").status == 200


def test_what_was_cut_is_never_taken_for_a_whole(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    """Aliases make it longer."""
    with in_process(model, new_database(), runner, **PATIENT) as service:
        for _ in range(20):
            add(service)
        fields = " ".join(f"a{n}: text" for n in range(4))
        answer = service.query(f"{{ pages(first: 20) {{ {fields} }} }}")
        assert (answer.status, answer.code) == (400, "TOO_COMPLEX"), answer.body[:300]
        assert service.get("/pages?first=1").status == 200
