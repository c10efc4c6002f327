"""Keys that sign: a new one is taken by whoever runs, old ones verify until they are removed, one always stays."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from diptych.errors import Code, Refusal
from diptych.identity import keys
from diptych.identity.keys import remove_key, rotate_key, signing_keys
from diptych.identity.records import KEYS, ServiceKey
from diptych.identity.tokens import kid_of, load_tokens, token_keys
from tests.contract.identity.desk import Desk, NewDesk
from tests.support.in_process import Service

HERE = {"host": "127.0.0.1:8000"}
PUBLISHED = ("jwks.json", "oauth-authorization-server")


def kids(one: Desk) -> list[str]:
    return [key.kid for key in one.run(signing_keys(one.store))]


def look(shop: Service) -> None:
    """What a running service does twice a second."""
    shop.runner.run(shop.handler.context.revoked.poll())


def test_the_newest_key_is_told_first_and_no_secret_is(one: Desk) -> None:
    one.run(load_tokens(one.store))
    made = [one.run(rotate_key(one.store)) for _ in range(3)]
    assert kids(one) == [*reversed(made), "1"]
    told = repr(one.run(signing_keys(one.store)))
    assert all(row.secret not in told for row in one.run(token_keys(one.store)))
    assert '"d"' not in told


def test_a_running_service_signs_with_a_new_key_and_old_tokens_hold(shop: Service, new_desk: NewDesk) -> None:
    old = shop.token(None, "admin")
    assert shop.get("/orders", token=old).status == 200
    elsewhere = new_desk()
    kid = elsewhere.run(rotate_key(elsewhere.store))
    assert kid_of(shop.token(None, "admin")) == "1"
    look(shop)
    new = shop.token(None, "admin")
    assert kid_of(new) == kid
    assert [shop.get("/orders", token=token).status for token in (old, new)] == [200, 200]
    assert [key["kid"] for key in shop.handler.context.tokens.public()["keys"]] == [kid, "1"]


@pytest.mark.parametrize("path", ["introspect", "revoke"])
def test_a_token_of_a_key_that_is_newer_than_the_last_look_is_known_to_the_endpoints_of_clients(
    shop: Service, at_shop: Desk, new_desk: NewDesk, path: str
) -> None:
    elsewhere = new_desk()
    client, secret = elsewhere.run(elsewhere.clients.add("Gateway", confidential=True))
    elsewhere.run(rotate_key(elsewhere.store))
    tokens = elsewhere.run(load_tokens(elsewhere.store))
    token = tokens.make(None, ["admin"], None, more={"client_id": client.id})
    shop.handler.context._loaded_at = 0.0  # keys are loaded at most once a second
    form = f"token={token}&client_id={client.id}&client_secret={secret}".encode()
    kind = {"content-type": "application/x-www-form-urlencoded"}
    answer = shop.send("POST", f"/oauth/{path}", headers={**HERE, **kind}, body=form)
    assert answer.status == 200
    assert answer.json().get("active", "revoked") == (True if path == "introspect" else "revoked")
    assert shop.get("/orders", token=token).status == (200 if path == "introspect" else 401)


def test_a_key_is_published_by_every_node_before_any_token_of_it(
    shop: Service, new_desk: NewDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node may sign with it before this one has looked for new keys."""

    def published() -> list[str]:
        return [key["kid"] for key in shop.get("/.well-known/jwks.json", headers=HERE).json()["keys"]]

    elsewhere = new_desk()
    kid = elsewhere.run(rotate_key(elsewhere.store))
    assert published() == [kid, "1"]

    async def down(*given: object) -> None:
        raise Refusal(Code.UNAVAILABLE, "The database does not answer.")

    monkeypatch.setattr(shop.app.store, "run", down)
    assert published() == [kid, "1"]


def test_a_new_key_signs_although_the_clock_was_ahead_when_the_last_one_was_made(one: Desk) -> None:
    one.run(load_tokens(one.store))
    ahead = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="microseconds")
    one.run(one.store.write(lambda: KEYS.change(one.store.dialect, {"kid": "1"}, created_at=ahead)))
    for _ in range(2):
        kid = one.run(rotate_key(one.store))
        assert kids(one)[0] == kid == kid_of(one.run(load_tokens(one.store)).make(None, (), None))
    one.run(remove_key(one.store, "1", at_once=True))


def test_no_proxy_keeps_the_public_keys(shop: Service) -> None:
    """Whoever meets a new key asks for it, and must not get the keys of some minutes ago."""
    shared = {path: shop.get(f"/.well-known/{path}", headers=HERE).headers["cache-control"] for path in PUBLISHED}
    assert shared == {"jwks.json": "no-cache", "oauth-authorization-server": "public, max-age=300"}


def test_a_token_of_a_key_that_is_newer_than_the_last_look_holds_at_once(shop: Service, new_desk: NewDesk) -> None:
    elsewhere = new_desk()
    for _ in range(2):
        elsewhere.run(rotate_key(elsewhere.store))
        token = elsewhere.run(load_tokens(elsewhere.store)).make(None, ["admin"], None)
        shop.handler.context._loaded_at = 0.0  # keys are loaded at most once a second
        assert shop.get("/orders", token=token).status == 200
        look(shop)


def test_keys_are_looked_for_while_a_service_runs(shop: Service) -> None:
    context = shop.handler.context

    async def wait() -> None:
        await context.revoked.start()
        kid = await rotate_key(shop.app.store)
        async with asyncio.timeout(60):
            while context.tokens.keys[-1].kid != kid:
                await asyncio.sleep(0.01)
        await context.revoked.stop()

    shop.runner.run(wait())


def test_a_look_that_finds_nothing_new_leaves_the_keys_as_they_are(shop: Service) -> None:
    tokens = shop.handler.context.tokens
    before = tokens.keys
    look(shop)
    assert tokens.keys is before


def test_the_key_that_signs_cannot_be_removed(one: Desk) -> None:
    one.run(load_tokens(one.store))
    said = "The key '1' is the one that signs; rotate first."
    for at_once in (False, True):
        assert one.refused(remove_key(one.store, "1", at_once=at_once)) == (Code.CONFLICT, said)
    assert kids(one) == ["1"]


def test_a_key_is_removed_when_its_tokens_have_expired(one: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    one.run(load_tokens(one.store))
    now = datetime.now(UTC)
    new = one.run(rotate_key(one.store))
    code, said = one.refused(remove_key(one.store, "1"))
    assert code is Code.CONFLICT and said.startswith("The key '1' is needed until ")
    (_, old) = one.run(signing_keys(one.store))
    assert old.needed_until is not None and old.is_needed
    assert now + timedelta(seconds=900) < old.needed_until < now + timedelta(seconds=2_000)
    monkeypatch.setattr(keys, "_HELD", timedelta(seconds=-1))
    one.run(remove_key(one.store, "1"))
    assert kids(one) == [new]


def test_a_key_that_is_removed_at_once_ends_its_tokens(shop: Service, new_desk: NewDesk) -> None:
    old = shop.token(None, "admin")
    assert shop.get("/orders", token=old).status == 200
    elsewhere = new_desk()
    elsewhere.run(rotate_key(elsewhere.store))
    look(shop)
    new = shop.token(None, "admin")
    elsewhere.run(remove_key(elsewhere.store, "1", at_once=True))
    look(shop)
    assert [shop.get("/orders", token=token).status for token in (old, new)] == [401, 200]


def test_only_keys_that_sign_tokens_can_be_removed(shop: Service, new_desk: NewDesk) -> None:
    elsewhere = new_desk()
    for kid in ("cursor", "nothing", ""):
        code, said = elsewhere.refused(remove_key(elsewhere.store, kid, at_once=True))
        assert (code, said) == (Code.NOT_FOUND, f"There is no key named {kid!r}.")
    assert elsewhere.run(KEYS.all(elsewhere.store, "kid", kind="cursor")) != []


def test_of_many_who_remove_keys_at_once_nobody_removes_the_last(new_desk: NewDesk) -> None:
    one, other = new_desk(), new_desk()
    one.run(load_tokens(one.store))
    for _ in range(5):
        one.run(rotate_key(one.store))
    everyone = kids(one)

    async def remove(desk: Desk, kid: str) -> None:
        try:
            await remove_key(desk.store, kid, at_once=True)
        except Refusal as refusal:
            assert refusal.code in (Code.CONFLICT, Code.NOT_FOUND)

    one.gather(*(remove(desk, kid) for kid in everyone for desk in (one, other)))
    assert kids(one) == everyone[:1]


def test_keys_of_one_store_are_told_in_their_order_whoever_made_them(one: Desk) -> None:
    for kid, made in (("b", "2026-01-01T00:00:02.000000+00:00"), ("a", "2026-01-01T00:00:01.000000+00:00")):
        one.run(one.store.write(partial(KEYS.add, one.store.dialect, ServiceKey(kid, "token", "{}", made))))
    assert kids(one) == ["b", "a"]
