"""Mass assignment: a body sets what its sender was never meant to set, because whatever it names is taken.

Published for Rails as it was at GitHub in 2012 (a key was given to another account by `public_key[user_id]`), Strapi
(CVE-2023-39345, private fields at the registration) and most that bind bodies to rows. Here a change takes the fields
that its caller may write, and refuses all others by name, whether they belong to the server, to someone else or to
nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diptych.model.defs import SERVER_FIELDS, ResourceDef
from diptych.model.resource_view import WriteView
from diptych.model.rules.expr import FALSE
from diptych.model.view import View
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, NOBODY, ORDER, POST, day
from tests.contract.writes.shop import JSON_PATCH, MERGE
from tests.support.in_process import Answer

POST_BODY = {"authorId": ANN, "title": "t", "body": "b"}
ORDER_BODY = {"customerId": ANN, "total": "1.00"}
OF_THE_SERVER = {"id": NOBODY, "version": 7, "createdAt": day(9), "updatedAt": day(9)}
MUTATIONS = {
    "create": "mutation($v: TYPECreate!) { createTYPE(input: $v) { id } }",
    "update": 'mutation($v: TYPEPatch!) { updateTYPE(id: "ID", patch: $v) { id } }',
    "replace": 'mutation($v: TYPEReplace!) { replaceTYPE(id: "ID", input: $v) { id } }',
}


def rest_ways(path: str, id: str, whole: dict[str, Any], extra: dict[str, Any]) -> list[tuple[str, str, Any, str]]:
    """The extra fields in every body that the resource style takes."""
    operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in extra.items()]
    return [
        ("POST", path, {**whole, **extra}, "application/json"),
        ("POST", path, [whole, {**whole, **extra}], "application/json"),
        ("PATCH", f"{path}/{id}", extra, "application/json"),
        ("PATCH", f"{path}/{id}", extra, MERGE),
        ("PATCH", f"{path}/{id}", operations, JSON_PATCH),
        ("PATCH", f"{path}/{id}", [{**each, "op": "replace"} for each in operations], JSON_PATCH),
        ("PUT", f"{path}/{id}", {**whole, **extra}, "application/json"),
    ]


def by_graphql(shop: Scene, type_: str, id: str, verb: str, values: dict[str, Any], who: str) -> Answer:
    """A mutation whose input is a variable."""
    return shop.ql(MUTATIONS[verb].replace("TYPE", type_).replace('ID"', f'{id}"'), {"v": values}, who=who)


def accepted(
    shop: Scene, type_: str, path: str, id: str, whole: dict[str, Any], extra: dict[str, Any], who: str
) -> list[Any]:
    """The ways by which extra fields were taken; the rows are put back after each."""
    found: list[Any] = []
    for method, url, body, kind in rest_ways(path, id, whole, extra):
        if shop.rest(method, url, body, who=who, kind=kind).status < 300:
            found.append((method, url, body, kind))
            shop.refill()
    for verb in MUTATIONS:
        values = extra if verb == "update" else {**whole, **extra}
        if "errors" not in by_graphql(shop, type_, id, verb, values, who).json():
            found.append(verb)
            shop.refill()
    return found


@pytest.mark.parametrize("name", OF_THE_SERVER)
@pytest.mark.parametrize("who", ["ann", "admin"])
def test_what_the_server_keeps_is_not_taken(shop: Scene, name: str, who: str) -> None:
    """`id`, `version`, `createdAt` and `updatedAt` with values of the sender's own, by every way, from anyone."""
    extra = {name: OF_THE_SERVER[name]}
    assert accepted(shop, "Post", "/posts", POST[1], POST_BODY, extra, who) == []
    assert accepted(shop, "Order", "/orders", ORDER[1], ORDER_BODY, extra, who) == []


@pytest.mark.parametrize(
    ("type_", "path", "id", "whole", "extra"),
    [
        ("Post", "/posts", POST[1], POST_BODY, {"authorId": BEN}),
        ("Order", "/orders", ORDER[1], ORDER_BODY, {"customerId": BEN}),
        ("Order", "/orders", ORDER[1], ORDER_BODY, {"internalNote": "mine"}),
        ("Order", "/orders", ORDER[1], ORDER_BODY, {"internalNote": None}),
        ("Order", "/orders", ORDER[1], ORDER_BODY, {"status": "paid"}),
    ],
)
def test_who_owns_a_row_and_what_staff_alone_write_is_not_taken(
    shop: Scene, type_: str, path: str, id: str, whole: dict[str, Any], extra: dict[str, Any]
) -> None:
    """A post in the name of Ben, an order on his account, a note of the staff: Ann can make none of them."""
    assert accepted(shop, type_, path, id, whole, extra, who="ann") == []
    may = accepted(shop, type_, path, id, whole, extra, who="admin")
    assert {"update", "replace"} <= {each for each in may if isinstance(each, str)}


def test_with_every_field_open_the_note_of_the_staff_would_be_taken(shop: Scene) -> None:
    """The same check with the fault planted: who may make the row may give every field of it."""
    written = View._writes

    def all_open(self: View, found: ResourceDef) -> Mapping[str, WriteView]:
        mine = self.rule(found, "create")
        stored = (each for each in found.fields.values() if each.stored and each.name not in SERVER_FIELDS)
        return {**{each.name: WriteView(each, mine, FALSE) for each in stored}, **written(self, found)}

    with shop.planted(View, "_writes", all_open):
        taken = accepted(shop, "Order", "/orders", ORDER[1], ORDER_BODY, {"internalNote": "mine"}, who="ann")
    assert len(taken) == 3 and "create" in taken


@pytest.mark.parametrize(
    "name",
    [
        "author",
        "comments",
        "customer",
        "isAdmin",
        "role",
        "roles",
        "__proto__",
        "constructor",
        "_id",
        "ID",
        "authorid",
        "author_id",
        "AuthorId",
    ],
)
def test_names_that_are_no_field_are_refused_not_ignored(shop: Scene, name: str) -> None:
    """Relations as nested objects, columns by their own spelling, roles, and what pollutes objects elsewhere."""
    for value in (
        {"id": BEN},
        BEN,
        {"connect": {"id": BEN}},
        {"create": {"name": "x"}},
        [{"body": "x"}],
        "admin",
        True,
    ):
        assert accepted(shop, "Post", "/posts", POST[1], POST_BODY, {name: value}, who="ann") == []


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "copy", "from": "/internalNote", "path": "/note"}],
        [{"op": "move", "from": "/internalNote", "path": "/note"}],
        [{"op": "copy", "from": "/note", "path": "/internalNote"}],
        [{"op": "move", "from": "/note", "path": "/internalNote"}],
        [{"op": "remove", "path": "/internalNote"}],
        [{"op": "test", "path": "/internalNote", "value": "checked"}],
        [
            {"op": "test", "path": "/internalNote", "value": "checked"},
            {"op": "replace", "path": "/status", "value": "cancelled"},
        ],
        [{"op": "replace", "path": "/internalNote", "value": "x"}],
    ],
    ids=lambda each: "-".join(operation["op"] for operation in each),
)
def test_a_json_patch_works_on_what_its_sender_sees(shop: Scene, operations: list[dict[str, Any]]) -> None:
    """Hidden fields are neither source nor target nor test of an operation: the same answer as for a name no one
    has."""
    with shop.unchanged():
        answer = shop.rest("PATCH", f"/orders/{ORDER[2]}", operations, who="ann", kind=JSON_PATCH)
        swapped = [
            {
                key: value.replace("internalNote", "nothing") if isinstance(value, str) else value
                for key, value in each.items()
            }
            for each in operations
        ]
        other = shop.rest("PATCH", f"/orders/{ORDER[2]}", swapped, who="ann", kind=JSON_PATCH)
    assert answer.status in (403, 409, 422)
    assert answer.body.replace(b"internalNote", b"nothing") == other.body


def test_a_json_patch_does_not_test_or_copy_what_is_masked(shop: Scene) -> None:
    """A `test` of Ben's email fails for Ann alike whether she guesses right or wrong, and a copy of it is one of null."""
    with shop.unchanged():
        tests = [
            [{"op": "test", "path": "/email", "value": guess}, {"op": "replace", "path": "/name", "value": "x"}]
            for guess in ("ben@example.com", "wrong@example.com")
        ]
        right, wrong = (shop.rest("PATCH", f"/users/{BEN}", body, who="ann", kind=JSON_PATCH) for body in tests)
        assert right.status in (403, 409, 422) and (right.status, right.body) == (wrong.status, wrong.body)
        copy = [{"op": "copy", "from": "/email", "path": "/name"}]
        answer = shop.rest("PATCH", f"/users/{BEN}", copy, who="ann", kind=JSON_PATCH)
        assert answer.status in (403, 422) and b"example.com" not in answer.body


def test_a_whole_batch_falls_with_one_field(shop: Scene) -> None:
    """One row of a hundred with a field too many, in an array or among mutations: none is made."""
    rows = [dict(POST_BODY) for _ in range(20)]
    bad = {"authorId": BEN, "title": "t", "body": "b"}
    calls = " ".join(f"m{index}: createPost(input: $v) {{ id }}" for index in range(5))
    with shop.unchanged():
        assert shop.rest("POST", "/posts", [*rows, bad], who="ann").status == 403
        assert shop.rest("POST", "/posts", [*rows, {**POST_BODY, "id": NOBODY}], who="ann").status == 422
        document = f"mutation($v: PostCreate!, $w: PostCreate!) {{ {calls} bad: createPost(input: $w) {{ id }} }}"
        answer = shop.ql(document, {"v": POST_BODY, "w": bad}, who="ann")
        assert answer.json()["data"] is None and answer.code == "FORBIDDEN"
        assert answer.json()["errors"][0]["path"] == ["bad"]


def test_a_replacement_gives_back_what_it_read_and_changes_nothing_hidden(shop: Scene) -> None:
    """PUT of what GET gave, by someone who does not see `internalNote`: it stays, and is not reset to its default."""
    own = shop.get(f"/posts/{POST[1]}", "ann")
    assert shop.rest("PUT", f"/posts/{POST[1]}", own, who="ann").status == 200
    clerk = shop.service.token(ANN, "staff")
    seen = shop.get(f"/orders/{ORDER[2]}", "ann")
    assert "internalNote" not in seen
    assert shop.rest("PUT", f"/orders/{ORDER[2]}", seen, who="ann").status in (200, 403)
    assert shop.get(f"/orders/{ORDER[2]}", clerk)["internalNote"] == "checked"
