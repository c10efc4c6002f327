"""The cases in the words of a server, and its answers in the words of the others.

The service has signed cursors. PostGraphile makes its own names from tables, so its documents rename what they ask for,
and its mutation wraps the row. PocketBase has its own paths and no nulls, sorts keys by name, and cannot say what is on
the next page. What is asked for, and how much is answered, is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from bench.cases import CASES, Case, Request, request

POSTGRAPHILE = {
    "Q1": "query($id: UUID!){ user: userByRowId(rowId: $id) { id: rowId name email } }",
    "Q2": (
        "query($id: UUID!){ user: userByRowId(rowId: $id) { name posts(first: 10) "
        "{ title comments(first: 5) { body author { name } } } } }"
    ),
    "Q3": (
        "query($after: UUID){ posts: allPostsList(first: 50, condition: { after: $after }) "
        "{ id: rowId title author { id: rowId name } } }"
    ),
    "W1-graphql": (
        "mutation($input: OrderInput!) { createOrder(input: { order: $input }) "
        "{ order { id: rowId status total currency customer { name } } } }"
    ),
}
USER = ("id", "version", "createdAt", "updatedAt", "name", "email")
ORDER = (
    *("id", "version", "createdAt", "updatedAt", "customerId"),
    *("status", "total", "currency", "note", "internalNote"),
)
MADE = ("id", "status", "total", "currency")
PAGE = 50
# PocketBase has no defaults: the client says all.
NEW = {
    "status": "pending",
    "version": 1,
    "createdAt": "2025-01-01T00:00:00.000000Z",
    "updatedAt": "2025-01-01T00:00:00.000000Z",
}


def worded(server: str, case: Case, value: str | None, cursors: Mapping[str, str]) -> Request:
    """A request for a drawn id."""
    if server == "postgraphile":
        made = case.build(value)
        variables = json.loads(made.body or "{}")["variables"]
        return Request(made.method, made.path, json.dumps({"query": POSTGRAPHILE[case.name], "variables": variables}))
    if server == "pocketbase":
        return _POCKETBASE[case.name](value)
    return request(case, value, cursors)


def status(server: str, case: Case) -> int:
    """What a server answers if all is well."""
    return 200 if server == "pocketbase" else case.status


def common(server: str, case: Case, value: str | None, answer: bytes) -> bytes:
    """An answer as all others give it."""
    if server == "postgraphile" and case.creates:
        told = json.loads(answer)
        told["data"]["createOrder"] = told["data"]["createOrder"]["order"]
        return json.dumps(told).encode()
    if server == "pocketbase":
        return json.dumps(_from_pocketbase(case, value, json.loads(answer))).encode()
    return answer


def _pocketbase_user(value: str | None) -> Request:
    return Request("GET", f"/api/collections/people/records/{value}?fields={','.join(USER)}")


def _pocketbase_orders(value: str | None) -> Request:
    asked = {"perPage": PAGE, "skipTotal": 1, "sort": "id", "fields": ",".join(ORDER)}
    if value is not None:
        asked["filter"] = f"id>'{value}'"
    return Request("GET", f"/api/collections/orders/records?{urlencode(asked, quote_via=quote)}")


def _pocketbase_order(value: str | None) -> Request:
    given = json.loads(CASES["W1-rest"].build(value).body or "{}")
    fields = ",".join((*MADE, "expand.customerId.name"))
    path = f"/api/collections/orders/records?expand=customerId&fields={fields}"
    return Request("POST", path, json.dumps({**given, **NEW}))


_POCKETBASE: dict[str, Callable[[str | None], Request]] = {
    "R1": _pocketbase_user,
    "R2": _pocketbase_orders,
    "W1-rest": _pocketbase_order,
}


def _from_pocketbase(case: Case, value: str | None, told: dict[str, Any]) -> object:
    if case.name == "R1":
        return {name: told[name] or None for name in USER}
    if case.name == "R2":
        data = [{name: row[name] or None for name in ORDER} for row in told["items"]]
        return {"data": data, "page": {"size": PAGE, "next": len(data) == PAGE or None, "previous": value}}
    return {**{name: told[name] for name in MADE}, "customer": told["expand"]["customerId"]}
