"""Faults that the code of a model finds, and its SQL, which is the same on both databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from diptych import Fault, Model, Resource, Tx, action, grant, query
from diptych.db.sqlite.placeholders import numbered
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase


class Visit(Resource, ids="integer"):
    """A time at a desk."""

    name: str
    until: date

    access = (grant("read", "create", "update"),)

    @action
    async def prolong(self, tx: Tx, new_end: date) -> Visit:
        """Prolong it."""
        if new_end <= self.until:
            raise Fault("new_end", "it must be later than before")
        self.until = new_end
        return await tx.save(self)

    @query
    @classmethod
    async def between(cls, tx: Tx, low: int, high: int) -> list[Visit]:
        """Those with ids in a range."""
        if low > high:
            raise Fault("low", "it must not be greater than high")
        rows = await tx.sql("SELECT id FROM visits WHERE id <= $2 AND id >= $1 AND name <> '$1' ORDER BY id", low, high)
        found = [await tx.get(cls, id) for (id,) in rows]
        return [row for row in found if row is not None]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def desk(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(Model(Visit), new_database(), runner) as service:
        for name in ("a", "b", "$1", "d"):
            assert send(service, "/visits", {"name": name, "until": "2026-01-02"}).status == 201
        yield service


def send(service: Service, url: str, body: Any) -> Answer:
    return service.send("POST", url, body=json.dumps(body).encode(), headers={"content-type": "application/json"})


def test_a_fault_has_its_path_in_every_form_of_a_request(desk: Service) -> None:
    message = "it must be later than before"
    answer = send(desk, "/visits/1/prolong", {"newEnd": "2026-01-01"})
    assert (answer.status, answer.json()["errors"]) == (422, [{"pointer": "/newEnd", "message": message}])
    step = {"id": "p", "method": "POST", "url": "/visits/1/prolong", "body": {"newEnd": "2026-01-01"}}
    answer = send(desk, "/batch", {"requests": [step]})
    assert (answer.json()["request"], answer.places) == ("p", ["/requests/0/body/newEnd"])
    error = desk.query('mutation { p: prolongVisit(id: "1", newEnd: "2026-01-01") { id } }').json()["errors"][0]
    assert error["extensions"]["errors"] == [{"argument": ["p", "newEnd"], "message": message}]
    assert send(desk, "/visits/1/prolong", {"newEnd": "2026-01-03"}).status == 200
    answer = desk.get("/visits/between?low=2&high=1")
    assert (answer.status, answer.code, answer.places) == (400, "BAD_REQUEST", ["/query/low"])


def test_statements_have_the_same_placeholders_on_both_databases(desk: Service) -> None:
    rows = desk.get("/visits/between?low=2&high=4&fields=name").json()["data"]
    assert rows == [{"name": "b"}, {"name": "d"}]


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("SELECT $1, $12", "SELECT ?1, ?12"),
        ("SELECT '$1', \"a$1\", `$1`, [$1], 'it''s $1' -- $1\n, $2 /* $3 */", None),
        ("SELECT ?, $name, $1a", None),
    ],
)
def test_placeholders_are_changed_outside_of_quotes_and_comments(sql: str, changed: str | None) -> None:
    assert numbered(sql) == (changed or sql.replace(", $2 ", ", ?2 "))
