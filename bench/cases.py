"""The cases: what is asked, as data. Three queries, two resource reads and a write in both styles.

| case       | asks                                                              | drawn at random       |
|------------|-------------------------------------------------------------------|-----------------------|
| Q1         | one user                                                          | the user              |
| Q2         | a user → 10 posts → 5 comments → author: the nested read          | the user              |
| Q3         | 50 posts with their author, from somewhere in the middle          | the post before them  |
| R1         | GET one user                                                      | the user              |
| R2         | GET 50 orders with all fields, from somewhere in the middle       | the order before them |
| W1-graphql | create an order, and read it with its customer's name             | the customer          |
| W1-rest    | the same by POST                                                  | the customer          |

A page is asked for by the id of the row before it. Floor and peer take that id as it is; the service has
signed cursors, so a request is built from an id and a translation, `cursors`: id → cursor.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from bench.rows import CURRENCIES, WORDS, Table, ids

DOCUMENTS = {
    "Q1": "query($id: ID!){ user(id: $id) { id name email } }",
    "Q2": (
        "query($id: ID!){ user(id: $id) { name posts(first: 10) "
        "{ title comments(first: 5) { body author { name } } } } }"
    ),
    "Q3": "query($after: String){ posts(first: 50, after: $after) { id title author { id name } } }",
    "W1-graphql": (
        "mutation($input: OrderCreate!) { createOrder(input: $input) { id status total currency customer { name } } }"
    ),
}
ORDER_FIELDS = "id,status,total,currency,customer(name)"

# Who asks, in every request: this user, with the role staff.
VIEWER = ids("users")[0]
ROLE = "staff"
NOBODY = "01900000-0000-7000-8000-000000000000"

UUID7 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Request:
    """An HTTP request, apart from the headers that all share."""

    method: str
    path: str
    body: str | None = None


@dataclass(frozen=True)
class Case:
    """A kind of request. `build` takes the drawn id, or None for the first page; `creates` makes a row."""

    name: str
    table: Table
    paged: bool
    build: Callable[[str | None], Request]
    status: int = 200
    creates: bool = False


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


def _order(value: str | None) -> dict[str, str | None]:
    """The input of an order, the same for the same customer."""
    rng = random.Random(f"order of {value}")
    total = rng.randint(100, 1_000_000)
    return {
        "customerId": value,
        "total": f"{total // 100}.{total % 100:02}",
        "currency": rng.choice(CURRENCIES),
        "note": " ".join(rng.choices(WORDS, k=rng.randint(3, 12))),
    }


def _create_order(value: str | None) -> Request:
    body = {"query": DOCUMENTS["W1-graphql"], "variables": {"input": _order(value)}}
    return Request("POST", "/graphql", json.dumps(body))


def _post_order(value: str | None) -> Request:
    return Request("POST", f"/orders?fields={ORDER_FIELDS}", json.dumps(_order(value)))


CASES = {
    case.name: case
    for case in (
        Case("Q1", "users", False, _graphql("Q1", "id")),
        Case("Q2", "users", False, _graphql("Q2", "id")),
        Case("Q3", "posts", True, _graphql("Q3", "after")),
        Case("R1", "users", False, _user),
        Case("R2", "orders", True, _orders),
        Case("W1-graphql", "users", False, _create_order, creates=True),
        Case("W1-rest", "users", False, _post_order, status=201, creates=True),
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
    return [VIEWER] if case.creates or case.name == "R1" else [VIEWER, NOBODY]


def request(case: Case, value: str | None, cursors: Mapping[str, str]) -> Request:
    """The request for a drawn id, in the words of a server with these cursors."""
    return case.build(cursors.get(value, value) if case.paged and value is not None else value)


def same(case: Case, left: bytes, right: bytes) -> bool:
    """Equal JSON: the same keys in the same order with the same values.

    Cursors count only by being there, and the id of a row that was just made by its form.
    """
    return _ordered(case, left) == _ordered(case, right)


def _ordered(case: Case, text: bytes) -> object:
    """JSON with objects as lists of pairs, so that the order of keys counts."""

    def pairs(found: list[tuple[str, object]]) -> object:
        return ["object", *((key, _compared(case, key, value)) for key, value in found)]

    return json.loads(text, object_pairs_hook=pairs)


def _compared(case: Case, key: str, value: object) -> object:
    if key in ("next", "previous"):
        return value is not None
    if case.creates and key == "id":
        return bool(UUID7.fullmatch(str(value))) or value
    return value
