"""API keys: bearer tokens of machines, in both styles."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from diptych.errors import Code, Refusal
from diptych.identity import api_keys
from diptych.identity import viewer as viewer_module
from diptych.identity.records import API_KEYS, unix_time
from tests.contract.http.data import ANN
from tests.contract.identity.desk import Desk, NewDesk
from tests.support.in_process import Service


@dataclass
class Clock:
    """The time of day, some seconds later."""

    later: int = 0

    def __call__(self) -> int:
        return unix_time() + self.later

    time = __call__
    monotonic = __call__


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(api_keys, "unix_time", found)
    monkeypatch.setattr(viewer_module, "time", found)
    return found


def used_at(desk: Desk) -> list[int | None]:
    return [key.used_at for key in desk.run(API_KEYS.all(desk.store, "name"))]


def test_a_key_is_a_bearer_token_in_both_styles(shop: Service, at_shop: Desk) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", ANN, ["staff"]))
    assert shop.get("/orders").status == 401
    assert shop.get("/orders", token=text).status == 200
    assert shop.data("{ orders(first: 1) { internalNote } }", token=text)["orders"]
    assert shop.get(f"/users/{ANN}?fields=email", token=text).json()["email"] is not None  # it is that user


def test_a_key_has_the_roles_it_was_given_and_no_other(shop: Service, at_shop: Desk) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot"))
    assert shop.get("/orders?fields=internalNote", token=text).status in (400, 403)
    assert shop.get("/users", token=text).status == 200


def test_scopes_narrow_a_key(shop: Service, at_shop: Desk) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"], ["users:read"]))
    assert shop.get("/users", token=text).status == 200
    assert shop.get("/orders", token=text).status == 403
    assert shop.query("{ orders { id } }", token=text).code == "FORBIDDEN"
    create = 'mutation { createUser(input: {name: "Zoe", email: "z@example.org"}) { id } }'
    assert shop.query(create, token=text).code == "FORBIDDEN"
    _, nothing = at_shop.run(at_shop.api_keys.add("Nothing", None, ["admin"], []))
    assert shop.get("/users", token=nothing).status == 403


def test_a_key_is_kept_as_a_hash_and_named_once(one: Desk) -> None:
    key, text = one.run(one.api_keys.add("Robot", "u1", ["staff"], ["read"], 60))
    assert text.startswith(f"dk_{key.id}_") and len(text) == 3 + 16 + 1 + 43
    assert text[20:] not in repr(one.run(one.api_keys.all()))
    assert one.run(one.api_keys.all()) == [key]
    assert one.refused(one.api_keys.add("Robot")) == (Code.CONFLICT, "There is an API key named 'Robot' already.")
    assert one.refused(one.api_keys.add(" Robot"))[0] is Code.BAD_USER_INPUT
    assert one.refused(one.api_keys.add("Other", "a b"))[0] is Code.BAD_USER_INPUT


def test_a_key_expires(shop: Service, at_shop: Desk, clock: Clock) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"], None, 30))
    assert shop.get("/orders", token=text).status == 200
    clock.later = 30
    for _ in range(2):
        refused = shop.get("/orders", token=text)
        assert (refused.status, refused.code) == (401, "UNAUTHENTICATED")
        assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'


def test_a_key_without_an_end_holds_on_and_is_looked_up_once_a_minute(
    shop: Service, at_shop: Desk, clock: Clock
) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))
    assert used_at(at_shop) == [None]
    for minute in range(4):
        clock.later = 61 * minute
        moments = []
        for _ in range(3):
            shop.runs = 0
            assert shop.get("/orders?first=1", token=text).status == 200
            moments.append(shop.runs)
        assert moments == [2, 1, 1]
        (noted,) = used_at(at_shop)
        assert noted is not None and abs(noted - clock()) <= 30


def test_a_key_reads_on_while_the_database_takes_no_changes(
    shop: Service, at_shop: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))

    async def full(script: Any) -> Any:
        raise Refusal(Code.UNAVAILABLE, "The database takes no changes: there is no room left.")

    monkeypatch.setattr(shop.app.store, "write", full)
    assert shop.get("/orders?first=1", token=text).status == 200
    assert shop.get("/orders?first=1", token=text[:-1] + "_").status == 401


def test_the_last_use_is_noted_once_a_minute_by_whoever_sees_it(
    shop: Service, at_shop: Desk, new_desk: NewDesk, clock: Clock
) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot"))
    elsewhere = new_desk()
    assert elsewhere.run(api_keys.look_up(elsewhere.store, text)) is not None
    first = used_at(at_shop)
    clock.later = 50
    assert shop.get("/users", token=text).status == 200
    assert used_at(at_shop) == first
    clock.later = 70
    assert elsewhere.run(api_keys.look_up(elsewhere.store, text)) is not None
    assert used_at(at_shop) != first


def test_a_key_that_is_removed_ends_at_once_here_and_elsewhere_at_the_next_look(
    shop: Service, at_shop: Desk, new_desk: NewDesk
) -> None:
    (_, one), (_, other) = (at_shop.run(at_shop.api_keys.add(name, None, ["admin"])) for name in ("One", "Other"))
    assert [shop.get("/orders", token=text).status for text in (one, other)] == [200, 200]
    elsewhere = new_desk()
    elsewhere.run(elsewhere.api_keys.remove("One"))
    shop.runner.run(shop.handler.context.revoked.poll())
    assert [shop.get("/orders", token=text).status for text in (one, other)] == [401, 200]
    at_shop.run(at_shop.api_keys.remove("Other"))
    assert [shop.get("/orders", token=text).status for text in (one, other)] == [401, 401]
    assert at_shop.run(at_shop.api_keys.all()) == []
    assert at_shop.refused(at_shop.api_keys.remove("One")) == (Code.NOT_FOUND, "There is no API key named 'One'.")


def test_a_key_that_is_removed_while_it_is_looked_up_is_not_let_in(
    shop: Service, at_shop: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))

    async def late(*given: Any) -> Any:
        found = await api_keys.look_up(*given)
        await at_shop.api_keys.remove("Robot")
        return found

    monkeypatch.setattr(viewer_module, "look_up", late)
    assert shop.get("/orders", token=text).status == 401


MALFORMED: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: "dk_",
    "no id": lambda text: "dk__" + text[20:],
    "no secret": lambda text: text[:20],
    "a shorter secret": lambda text: text[:-1],
    "a longer secret": lambda text: text + "x",
    "upper case": lambda text: "dk_" + text[3:19].upper().replace("0", "A") + text[19:],
    "NUL": lambda text: text[:5] + "\x00" + text[6:],
    "a quote": lambda text: text[:5] + "'" + text[6:],
    "a wildcard": lambda text: "dk_%_" + text[20:],
    "huge": lambda text: "dk_" + "a" * 100_000,
    "a JWT": lambda text: "dk_a.b.c",
}


def test_a_malformed_key_is_refused_without_a_look(shop: Service, at_shop: Desk) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))
    shop.runs = 0
    for name, make in MALFORMED.items():
        assert shop.get("/users", token=make(text)).status == 401, name
        assert shop.query("{ users { id } }", token=make(text)).status == 401, name
    assert shop.runs == 0


def test_a_key_that_is_not_there_or_has_another_secret_costs_one_look(shop: Service, at_shop: Desk) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))
    _, other = at_shop.run(at_shop.api_keys.add("Other", None, ["admin"]))
    flipped = "A" if text[-1] != "A" else "B"
    for wrong in (
        "dk_0123456789abcdef" + text[19:],
        text[:-1] + flipped,
        text[:20] + other[20:],
        other[:20] + text[20:],
    ):
        shop.runs = 0
        assert shop.get("/users", token=wrong).status == 401
        assert shop.runs == 1
    assert used_at(at_shop) == [None, None]


def test_secrets_are_compared_in_constant_time(shop: Service, at_shop: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = at_shop.run(at_shop.api_keys.add("Robot", None, ["admin"]))
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(secrets, "compare_digest", compare)
    assert shop.get("/users", token=text).status == 401
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64)]
