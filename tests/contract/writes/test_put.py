"""PUT takes back what GET gave; what is absent becomes its default, but for what its caller does not see or decide."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.http.data import ANN, BEN, COMMENT, NOBODY, ORDER, POST, ROWS
from tests.contract.writes import vault
from tests.contract.writes.shop import PEOPLE, Shop, without
from tests.contract.writes.vault import BOX, SHELF

SERVER = ("id", "version", "createdAt", "updatedAt")


def give_back(shop: Shop, url: str, who: str) -> None:
    """Either may the caller not update the row at all, or what was read is taken back, and only the version moves."""
    before = shop.dump()
    answer = shop.rest("GET", url, who=who)
    if answer.status != 200:
        return
    put = shop.rest("PUT", url, answer.body, who=who)
    if put.status in (401, 403, 405):
        assert shop.dump() == before
        assert shop.rest("PATCH", url, {}, who=who).status == put.status, "who may update may give back"
        return
    assert put.status == 200, (url, who, put.body)
    shown, kept = put.json(), answer.json()
    assert without(shown, ("version", "updatedAt")) == without(kept, ("version", "updatedAt"))
    assert shown["version"] == kept["version"] + 1
    for table, rows in shop.dump().items():
        assert [_values(row) for row in rows] == [_values(row) for row in before[table]], (url, who)


def _values(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row without its version and the moment of its change."""
    return row[:1] + row[2:3] + row[4:]


@pytest.mark.parametrize("who", PEOPLE)
def test_put_takes_back_what_get_gave(shop: Shop, who: str) -> None:
    for name, rows in ROWS.items():
        for row in rows:
            give_back(shop, f"/{shop.model.resources[name].path}/{row['id']}", who)


@pytest.mark.parametrize("who", PEOPLE)
def test_put_takes_back_every_type_and_every_secret(safe: Shop, who: str) -> None:
    for name, rows in vault.ROWS.items():
        for row in rows:
            give_back(safe, f"/{safe.model.resources[name].path}/{row['id']}", who)


def test_a_mutation_takes_back_what_a_query_gave(safe: Shop) -> None:
    names = "id version createdAt updatedAt owner label open shelfId pin memo rank notes stage loud"
    for who in ("ann", "ben", "zoe"):
        for id in BOX[1:]:
            box = safe.data(f'{{ box(id: "{id}") {{ {names} }} }}', who=who)["box"]
            if box is not None:
                document = f"mutation($id: ID!, $in: BoxReplace!) {{ replaceBox(id: $id, input: $in) {{ {names} }} }}"
                after = safe.data(document, {"id": id, "in": box}, who=who)["replaceBox"]
                assert after == {**box, "version": box["version"] + 1, "updatedAt": after["updatedAt"]}


def test_thing_one_is_whole_after_it_was_given_back(safe: Shop) -> None:
    shown = safe.get("/things/1", "zoe")
    assert safe.rest("PUT", "/things/1", shown, who="zoe").status == 200
    assert {name: safe.get("/things/1")[name] for name in vault.FULL} == {name: shown[name] for name in vault.FULL}
    assert safe.get("/things/1")["ratio"] == 0.1 + 0.2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", NOBODY),
        ("id", "x"),
        ("id", BOX[2]),
        ("createdAt", "2026-01-01T00:00:00.000001Z"),
        ("updatedAt", "2026-01-02T00:00:00Z"),
        ("loud", "other!"),
        ("loud", ""),
    ],
)
def test_what_is_read_only_must_be_as_it_was(safe: Shop, name: str, value: str) -> None:
    shown = safe.get(f"/boxes/{BOX[1]}", "ann")
    with safe.unchanged():
        answer = safe.rest("PUT", f"/boxes/{BOX[1]}", {**shown, name: value}, who="ann")
    assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", [f"/{name}"])


def test_all_that_is_read_only_and_differs_is_told_at_once(safe: Shop) -> None:
    shown = safe.get(f"/boxes/{BOX[1]}", "ann")
    with safe.unchanged():
        other = {"id": NOBODY, "createdAt": "2026-02-01T00:00:00Z", "loud": "?"}
        answer = safe.rest("PUT", f"/boxes/{BOX[1]}", {**shown, **other}, who="ann")
    assert (answer.status, answer.places) == (422, ["/id", "/createdAt", "/loud"])


def test_a_moment_may_be_written_in_another_zone(shop: Shop) -> None:
    shown = shop.get(f"/posts/{POST[1]}", "ann")
    body = {**shown, "createdAt": "2026-01-01T02:00:00+02:00", "updatedAt": "2026-01-01t00:00:00z"}
    assert shop.rest("PUT", f"/posts/{POST[1]}", body, who="ann").status == 200


def test_the_version_in_the_body_acts_as_if_match(shop: Shop) -> None:
    shown = shop.get(f"/posts/{POST[1]}", "ann")
    with shop.unchanged():
        for version in (0, 2, -1, 2**31 - 1):
            answer = shop.rest("PUT", f"/posts/{POST[1]}", {**shown, "version": version}, who="ann")
            assert (answer.status, answer.code) == (412, "PRECONDITION_FAILED")
        for wrong in ("1", None, 1.5, True, 2**31, [1]):
            answer = shop.rest("PUT", f"/posts/{POST[1]}", {**shown, "version": wrong}, who="ann")
            assert (answer.status, answer.places) == (422, ["/version"]), wrong


@pytest.mark.parametrize("name", SERVER)
def test_post_and_patch_refuse_what_is_read_only(shop: Shop, name: str) -> None:
    shown = shop.get(f"/posts/{POST[1]}", "ann")
    with shop.unchanged():
        new = {"authorId": ANN, "title": "t", "body": "b", name: shown[name]}
        for method, url, body in (
            ("POST", "/posts", new),
            ("PATCH", f"/posts/{POST[1]}", {name: shown[name]}),
            ("PATCH", f"/posts/{POST[1]}", {name: None}),
        ):
            answer = shop.rest(method, url, body, who="ann")
            assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", [f"/{name}"])


def test_post_and_patch_refuse_what_is_computed(safe: Shop) -> None:
    with safe.unchanged():
        for method, url, body in (
            ("POST", "/boxes", {"owner": ANN, "label": "l", "loud": "l!"}),
            ("PATCH", f"/boxes/{BOX[1]}", {"loud": "one!"}),
        ):
            answer = safe.rest(method, url, body, who="ann")
            assert (answer.status, answer.places) == (422, ["/loud"])


def test_what_is_absent_becomes_its_default_or_null(safe: Shop) -> None:
    safe.rest("PATCH", f"/boxes/{BOX[1]}", {"open": False}, who="ann")
    answer = safe.rest("PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "new"}, who="ann")
    assert answer.status == 200
    found = safe.get(f"/boxes/{BOX[1]}")
    assert (found["open"], found["shelfId"], found["memo"], found["pin"]) == (True, None, None, "0000")


def test_what_its_caller_does_not_see_or_write_keeps_its_value(safe: Shop) -> None:
    safe.rest("PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "new"}, who="ann")
    found = safe.get(f"/boxes/{BOX[1]}")
    assert (found["stamp"], found["password"], found["rank"], found["stage"]) == ("c1", "pw", 7, "new")
    assert found["notes"] == {"b": 1, "a": [2.0]}
    answer = safe.rest(
        "PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "zoe's"}, who="zoe"
    )  # she sees no pin or memo
    assert answer.status == 200
    found = safe.get(f"/boxes/{BOX[1]}")
    assert (found["pin"], found["memo"], found["label"]) == ("0000", None, "zoe's")
    safe.rest("PATCH", f"/boxes/{BOX[1]}", {"memo": "m", "pin": "9999"}, who="ann")
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", {"owner": ANN, "label": "l"}, who="zoe").status == 200
    found = safe.get(f"/boxes/{BOX[1]}")
    assert (found["pin"], found["memo"]) == ("9999", "m")


def test_null_where_null_was_shown_keeps_what_is_there(safe: Shop) -> None:
    body = {"owner": ANN, "label": "l", "pin": None, "memo": None}
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", body, who="zoe").status == 200
    assert (safe.get(f"/boxes/{BOX[1]}")["pin"], safe.get(f"/boxes/{BOX[1]}")["memo"]) == ("1234", "mine")
    with safe.unchanged():  # but who sees it cannot make a value null that is wanted
        answer = safe.rest("PUT", f"/boxes/{BOX[1]}", body, who="ann")
    assert (answer.status, answer.places) == (422, ["/pin"])
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", {**body, "pin": "4321"}, who="ann").status == 200
    assert safe.get(f"/boxes/{BOX[1]}")["memo"] is None


def test_what_is_hidden_can_be_written_by_who_may(safe: Shop) -> None:
    """(A password can be set by those who cannot see it.)"""
    body = {"owner": ANN, "label": "l", "password": "new"}
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", body, who="zoe").status == 200
    assert safe.get(f"/boxes/{BOX[1]}")["password"] == "new"
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"password": None}, who="zoe").status == 200
    assert safe.get(f"/boxes/{BOX[1]}")["password"] is None


def test_a_required_field_that_is_missing_is_422(shop: Shop) -> None:
    with shop.unchanged():
        answer = shop.rest("PUT", f"/posts/{POST[1]}", {"published": True}, who="ann")
        assert (answer.status, answer.places) == (422, ["/authorId", "/title", "/body"])
        answer = shop.rest("PUT", f"/users/{ANN}", {}, who="ann")
        assert (answer.status, answer.places) in ((422, ["/name"]), (422, ["/name", "/email"]))
        answer = shop.rest("PUT", f"/users/{ANN}", {"name": "Ann"}, who="ann")
        assert (answer.status, answer.code, answer.places) == (422, "BAD_USER_INPUT", ["/email"])


def test_what_may_be_read_but_not_written_may_stand_unchanged(safe: Shop, shop: Shop) -> None:
    shown = safe.get(f"/boxes/{BOX[1]}", "ann")
    with safe.unchanged():
        for other in ({"rank": 8}, {"notes": None}, {"notes": {"b": 1, "a": [2.5]}}):
            answer = safe.rest("PUT", f"/boxes/{BOX[1]}", {**shown, **other}, who="ann")
            assert (answer.status, answer.code) == (403, "FORBIDDEN"), other
    order = shop.get(f"/orders/{ORDER[1]}", "ann")
    with shop.unchanged():
        for change in ({"total": "10.01"}, {"note": "n"}, {"customerId": BEN}, {"currency": "USD"}):
            assert shop.rest("PUT", f"/orders/{ORDER[1]}", {**order, **change}, who="ann").status == 403
    same = {**order, "total": "10"}
    assert shop.rest("PUT", f"/orders/{ORDER[1]}", without(same, ("version",)), who="ann").status == 200


def test_the_keys_of_json_that_stands_unchanged_may_come_in_another_order(safe: Shop) -> None:
    shown = safe.get(f"/boxes/{BOX[1]}", "ann")
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", {**shown, "notes": {"a": [2], "b": 1.0}}, who="ann").status == 200
    assert safe.get(f"/boxes/{BOX[1]}")["notes"] == {"b": 1, "a": [2.0]}


def test_a_reference_to_what_is_hidden_may_stand_unchanged(safe: Shop) -> None:
    safe.service.execute(f"UPDATE boxes SET shelf_id = '{SHELF[3]}'")
    shown = safe.get(f"/boxes/{BOX[1]}", "ann")
    assert shown["shelfId"] == SHELF[3]
    assert safe.rest("PUT", f"/boxes/{BOX[1]}", shown, who="ann").status == 200
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": SHELF[3]}, who="ann").status == 200
    assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": None}, who="ann").status == 200
    with safe.unchanged():
        assert safe.rest("PATCH", f"/boxes/{BOX[1]}", {"shelfId": SHELF[3]}, who="ann").status == 409


def test_a_comment_cannot_leave_its_author_by_put(shop: Shop) -> None:
    shown = shop.get(f"/comments/{COMMENT[1]}", "ben")
    with shop.unchanged():
        assert shop.rest("PUT", f"/comments/{COMMENT[1]}", {**shown, "authorId": ANN}, who="ben").status == 403
