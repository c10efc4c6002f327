"""A JSON field that its caller may write and not read: a merge goes into what is stored, and shows nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from diptych import Id, Json, Model, ReadBy, Resource, Role, Viewer, allow, grant, signed_in
from tests.contract.http.data import ANN, BEN, NOBODY, an_id, day
from tests.contract.writes.shop import JSON_PATCH, MERGE, Shop
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

admin = Role("admin")


class Sheet(Resource):
    """Ann owns the first sheet, Ben the second, and nobody may see the third."""

    owner: Id
    hidden: Annotated[Json | None, ReadBy(admin)] = None
    own: Json | None = None
    there: bool = True

    access = (grant("update", to=signed_in), grant("read", to=admin))

    @allow("read")
    def is_there(self, viewer: Viewer) -> bool:
        return self.there

    @allow("read", field="own")
    def of_owner(self, viewer: Viewer) -> bool:
        return self.owner == viewer.id


model = Model(Sheet)
SHEET = [an_id("6", number) for number in range(4)]
VALUE = {"keep": {"a": 1, "b": [1, 2]}, "drop": True}


def _row(number: int, owner: str, **values: Any) -> dict[str, Any]:
    stamps = {"version": 1, "createdAt": day(1), "updatedAt": day(1), "there": True}
    return {"id": SHEET[number], "owner": owner, "hidden": VALUE, "own": VALUE, **stamps, **values}


@pytest.fixture(scope="module")
def opened(new_database: NewDatabase) -> Iterator[Shop]:
    with asyncio.Runner() as runner, in_process(model, new_database(), runner) as service:
        yield Shop(service, {"Sheet": [_row(1, ANN), _row(2, BEN), _row(3, BEN, there=False)]})


@pytest.fixture
def shop(opened: Shop) -> Shop:
    opened.refill()
    return opened


PATCH = {"keep": {"a": None, "c": 3}, "drop": None, "new": {"x": None}}
MERGED = {"keep": {"b": [1, 2], "c": 3}, "new": {}}


@pytest.mark.parametrize("kind", [MERGE, "application/json"])
@pytest.mark.parametrize("field, number", [("hidden", 1), ("own", 1), ("own", 2)])
def test_a_merge_goes_into_what_is_stored(shop: Shop, field: str, number: int, kind: str) -> None:
    """The field is hidden from Ann always, on no row of hers, or on this one."""
    answer = shop.rest("PATCH", f"/sheets/{SHEET[number]}", {field: PATCH}, who="ann", kind=kind)
    assert answer.status == 200, answer.body
    shown = answer.json()
    assert "hidden" not in shown and shown["own"] == ((MERGED if field == "own" else VALUE) if number == 1 else None)
    stored = shop.get(f"/sheets/{SHEET[number]}", "admin")
    assert stored["version"] == 2 and shop_value(shop, number, field) == MERGED
    assert shop_value(shop, number, "own" if field == "hidden" else "hidden") == VALUE


def shop_value(shop: Shop, number: int, field: str) -> Any:
    """What is stored."""
    answer = shop.rest("PATCH", f"/sheets/{SHEET[number]}?fields=id", {"owner": an_id("e", 2)}, who="admin")
    assert answer.status == 200
    return shop.get(f"/sheets/{SHEET[number]}", "admin")[field]


def test_two_merges_into_a_hidden_value_are_both_kept(shop: Shop) -> None:
    for name in ("x", "y"):
        assert shop.rest("PATCH", f"/sheets/{SHEET[1]}", {"hidden": {name: 1}}, who="ann").status == 200
    assert shop_value(shop, 1, "hidden") == {**VALUE, "x": 1, "y": 1}


def test_what_is_no_object_is_set_as_a_whole(shop: Shop) -> None:
    assert shop.rest("PATCH", f"/sheets/{SHEET[1]}", {"hidden": [1]}, who="ann").status == 200
    assert shop_value(shop, 1, "hidden") == [1]
    assert shop.rest("PATCH", f"/sheets/{SHEET[1]}", {"hidden": {"a": 1}}, who="ann").status == 200
    assert shop_value(shop, 1, "hidden") == {"a": 1}, "an object that is merged into no object takes its place"


@pytest.mark.parametrize("id", [SHEET[3], NOBODY, "no-id"])
def test_of_a_row_that_is_not_there_for_the_caller_nothing_is_told(shop: Shop, id: str) -> None:
    with shop.unchanged():
        assert shop.rest("PATCH", f"/sheets/{id}", {"hidden": {"a": 1}}, who="ann").status == 404
        headers = {"if-match": '"1.x"'}
        assert shop.rest("PATCH", f"/sheets/{id}", {"hidden": {"a": 1}}, who="ann", headers=headers).status == 404


def test_a_stale_version_is_told(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest(
            "PATCH", f"/sheets/{SHEET[1]}", {"hidden": {"a": 1}}, who="ann", headers={"if-match": '"7.x"'}
        )
        assert answer.status == 412


def test_no_other_way_of_writing_loses_what_is_hidden(shop: Shop) -> None:
    """PUT leaves it, a JSON Patch finds no place in it, and a mutation sets it as a whole, as it says."""
    seen = shop.get(f"/sheets/{SHEET[2]}", "ann")
    assert shop.rest("PUT", f"/sheets/{SHEET[2]}", seen | {"there": True}, who="ann").status == 200
    for path in ("/hidden/keep", "/own/keep"):
        operations = [{"op": "add", "path": path, "value": 1}]
        assert shop.rest("PATCH", f"/sheets/{SHEET[2]}", operations, who="ann", kind=JSON_PATCH).status == 409
    assert [shop_value(shop, 2, name) for name in ("hidden", "own")] == [VALUE, VALUE]
    document = f'mutation($v: JSON) {{ updateSheet(id: "{SHEET[2]}", patch: {{hidden: $v}}) {{ id }} }}'
    before = shop_value(shop, 2, "hidden")
    shop.data(document, {"v": {"a": 1}}, who="ann")
    assert before != {} and shop_value(shop, 2, "hidden") == {**before, "a": 1}


class Note(Resource):
    one: Json
    two: Json

    access = (grant("read", "create", "update"),)


def test_a_merge_into_what_is_no_json_is_made(new_sqlite: NewDatabase) -> None:
    """Written from outside; the other value keeps what it has."""
    with asyncio.Runner() as runner, in_process(Model(Note), new_sqlite(), runner) as service:
        kind = {"content-type": MERGE}
        row = service.send(
            "POST", "/notes", headers={"content-type": "application/json"}, body=b'{"one":{"a":1},"two":{"b":1}}'
        ).json()
        service.execute("UPDATE notes SET one = '{not json'")
        patch = b'{"one":{"x":1,"y":null},"two":{"c":2}}'
        answer = service.send("PATCH", f"/notes/{row['id']}", headers=kind, body=patch)
        assert answer.status == 200, answer.body
        assert (answer.json()["one"], answer.json()["two"]) == ({"x": 1}, {"b": 1, "c": 2})
        assert service.send("PATCH", "/notes/" + NOBODY, headers=kind, body=patch).status == 404
