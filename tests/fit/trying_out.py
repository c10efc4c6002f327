"""What is tried on a page of documentation that sends requests itself, and what must come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from playwright.sync_api import Response

from tests.fit.scenario import Scenarios
from tests.support.running import Client

EXAMPLE = "zoe@example.org"
Given = Mapping[str, str | Sequence[str]]
"""The parameters that are filled in; a list for one that takes several values."""
Try = Callable[..., Response]
"""Send the request of an operation, by its tag and id, with these parameters, and what the page has filled in itself."""


def check_page(tried: Try, admin: Client, scenario: Scenarios) -> None:
    """Try the scenarios of REST as a reader of the documentation would."""
    user = admin.post("/users", {"name": "Ann", "email": f"{uuid4()}@example.org"}).json()["id"]
    with scenario("page"):
        found = tried("User", "listUsers")
        assert found.status == 200 and len(found.json()["data"]) == 20
    with scenario("where"):
        found = tried("Order", "listOrders", {"where": '{"total": {"gte": "100"}}'})
        rows = _rows(found)
        assert rows and all(float(row["total"]) >= 100 for row in rows), found.url
    with scenario("sort"):
        totals = [float(row["total"]) for row in _rows(tried("Order", "listOrders", {"sort": "-total"}))]
        assert len(totals) == 20 and totals == sorted(totals, reverse=True)
    with scenario("in"):
        found = tried("Order", "listOrders", {"status[in]": ["paid", "shipped"]})
        assert {row["status"] for row in _rows(found)} == {"paid", "shipped"}, found.url
    with scenario("nested"):
        rows = _rows(tried("Post", "listPosts", {"fields": "title,author(name),comments[first=2](body)"}))
        assert all(row.keys() == {"title", "author", "comments"} and row["author"]["name"] for row in rows)
    _forget_example(admin)
    with scenario("create"):
        assert tried("User", "createUser").status == 201
    _forget_example(admin)
    with scenario("read"):
        assert tried("User", "getUser", {"id": user}).json()["id"] == user
    with scenario("update"):
        assert tried("User", "updateUser", {"id": user}).json()["email"] == EXAMPLE
    with scenario("error"):
        found = tried("User", "deleteUser", {"id": "nope"})
        assert (found.status, found.json()["code"]) == (404, "NOT_FOUND")


def _forget_example(admin: Client) -> None:
    """Nobody has the e-mail address of the examples, which is unique."""
    for row in admin.get(f"/users?email={EXAMPLE}&fields=id").json()["data"]:
        assert admin.request("DELETE", f"/users/{row['id']}").status == 204


def _rows(response: Response) -> list[dict[str, Any]]:
    assert response.status == 200, (parse_qs(urlsplit(response.url).query), response.text())
    rows: list[dict[str, Any]] = response.json()["data"]
    return rows
