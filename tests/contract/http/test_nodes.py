"""`node(id:)` and `nodes(ids:)` find a row of any type by its id, and nothing that its own field would not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, ILL_FORMED, NOBODY, ORDER, POST, ROWS
from tests.support.in_process import Service

NODE = "query($id: ID!) { node(id: $id) { __typename id } }"
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }"
FIELDS = {
    "User": "name email",
    "Post": "title author { name email } comments(first: 2) { body }",
    "Comment": "body post { title }",
    "Order": "status note customer { name email }",
}
VIEWERS = [(None, ()), (ANN, ()), (BEN, ()), (BEN, ("staff",)), (None, ("admin",))]


@pytest.mark.parametrize(("user", "roles"), VIEWERS)
def test_a_node_is_what_the_field_of_its_type_answers(shop: Service, user: str | None, roles: tuple[str, ...]) -> None:
    token = shop.token(user, *roles) if user or roles else None
    picked = {name: fields if token else fields.replace(" email", "") for name, fields in FIELDS.items()}
    if token is None:
        del picked["Order"]
    anything = "__typename id " + " ".join(f"... on {name} {{ {fields} }}" for name, fields in picked.items())
    seen: dict[str, Any] = {}
    for name, fields in picked.items():
        typed = f"a: {name.lower()}(id: $id) {{ __typename id {fields} }}"
        for row in ROWS[name]:
            document = f"query($id: ID!) {{ {typed} b: node(id: $id) {{ {anything} }} }}"
            found = shop.data(document, {"id": row["id"]}, token=token)
            assert found["a"] == found["b"]
            seen[row["id"]] = found["b"]
    assert None in seen.values() or "admin" in roles
    document = f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ {anything} }} }}"
    assert shop.data(document, {"ids": list(seen)}, token=token)["nodes"] == list(seen.values())


def test_both_are_one_statement(shop: Service) -> None:
    for document, variables in ((NODE, {"id": ANN}), (NODES, {"ids": [ANN, POST[1], NOBODY]})):
        shop.data(document, variables)
        before = shop.runs
        shop.data(document, variables)
        assert shop.runs == before + 1


def test_what_names_nothing_is_null(shop: Service) -> None:
    for id in (NOBODY, POST[3], ORDER[1], *ILL_FORMED):
        assert shop.data(NODE, {"id": id}) == {"node": None}, id
    ids = [POST[1], NOBODY, ANN, *ILL_FORMED, POST[3], POST[1]]
    found = shop.data(NODES, {"ids": ids})["nodes"]
    assert [node and node["id"] for node in found] == [POST[1], None, ANN, *(None for _ in ILL_FORMED), None, POST[1]]
    assert shop.data(NODES, {"ids": []}) == {"nodes": []}
    assert shop.data(f'{{ nodes(ids: "{ANN}") {{ id }} }}') == {"nodes": [{"id": ANN}]}


def test_a_type_without_a_selection_is_an_empty_object(shop: Service) -> None:
    document = f'{{ nodes(ids: ["{ANN}", "{POST[1]}", "{NOBODY}"]) {{ ... on Post {{ title }} }} }}'
    assert shop.data(document) == {"nodes": [{}, {"title": "Alpha"}, None]}


def test_keys_are_in_the_order_of_the_selection_and_fragments_apply_to_their_types(shop: Service) -> None:
    document = """query($id: ID!, $no: Boolean!) {
        first: users(first: 1) { ... on Node { id ... on Post { title } ... on User { name } } }
        node(id: $id) { ...P ... on Node { i: id } ... on User { x: name } ... on Post @skip(if: $no) { title } }
        __typename
        again: node(id: $id) { ...P }
    } fragment P on Post { x: title author { ... on Node { id } } }"""
    found = shop.data(document, {"id": POST[1], "no": True})
    assert list(found) == ["first", "node", "__typename", "again"]
    assert found["first"] == [{"id": ANN, "name": "Ann"}]
    assert found["node"] == {"x": "Alpha", "author": {"id": ANN}, "i": POST[1]} and next(iter(found["node"])) == "x"
    assert found["again"] == {"x": "Alpha", "author": {"id": ANN}}
    assert shop.data(document, {"id": ANN, "no": False})["node"] == {"i": ANN, "x": "Ann"}


@pytest.mark.parametrize(
    "picked",
    [
        "... on User { x: name } ... on Order { x: total }",
        "... on User { x: posts { id } } ... on Post { x: author { id } }",
        "... on User { x: posts { y: id } } ... on Post { x: comments { y: version } }",
        "x: id ... on User { x: name }",
        "... on User { x: name } ...F",
    ],
)
def test_fields_of_two_types_that_cannot_be_told_apart_conflict(shop: Service, picked: str) -> None:
    more = " fragment F on User { x: id }" if "...F" in picked else ""
    answer = shop.query(f'{{ node(id: "x") {{ {picked} }} }}{more}', token=shop.token(ANN, "admin"))
    assert answer.code == "GRAPHQL_VALIDATION_FAILED" and "conflict" in answer.body.decode()


def test_pages_inside_a_node_lead_on(shop: Service) -> None:
    document = """query($id: ID!, $after: String) { node(id: $id) { ... on User {
        postsConnection(first: 1, after: $after) { edges { cursor node { title } } pageInfo { hasNextPage endCursor } } } } }"""
    titles, after = [], None
    while True:
        page = shop.data(document, {"id": ANN, "after": after})["node"]["postsConnection"]
        titles += [edge["node"]["title"] for edge in page["edges"]]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert titles == ["Alpha", "Beta"]


def test_the_price_counts_every_type_and_every_id(shop: Service) -> None:
    def price(document: str, **variables: Any) -> int:
        sent = {"query": document, "variables": variables, "extensions": {"cost": True}}
        found: int = shop.post(sent).json()["extensions"]["cost"]["price"]
        return found

    readable = 3
    assert price(NODE, id=ANN) == readable
    assert price(NODES, ids=[ANN, BEN]) == 2 * readable
    lists = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on User { posts(first: 9) { id } } } }"
    assert price(lists, ids=[ANN, BEN]) == 2 * (readable + 9)
    answer = shop.query(lists.replace("9", "100"), {"ids": [ANN] * 60})
    assert answer.code == "TOO_COMPLEX"
    assert shop.query(NODES, {"ids": [ANN] * 101}).code == "BAD_USER_INPUT"
    assert len(shop.data(NODES, {"ids": [ANN] * 100})["nodes"]) == 100


def test_who_may_read_no_type_is_asked_to_sign_in(shop: Service) -> None:
    scoped = shop.token(ANN, scopes=["orders:write"])
    assert shop.query(NODE, {"id": ANN}, token=scoped).code == "FORBIDDEN"
    narrowed = shop.token(ANN, scopes=["posts:read"])
    assert shop.data(NODES, {"ids": [ANN, POST[1], COMMENT[1]]}, token=narrowed)["nodes"] == [
        None,
        {"__typename": "Post", "id": POST[1]},
        None,
    ]


def test_a_shared_cache_may_keep_a_node_if_it_may_keep_every_type(shop: Service) -> None:
    answer = shop.get_query({"query": f'{{ node(id: "{ANN}") {{ id }} }}'})
    assert answer.status == 200 and "private" in answer.headers["cache-control"]


def test_a_change_cursor_is_of_the_same_snapshot(shop: Service) -> None:
    body = {
        "query": f'{{ node(id: "{ANN}") {{ id }} users(first: 1) {{ id }} nodes(ids: ["{POST[1]}", "x"]) {{ id }} }}'
    }
    answer = shop.post(body, headers={"prefer": "change-cursor"})
    assert answer.json() == {"data": {"node": {"id": ANN}, "users": [{"id": ANN}], "nodes": [{"id": POST[1]}, None]}}
    assert answer.headers["change-cursor"]
