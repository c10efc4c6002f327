"""PATCH: a merge patch, or a JSON Patch of what its caller sees."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.db.freshness import FRESHNESS
from tests.contract.http.data import ANN, NOBODY, ORDER, POST
from tests.contract.writes.shop import JSON_PATCH, MERGE, Shop
from tests.contract.writes.vault import BOX, SHELF


def patch(shop: Shop, url: str, *operations: Any, who: str = "admin", **headers: str) -> Any:
    return shop.rest("PATCH", url, list(operations), who=who, kind=JSON_PATCH, headers=headers)


def op(name: str, path: str, *value: Any, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **({"value": value[0]} if value else {}), **more}


# merge patches


@pytest.mark.parametrize("kind", [MERGE, "application/json", "application/json; charset=utf-8", MERGE.upper()])
def test_null_removes(shop: Shop, kind: str) -> None:
    answer = shop.rest("PATCH", f"/orders/{ORDER[2]}", {"note": None, "currency": "USD"}, who="staff", kind=kind)
    found = answer.json()
    assert (answer.status, found["note"], found["currency"], found["internalNote"]) == (200, None, "USD", "checked")


def test_null_does_not_remove_what_is_wanted(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest("PATCH", f"/posts/{POST[1]}", {"title": None, "published": None, "body": None}, who="ann")
    assert (answer.status, answer.places) == (422, ["/title", "/body", "/published"])


def test_a_merge_patch_merges_into_json(safe: Shop) -> None:
    """RFC 7396: an object is merged into the object that is there, and null removes a member of it."""
    merged = safe.rest("PATCH", "/things/1", {"data": {"a": {"y": 2}, "b": None, "c": {"d": None}}}, who="zoe")
    assert merged.json()["data"] == {"a": {"x": True, "y": 2}, "c": {}}
    assert safe.rest("PATCH", "/things/2", {"data": {"a": None, "b": {"c": 1}}}).json()["data"] == {"b": {"c": 1}}
    assert safe.rest("PATCH", "/things/2", {"data": [None, {"a": None}]}).json()["data"] == [None, {"a": None}]
    assert safe.rest("PATCH", "/things/2", {"data": {"a": 1}}).json()["data"] == {"a": 1}
    assert safe.rest("PATCH", "/things/2", {"data": None}).json()["data"] is None


def test_a_merge_into_json_is_guarded_like_any_patch(safe: Shop) -> None:
    with safe.unchanged():
        assert safe.rest("PATCH", "/things/9", {"data": {"a": 1}}).status == 404
        assert safe.rest("PATCH", "/things/1", {"data": {"a": 1}, "nope": 1}).places == ["/nope"]
        stale = safe.rest("PATCH", "/things/1", {"data": {"a": 1}}, headers={"if-match": '"7.x"'})
        assert (stale.status, stale.code) == (412, "PRECONDITION_FAILED")
        assert safe.rest("PATCH", "/things/1", {"text": {"a": 1}}).places == ["/text"]
    assert safe.rest("PATCH", "/things/1", {"data": {"z": 1}}, headers={"if-match": '"1.x"'}).status == 200


def test_a_mutation_merges_into_json_too_in_order(safe: Shop) -> None:
    document = "mutation($d: JSON) { updateThing(id: 1, patch: {data: $d}) { data } }"
    merged = safe.data(document, {"d": {"a": {"y": 2}, "b": None, "c": {"d": None}}})
    assert merged == {"updateThing": {"data": {"a": {"x": True, "y": 2}, "c": {}}}}
    assert safe.data(document, {"d": [{"y": None}]}) == {"updateThing": {"data": [{"y": None}]}}
    several = (
        "mutation { a: updateThing(id: 1, patch: {data: {p: 1}}) { data } "
        "b: updateThing(id: 1, patch: {data: {q: 2}}) { data } }"
    )
    assert safe.data(several) == {"a": {"data": {"p": 1}}, "b": {"data": {"p": 1, "q": 2}}}


# JSON Patch


def test_operations_apply_in_their_order(shop: Shop) -> None:
    answer = patch(
        shop,
        f"/posts/{POST[1]}",
        op("test", "/title", "Alpha"),
        op("replace", "/title", "A"),
        op("test", "/title", "A"),
        op("copy", "/body", **{"from": "/title"}),
        op("replace", "/published", False),
        who="ann",
    )
    found = answer.json()
    assert (answer.status, found["title"], found["body"], found["published"], found["version"]) == (
        200,
        "A",
        "A",
        False,
        2,
    )


def test_remove_makes_null_and_add_sets(shop: Shop) -> None:
    url = f"/orders/{ORDER[2]}"
    assert patch(shop, url, op("remove", "/note"), who="staff").json()["note"] is None
    assert patch(shop, url, op("add", "/note", "n"), who="staff").json()["note"] == "n"
    moved = patch(shop, url, op("move", "/internalNote", **{"from": "/note"}), who="staff").json()
    assert (moved["note"], moved["internalNote"]) == (None, "n")
    with shop.unchanged():
        answer = patch(shop, url, op("remove", "/total"), who="staff")
    assert (answer.status, answer.places) == (422, ["/total"])


def test_a_patch_goes_into_json(safe: Shop) -> None:
    answer = patch(safe, "/things/1", op("add", "/data/b/-", 9), op("remove", "/data/a"))
    assert answer.json()["data"] == {"b": [1, 1.5, None, 9]}


def test_a_test_that_fails_is_a_conflict_and_changes_nothing(shop: Shop) -> None:
    with shop.unchanged():
        answer = patch(shop, f"/posts/{POST[1]}", op("replace", "/title", "N"), op("test", "/body", "no"), who="ann")
    assert (answer.status, answer.code, answer.places) == (409, "CONFLICT", ["/1/value"])


def test_what_is_hidden_is_not_there_to_be_tested_or_moved(shop: Shop, safe: Shop) -> None:
    """What a role never sees, and what no one has, are refused in the same words."""
    with safe.unchanged():
        for one in (
            op("test", "/?", "c1"),
            op("test", "/?", None),
            op("remove", "/?"),
            op("replace", "/?", "x"),
            op("copy", "/label", **{"from": "/?"}),
            op("move", "/label", **{"from": "/?"}),
        ):
            named = [
                {key: f"/{name}" if value == "/?" else value for key, value in one.items()}
                for name in ("stamp", "stump")
            ]
            hidden, nothing = (patch(safe, f"/boxes/{BOX[1]}", each, who="ann") for each in named)
            assert (hidden.status, hidden.body) == (409, nothing.body)
        hidden, nothing = (
            patch(safe, f"/boxes/{BOX[1]}", op("add", f"/{name}", "x"), who="ann") for name in ("stamp", "stump")
        )
        assert hidden.status == 422 and hidden.body.replace(b"stamp", b"stump") == nothing.body


def test_what_is_masked_is_null_to_a_test(safe: Shop) -> None:
    url = f"/boxes/{BOX[1]}"
    with safe.unchanged():
        for guess in ("mine", "1234", ""):
            assert patch(safe, url, op("test", "/memo", guess), who="zoe").status == 409
            assert patch(safe, url, op("test", "/pin", guess), who="zoe").status == 409
        copied = patch(safe, url, op("copy", "/label", **{"from": "/memo"}), who="zoe")
        assert (copied.status, copied.places) == (422, ["/label"])
    assert patch(safe, url, op("test", "/memo", None), op("replace", "/label", "l"), who="zoe").status == 200
    assert (safe.get(url)["memo"], safe.get(url)["pin"]) == ("mine", "1234")


@pytest.mark.parametrize("name", ["id", "version", "createdAt", "updatedAt"])
def test_what_is_read_only_is_read_only_here_too(shop: Shop, name: str) -> None:
    with shop.unchanged():
        for one in (op("remove", f"/{name}"), op("replace", f"/{name}", "x")):
            answer = patch(shop, f"/posts/{POST[1]}", one, who="ann")
            assert (answer.status, answer.places) == (422, [f"/{name}"])


def test_the_whole_object_can_be_replaced_by_itself_alone(shop: Shop) -> None:
    shown = shop.get(f"/posts/{POST[1]}", "ann")
    assert (
        patch(shop, f"/posts/{POST[1]}", op("replace", "", {**shown, "title": "N"}), who="ann").json()["title"] == "N"
    )
    with shop.unchanged():
        others: list[Any] = [[], "x", None, 1]
        for other in others:
            assert patch(shop, f"/posts/{POST[1]}", op("replace", "", other), who="ann").status == 422
        answer = patch(shop, f"/posts/{POST[1]}", op("replace", "", {"title": "N"}), who="ann")
    assert answer.status == 422 and "/id" in answer.places


def test_a_patch_of_what_cannot_be_written_is_refused(safe: Shop, shop: Shop) -> None:
    with safe.unchanged():
        assert patch(safe, f"/boxes/{BOX[1]}", op("replace", "/rank", 1), who="ann").status == 403
        assert patch(safe, f"/boxes/{BOX[2]}", op("replace", "/label", "x"), who="zoe").status == 404
        assert patch(safe, f"/boxes/{BOX[1]}", op("replace", "/shelfId", SHELF[3]), who="ann").status == 409
    with shop.unchanged():
        assert patch(shop, f"/posts/{POST[1]}", op("replace", "/title", "x"), who="zoe").status == 403
        assert patch(shop, f"/posts/{POST[1]}", op("replace", "/authorId", NOBODY), who="ann").status in (403, 409)
        assert patch(shop, f"/orders/{ORDER[1]}", op("replace", "/status", "paid"), who="ann").status == 403
    assert patch(shop, f"/orders/{ORDER[1]}", op("replace", "/status", "cancelled"), who="ann").status == 200


def test_a_patch_without_a_change_is_a_write_all_the_same(shop: Shop) -> None:
    assert patch(shop, f"/posts/{POST[1]}", who="ann").json()["version"] == 2
    assert patch(shop, f"/posts/{POST[1]}", op("test", "/title", "Alpha"), who="ann").json()["version"] == 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"op": "add"},
        None,
        "x",
        [1],
        [{}],
        [{"op": "nope", "path": ""}],
        [{"op": "add", "path": "title", "value": 1}],
        [{"op": "add", "path": "/title"}],
        [{"op": "test", "path": 1, "value": 1}],
        [{"op": "replace", "path": "/a~2", "value": 1}],
        [{"op": "test", "path": "", "value": 0}] * 101,
    ],
)
def test_an_ill_formed_patch_is_told_before_the_row_is_looked_for(shop: Shop, body: Any) -> None:
    with shop.unchanged():
        for id in (POST[1], NOBODY):
            answer = shop.rest(
                "PATCH", f"/posts/{id}", body if body is not None else b"null", who="ann", kind=JSON_PATCH
            )
            assert (answer.status, answer.code) == (422, "BAD_USER_INPUT"), id


def test_a_condition_holds_for_a_json_patch(shop: Shop) -> None:
    one = op("replace", "/title", "N")
    with shop.unchanged():
        assert patch(shop, f"/posts/{POST[1]}", one, who="ann", **{"if-match": '"2.x"'}).status == 412
        assert patch(shop, f"/posts/{POST[1]}", one, who="zoe", **{"if-match": '"2.x"'}).status == 403
    assert patch(shop, f"/posts/{POST[1]}", one, who="ann", **{"if-match": '"1.x", "7.y"'}).status == 200
    assert patch(shop, f"/posts/{POST[1]}", one, who="ann", **{"if-match": "*"}).status == 200


def test_a_patch_of_the_owner_keeps_the_fields_that_it_does_not_name(shop: Shop) -> None:
    before = shop.get(f"/posts/{POST[1]}")
    patch(shop, f"/posts/{POST[1]}", op("replace", "/title", "N"), who="ann")
    after = shop.get(f"/posts/{POST[1]}")
    assert {**after, "title": before["title"], "version": 1, "updatedAt": before["updatedAt"]} == before
    assert after["authorId"] == ANN


def test_a_json_patch_is_made_or_refused_when_the_row_comes_to_the_version_that_is_wanted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that was read at another version than If-Match says may have that one when it is written."""
    writes = shop.service.handler.rest.writes
    read = writes._read

    async def read_before(*given: Any) -> bytes:
        return (await read(*given)).replace(b'"version":2', b'"version":1')

    assert patch(shop, f"/posts/{POST[1]}", op("replace", "/title", "N"), who="ann").status == 200
    monkeypatch.setattr(writes, "_read", read_before)
    with shop.unchanged():
        answer = patch(shop, f"/posts/{POST[1]}", op("replace", "/title", "M"), who="ann", **{"if-match": '"2.x"'})
        assert (answer.status, answer.code) == (412, "PRECONDITION_FAILED")


def test_a_json_patch_is_of_the_row_as_it_is_whatever_its_read_token_allows(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a replica that lags would give the same old row in all rounds, and a patch without a condition be 412."""
    one = op("replace", "/title", "N")
    token = patch(shop, f"/posts/{POST[1]}", one, who="ann", prefer="read-token").headers.get("read-token")
    if token is None:  # SQLite has no replicas
        return
    writes, allowed = shop.service.handler.rest.writes, []
    read = writes._read

    async def noted(*given: Any) -> bytes:
        freshness = FRESHNESS.get()
        allowed.append(freshness is not None and freshness.required)
        return await read(*given)

    monkeypatch.setattr(writes, "_read", noted)
    assert patch(shop, f"/posts/{POST[1]}", one, who="ann", **{"read-token": token}).status == 200
    assert allowed == [None]
