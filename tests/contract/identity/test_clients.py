"""Clients: where they may lead people back to, what they are told once, and what ends with them."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.errors import Code, Refusal
from diptych.identity.records import CLIENTS_OWN, GRANTS, hashed
from diptych.identity.redirects import checked_redirect
from tests.contract.identity.desk import Desk, NewDesk
from tests.support.cases import cases
from tests.support.in_process import Service

BACK = "https://app.example.org/back"


def test_a_public_client_has_no_secret(one: Desk) -> None:
    client, secret = one.run(one.clients.add("App", [BACK, BACK, "http://[::1]/x"], scopes=["write", "read", "read"]))
    assert secret is None and client.secret is None
    assert client.redirects == (BACK, "http://[::1]/x") and client.scopes == ("read", "write")
    assert one.run(one.clients.find("App")) == client
    assert one.run(one.clients.find("app")) is None
    assert one.run(one.clients.all()) == [client]


def test_the_secret_of_a_confidential_client_is_kept_as_a_hash(one: Desk) -> None:
    client, secret = one.run(one.clients.add("Job", confidential=True, roles=["staff"]))
    assert secret is not None and len(secret) >= 43
    assert client.secret == hashed(secret) and secret not in repr(one.run(one.clients.all()))
    assert (client.redirects, client.roles, client.scopes) == ((), ("staff",), ())


PUBLIC: list[tuple[dict[str, Any], str]] = [
    ({}, "A client without a secret needs a redirect URI, or the device flow."),
    ({"redirects": [BACK], "roles": ["staff"]}, "A client without a secret gets no tokens of its own, so no roles."),
]


def test_what_a_client_without_a_secret_cannot_be(one: Desk) -> None:
    for given, said in PUBLIC:
        assert one.refused(one.clients.add("App", **given)) == (Code.BAD_USER_INPUT, said)


def test_a_name_is_taken_once(one: Desk) -> None:
    one.run(one.clients.add("App", [BACK]))
    assert one.refused(one.clients.add("App", [BACK])) == (Code.CONFLICT, "There is a client named 'App' already.")


def test_what_is_no_name_is_refused(one: Desk) -> None:
    for name in ("", " App", "App ", "a\nb", "a\x00", "\ud800", "x" * 101):
        assert one.refused(one.clients.add(name, [BACK]))[0] is Code.BAD_USER_INPUT, name


@cases(
    "uri",
    [
        "https://app.example.org",
        "https://app.example.org:8443/back?x=1&y=%2A",
        "https://localhost/",
        "https://[2001:db8::1]/",
        "http://127.0.0.1/",
        "http://127.0.0.1:49152/back",
        "http://[::1]:8000/",
        "http://localhost:3000/back",
        "https://app.example.org/~me/@back",
        "org.example.app:/done",
        "org.example.app://done/x",
        "com.example-1.app:done",
    ],
)
def test_addresses_that_are_safe_are_taken(uri: str) -> None:
    assert checked_redirect(uri) == uri


@cases(
    ("uri", "said"),
    [
        ("", "it is no URI"),
        ("/back", "it is not absolute"),
        ("//app.example.org/back", "it is not absolute"),
        ("app.example.org/back", "it is not absolute"),
        ("https:/back", "it is not absolute"),
        ("https:///back", "it is not absolute"),
        ("https://:443/back", "it is not absolute"),
        ("http://app.example.org/", "use https"),
        ("http://127.0.0.2/", "use https"),
        ("http://127.0.0.1.example.org/", "use https"),
        ("http://localhost.example.org/", "use https"),
        ("http://0.0.0.0/", "use https"),
        ("HTTP://app.example.org/", "use https"),
        ("https://app.example.org/#x", "it has a fragment"),
        ("https://app.example.org/#", "it has a fragment"),
        ("https://*.example.org/", "it has a wildcard"),
        ("https://app.example.org/*", "it has a wildcard"),
        ("https://me@app.example.org/", "it names a user"),
        ("https://me:secret@app.example.org/", "it names a user"),
        ("http://127.0.0.1@app.example.org/", "it names a user"),
        ("https://app.example.org\\@other.example/", "it is no URI"),
        ("https://app.example.org/a b", "it is no URI"),
        ("https://app.example.org/\n", "it is no URI"),
        (" https://app.example.org/", "it is no URI"),
        ("https://äpp.example.org/", "it is no URI"),
        ("https://app.example.org:x/", "it is no URI"),
        ("https://app.example.org:65536/", "it is no URI"),
        ("https://[::1/", "it is no URI"),
        ("http://127.0.0.1:0/", "port"),
        ("javascript:alert(1)", "a scheme with a dot"),
        ("data:text/html,x", "a scheme with a dot"),
        ("file:///etc/passwd", "a scheme with a dot"),
        ("myapp:/done", "a scheme with a dot"),
        ("ftp://app.example.org/", "a scheme with a dot"),
        ("https://app.example.org/" + "x" * 2_000, "it is no URI"),
    ],
)
def test_addresses_that_are_not_safe_are_refused(uri: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        checked_redirect(uri)
    assert refused.value.code is Code.BAD_USER_INPUT
    assert said in refused.value.message and refused.value.message.endswith(".")


def test_a_client_has_no_address_that_is_not_safe(one: Desk) -> None:
    code, _ = one.refused(one.clients.add("App", [BACK, "http://app.example.org/"]))
    assert code is Code.BAD_USER_INPUT and one.run(one.clients.all()) == []


# removal


def test_a_client_that_is_not_there_is_told(one: Desk) -> None:
    assert one.refused(one.clients.remove("App")) == (Code.NOT_FOUND, "There is no client named 'App'.")


def test_with_a_client_ends_all_that_it_got_here_and_elsewhere(shop: Service, at_shop: Desk, new_desk: NewDesk) -> None:
    clients = [at_shop.run(at_shop.clients.add(name, confidential=True))[0] for name in ("Job", "Other")]
    grants = [at_shop.give(f"account-{number}", clients[number // 3].id, number) for number in range(4)]
    tokens = shop.handler.context.tokens
    names = [*(grant.id for grant in grants), *(CLIENTS_OWN + client.id for client in clients)]
    given = [tokens.make(None, ["admin"], None, more={"grant": name}) for name in names]

    def statuses() -> list[int]:
        return [shop.get("/orders", token=token).status for token in given]

    assert statuses() == [200] * 6
    elsewhere = new_desk()
    removed = elsewhere.run(elsewhere.clients.remove("Job"))
    assert removed == clients[0] and elsewhere.run(elsewhere.clients.find("Job")) is None
    assert at_shop.given() == ({"grant-3"}, {"code-3"}, {f"browser-{number}" for number in range(4)})
    shop.runner.run(shop.handler.context.revoked.poll())
    assert statuses() == [401, 401, 401, 200, 401, 200]
    at_shop.run(at_shop.clients.remove("Other"))
    assert statuses() == [401] * 6
    ended = at_shop.run(GRANTS.all(at_shop.store, "id"))
    assert [grant.revoked_at is None for grant in ended] == [False] * 4
