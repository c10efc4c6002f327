"""The filter oracle: a field that is not shown is guessed, character by character, by filtering on it.

Published for Parse Server (GHSA-2m6g-crv8-p3c6, search patterns; GHSA-72hp-qff8-4pvv, through `$or` and `$and`),
Strapi (CVE-2023-22894, the token of a password reset; CVE-2023-34235, the same by the names of joined tables) and
Directus (CVE-2025-30352, by `search`). Here a filter sees null where its caller would see null, and a field that its
caller never sees has no name to filter by.
"""

from __future__ import annotations

import string
from typing import Any

import pytest

from diptych.policy import access
from tests.contract.faults.scene import Scene, changed, documents, urls
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, ORDER
from tests.support.in_process import encoded

WORLDS = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zed@example.org")]
GUESSES: list[dict[str, Any]] = [
    {"email": {"eq": "ben@example.com"}},
    {"email": {"ne": "ben@example.com"}},
    {"email": {"startsWith": "b"}},
    {"email": {"contains": "@example.com"}},
    {"email": {"gt": "m"}},
    {"email": {"gte": "m"}},
    {"email": {"lt": "m"}},
    {"email": {"lte": "m"}},
    {"email": {"in": ["ben@example.com", "x"]}},
    {"not": {"email": {"startsWith": "b"}}},
    {"not": {"not": {"email": {"gt": "m"}}}},
    {"or": [{"email": {"startsWith": "b"}}, {"name": {"eq": "nobody"}}]},
    {"and": [{"name": {"eq": "Ben"}}, {"or": [{"email": {"lt": "m"}}]}]},
    {"not": {"or": [{"email": {"startsWith": "b"}}, {"name": {"ne": "Ben"}}]}},
]
"""Filters that tell Ben's email apart in the two worlds, for whoever may see it."""
FLAT = [{f"email[{operator}]": value} for guess in GUESSES[:8] for operator, value in guess["email"].items()]
QUESTIONS = [
    *urls("/users", ({"where": guess, "fields": "id"} for guess in GUESSES)),
    *urls("/users", ({**each, "fields": "id"} for each in FLAT)),
    *documents(
        "{ users(where: …) { id } }",
        [
            '{email: {startsWith: "b"}}',
            '{email: {gt: "m"}}',
            '{not: {email: {lt: "m"}}}',
            '{or: [{email: {startsWith: "b"}}, {name: {eq: "nobody"}}]}',
            '{email: {in: ["ben@example.com"]}}',
        ],
    ),
]


def test_filters_on_a_masked_field_find_the_same_rows_whatever_its_value(shop: Scene) -> None:
    """Ann sees her own email alone: no operator, and no `or` or `not` around it, tells Ben's apart."""
    assert shop.told_apart(WORLDS, QUESTIONS, who="ann") == []
    assert shop.told_apart(WORLDS, QUESTIONS, who="admin") == QUESTIONS


def test_with_unmasked_filters_the_guesses_would_tell(shop: Scene) -> None:
    """The same check with the fault planted: filters look at the column itself."""
    with shop.planted(access, "_column", lambda column, resource: column):
        assert shop.told_apart(WORLDS, QUESTIONS, who="ann") == QUESTIONS


def test_a_hidden_value_cannot_be_spelled_out(shop: Scene) -> None:
    """The attack itself, prefix by prefix: Ann gets her own email so, and not one character of Ben's."""
    assert _spelled(shop, "Ben", who="ann") == ""
    assert _spelled(shop, "Ann", who="ann") == "ann@example.com"
    assert _spelled(shop, "Ben", who="admin") == "ben@example.com"


def _spelled(shop: Scene, name: str, who: str) -> str:
    """As much of the email of someone as a search by prefix finds."""
    found = ""
    while True:
        for letter in string.ascii_lowercase + "@.":
            where = {"name": {"eq": name}, "email": {"startsWith": found + letter}}
            if shop.get(f"/users?{encoded(where=where, fields='id')}", who=who)["data"]:
                found += letter
                break
        else:
            return found


@pytest.mark.parametrize("who", ["ann", "anonymous"])
def test_a_field_that_the_role_never_sees_cannot_be_filtered_by(shop: Scene, who: str) -> None:
    """`internalNote` (for Ann) and `email` (for someone without a token) are refused as a name that no one has."""
    path, type_, hidden = ("/orders", "orders", "internalNote") if who == "ann" else ("/users", "users", "email")
    queries = [
        "NAME[startsWith]=c",
        "NAME=checked",
        encoded(where={"NAME": {"startsWith": "c"}}),
        encoded(where={"or": [{"id": {"eq": ORDER[1]}}, {"not": {"NAME": {"isNull": True}}}]}),
    ]
    for query in queries:
        answer, other = (
            shop.rest("GET", f"{path}?{query.replace('NAME', name)}", who=who) for name in (hidden, "nothing")
        )
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body
    for document in (
        '{ TYPE(where: {NAME: {startsWith: "c"}}) { id } }',
        "{ TYPE(where: {not: {NAME: {isNull: true}}}) { id } }",
    ):
        text = document.replace("TYPE", type_)
        answer, other = (shop.ql(text.replace("NAME", name), who=who) for name in (hidden, "nothing"))
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body


@pytest.mark.parametrize(
    "name",
    ["t0.email", "t1.email", "users.email", "t0_email", '"email"', "u.email", "t0.internal_note", "internal_note"],
)
def test_a_column_cannot_be_named_as_a_statement_names_it(shop: Scene, name: str) -> None:
    """Strapi refused `password` and took `t1.password`: here a filter names fields, and nobody names columns."""
    for who in ("ann", "admin"):
        for path in ("/users", "/orders"):
            assert shop.rest("GET", f"{path}?{encoded(**{name: 'x'})}", who=who).status == 400
            assert shop.rest("GET", f"{path}?{encoded(where={name: {'startsWith': 'b'}})}", who=who).status == 400
        reply = shop.ql("query($w: UserWhere) { users(where: $w) { id } }", {"w": {name: {"startsWith": "b"}}}, who=who)
        assert reply.code == "BAD_USER_INPUT"


def test_an_owner_finds_by_what_is_their_own(shop: Scene) -> None:
    """The mask is on the row, not on the caller: Ann finds herself by her email, and nobody else by theirs."""
    for email, found in (("ann@example.com", [ANN]), ("ben@example.com", [])):
        assert [row["id"] for row in shop.get(f"/users?email={email}", who="ann")["data"]] == found
        data = shop.data("query($e: String) { users(where: {email: {eq: $e}}) { id } }", {"e": email}, who="ann")
        assert [row["id"] for row in data["users"]] == found
