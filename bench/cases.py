"""The cases: what is asked, as data. Three queries and two resource reads, each over random ids.

| case | asks                                                              | drawn at random       |
|------|-------------------------------------------------------------------|-----------------------|
| Q1   | one user                                                          | the user              |
| Q2   | a user → 10 posts → 5 comments → author: the nested read          | the user              |
| Q3   | 50 posts with their author, from somewhere in the middle          | the post before them  |
| R1   | GET one user                                                      | the user              |
| R2   | GET 50 orders with all fields, from somewhere in the middle       | the order before them |

A page is asked for by the id of the row before it. Floor and peer take that id as it is; the service has
signed cursors, so a request is built from an id and a translation, `cursors`: id → cursor.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from bench.rows import Table, ids

DOCUMENTS = {
    "Q1": "query($id: ID!){ user(id: $id) { id name email } }",
    "Q2": (
        "query($id: ID!){ user(id: $id) { name posts(first: 10) "
        "{ title comments(first: 5) { body author { name } } } } }"
    ),
    "Q3": "query($after: String){ posts(first: 50, after: $after) { id title author { id name } } }",
}

# Who asks, in every request: this user, with the role staff.
VIEWER = ids("users")[0]
ROLE = "staff"
NOBODY = "01900000-0000-7000-8000-000000000000"


@dataclass(frozen=True)
class Request:
    """An HTTP request, apart from the headers that all share."""

    method: str
    path: str
    body: str | None = None


@dataclass(frozen=True)
class Case:
    """A kind of request. `build` takes the drawn id, or None for the first page."""

    name: str
    table: Table
    paged: bool
    build: Callable[[str | None], Request]


def _graphql(name: str, variable: str) -> Callable[[str | None], Request]:
    def build(value: str | None) -> Request:
        body = {"query": DOCUMENTS[name], "variables": {variable: value}}
        return Request("POST", "/graphql", json.dumps(body))

    return build


def _user(value: str | None) -> Request:
    return Request("GET", f"/users/{value}")


def _orders(value: str | None) -> Request:
    after = "" if value is None else f"&after={quote(value, safe='')}"
    return Request("GET", f"/orders?first=50{after}")


CASES = {
    case.name: case
    for case in (
        Case("Q1", "users", False, _graphql("Q1", "id")),
        Case("Q2", "users", False, _graphql("Q2", "id")),
        Case("Q3", "posts", True, _graphql("Q3", "after")),
        Case("R1", "users", False, _user),
        Case("R2", "orders", True, _orders),
    )
}

# Of a paged table, this many rows at the end are no starting points: every page under load is a full one.
TAIL = 200


def draw(case: Case, count: int, known: Mapping[str, str] | None = None) -> list[str]:
    """Random ids for a case, the same for every server. `known` are the ids that have a cursor."""
    rng = random.Random(f"requests of {case.name}")
    population = sorted(known) if known is not None else ids(case.table)
    if case.paged:
        population = population[:-TAIL]
    return rng.choices(population, k=count)


def probes(case: Case, known: Mapping[str, str] | None = None) -> list[str | None]:
    """The corners that random ids do not reach: the viewer itself, no such row, first and last page."""
    if case.paged:
        return [None, (sorted(known) if known is not None else ids(case.table))[-30]]
    return [VIEWER] if case.name == "R1" else [VIEWER, NOBODY]


def request(case: Case, value: str | None, cursors: Mapping[str, str]) -> Request:
    """The request for a drawn id, in the words of a server with these cursors."""
    return case.build(cursors.get(value, value) if case.paged and value is not None else value)


def same(left: bytes, right: bytes) -> bool:
    """Equal JSON: the same keys in the same order with the same values; cursors only by being there."""
    return _ordered(left) == _ordered(right)


def _ordered(text: bytes) -> object:
    """JSON with objects as lists of pairs, so that the order of keys counts."""
    return json.loads(text, object_pairs_hook=_pairs)


def _pairs(pairs: list[tuple[str, object]]) -> object:
    cursors = ("next", "previous")
    return ["object", *((key, value is not None if key in cursors else value) for key, value in pairs)]
