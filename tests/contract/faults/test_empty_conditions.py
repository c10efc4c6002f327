"""The empty condition that is true: `in: []`, an empty object or a null that was left over matches every row.

Published for Hasura (#704 and #2648: `{id: {_eq: null}}` collapsed to `{}`, and a delete took the whole table) and
Prisma (`undefined` is as if absent). Here an empty list of alternatives matches nothing, an empty list of demands
everything, and a null or an empty object of operators is refused: there is nothing that it could mean.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN

EVERYONE = ["Ann", "Ben", "Cleo", "Zoë"]
WITH_POSTS, WITHOUT_POSTS = EVERYONE[:3], EVERYONE[3:]
AS_GRAPHQL = "query($w: UserWhere) { users(where: $w) { name } }"
MEANINGS: list[tuple[Any, list[str]]] = [
    ({}, EVERYONE),
    ({"and": []}, EVERYONE),
    ({"or": []}, []),
    ({"not": {}}, []),
    ({"not": {"or": []}}, EVERYONE),
    ({"not": {"and": []}}, []),
    ({"and": [{"or": []}]}, []),
    ({"or": [{"or": []}, {"name": {"eq": "Ann"}}]}, ["Ann"]),
    ({"or": [], "name": {"eq": "Ann"}}, []),
    ({"name": {"in": []}}, []),
    ({"id": {"in": []}}, []),
    ({"email": {"in": []}}, []),
    ({"not": {"name": {"in": []}}}, EVERYONE),
    ({"name": {"in": [], "ne": "Ann"}}, []),
    ({"or": [{"name": {"in": []}}, {"id": {"in": []}}]}, []),
    ({"posts": {"some": {}}}, WITH_POSTS),
    ({"posts": {"none": {}}}, WITHOUT_POSTS),
    ({"posts": {"every": {}}}, EVERYONE),
    ({"posts": {"every": {"or": []}}}, WITHOUT_POSTS),
    ({"posts": {"some": {"id": {"in": []}}}}, []),
    ({"posts": {"none": {"id": {"in": []}}}}, EVERYONE),
    ({"posts": {"every": {"id": {"in": []}}}}, WITHOUT_POSTS),
]


@pytest.mark.parametrize(("where", "names"), MEANINGS, ids=json.dumps)
def test_an_empty_condition_means_what_logic_says(shop: Scene, where: Any, names: list[str]) -> None:
    """In both styles: none of no alternatives holds, all of no demands do, and `every` of none is true."""
    for _ in range(3):  # cold and hot
        found = shop.get(f"/users?fields=name&where={quote(json.dumps(where))}", "ann")
        assert [row["name"] for row in found["data"]] == names
        assert [row["name"] for row in shop.data(AS_GRAPHQL, {"w": where}, who="ann")["users"]] == names


@pytest.mark.parametrize(
    "where",
    [
        {"name": {}},
        {"name": None},
        {"name": {"eq": None}},
        {"name": {"ne": None}},
        {"name": {"in": None}},
        {"name": {"in": [None]}},
        {"name": {"startsWith": None}},
        {"name": {"isNull": None}},
        {"id": {"eq": None}},
        {"email": {}},
        {"and": None},
        {"or": None},
        {"not": None},
        {"or": [None]},
        {"and": [{"name": {}}]},
        {"not": {"name": {}}},
        {"posts": {}},
        {"posts": None},
        {"posts": {"some": None}},
        {"posts": {"none": {"title": {}}}},
        {"posts": {"every": {"author": None}}},
    ],
    ids=json.dumps,
)
def test_a_null_and_an_object_without_operators_are_refused(shop: Scene, where: Any) -> None:
    """What a client meant to fill in and did not is an error, never a condition that holds for all."""
    answer = shop.rest("GET", f"/users?where={quote(json.dumps(where))}", who="ann")
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    reply = shop.ql(AS_GRAPHQL, {"w": where}, who="ann")
    assert (reply.status, reply.code) == (422, "BAD_USER_INPUT")


@pytest.mark.parametrize("variables", [{}, {"v": None}], ids=["absent", "null"])
def test_a_variable_without_a_value_inside_a_filter_is_refused(shop: Scene, variables: Any) -> None:
    """`{id: {eq: $id}}` without a value for `$id` is what emptied tables behind Hasura."""
    for kind, where in (
        ("ID", "{id: {eq: $v}}"),
        ("String", "{name: {startsWith: $v}}"),
        ("[String!]", "{name: {in: $v}}"),
        ("PostWhere", "{posts: {some: $v}}"),
        ("[UserWhere!]", "{name: {}, or: $v}"),
    ):
        answer = shop.ql(f"query($v: {kind}) {{ users(where: {where}) {{ name }} }}", variables, who="ann")
        assert answer.code in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")


@pytest.mark.parametrize(
    "query", ["name[in]=", "name[in]", "id[in]=", "id=", "name=", "name[eq]=", "email=", "email[in]="]
)
def test_an_empty_parameter_matches_nothing(shop: Scene, query: str) -> None:
    """`?id=` is a search for the empty text, not no search."""
    assert shop.get(f"/users?{query}", "ann")["data"] == []


@pytest.mark.parametrize(
    "query",
    [
        "where=",
        "where=null",
        "where=[]",
        "where=[{}]",
        "where=%22%22",
        "where=0",
        "where=true",
        "where={",
        "fields=",
        "sort=",
        "first=",
        "name[isNull]=",
    ],
)
def test_an_empty_or_shapeless_argument_is_refused(shop: Scene, query: str) -> None:
    """Not ignored: whoever meant a filter would get everything."""
    assert shop.rest("GET", f"/users?{query}", who="ann").status == 400


def test_a_change_has_no_condition_that_could_be_empty(shop: Scene) -> None:
    """A change names one row, or many by a filter with a cap; an id that is empty or null names none."""
    with shop.unchanged():
        for query in ("", "?where={}", "?most=10", "?most=10&where={}", "?most=10&where=%7B%22and%22:[]%7D"):
            assert shop.rest("DELETE", f"/posts{query}", who="admin").status == 400, query
            assert shop.rest("PATCH", f"/posts{query}", {"title": "x"}, who="admin").status == 400, query
        assert shop.rest("PATCH", "/posts/?id=", {"title": "x"}).status == 404
        assert shop.rest("DELETE", f"/posts/{ANN}?where=%7B%7D").status in (400, 404)
        document = "mutation($id: ID!) { deletePost(id: $id) { id } }"
        assert [shop.ql(document, {"id": id}).code for id in ("", "null", "%")] == ["NOT_FOUND"] * 3
        shapeless: list[Any] = [None, [], {}]
        assert [shop.ql(document, {"id": id}).code for id in shapeless] == ["BAD_USER_INPUT"] * 3
        for arguments in ("", "(where: {})", "(id: null)", "(ids: [])"):
            assert shop.ql(f"mutation {{ deletePost{arguments} {{ id }} }}").code == "GRAPHQL_VALIDATION_FAILED"
