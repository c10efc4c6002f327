"""Dynamic client registration (RFC 7591): off, unless origins are named; and narrow where it is on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.identity.records import CLIENT_DETAILS, CLIENTS
from tests.support.cases import cases
from tests.support.in_process import Answer
from tests.support.running import NewDatabase
from tests.system.oauth.flow import App
from tests.system.oauth.stage import HERE, Stage, staged

ORIGINS = ("https://app.example", "http://127.0.0.1", "https://other.example:8443")
BACK = "https://app.example/back"
GOOD = {"redirect_uris": [BACK], "client_name": "Photo Album"}


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Stage]:
    with staged(new_database(), runner, registration_origins=ORIGINS) as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(stage: Stage) -> None:
    """Nobody has registered so far."""
    stage.service.execute("DELETE FROM diptych_client_details")


def register(stage: Stage, body: Any = GOOD, kind: str = "application/json") -> Answer:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return stage.send("POST", "/oauth/register", {"content-type": kind}, sent)


def registered(stage: Stage, **changed: Any) -> App:
    answer = register(stage, {**GOOD, **changed})
    assert answer.status == 201, answer.body
    found = answer.json()
    return App(stage.send, found["client_id"], found.get("client_secret"), found["redirect_uris"][0])


def age(stage: Stage, seconds: int) -> None:
    """Time passes for those who registered."""
    moved = f"created_at = created_at - {seconds}, expires_at = expires_at - {seconds}"
    stage.service.execute(f"UPDATE diptych_client_details SET {moved}")


def test_it_is_off_until_origins_are_named(light: Stage) -> None:
    assert "registration_endpoint" not in light.service.get("/.well-known/openid-configuration").json()
    answer = register(light)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


def test_an_app_registers_and_signs_a_user_in(stage: Stage) -> None:
    metadata = stage.service.get("/.well-known/openid-configuration").json()
    assert metadata["registration_endpoint"] == f"{HERE}/oauth/register"
    answer = register(stage)
    found = answer.json()
    assert (answer.status, answer.headers["cache-control"]) == (201, "no-store")
    assert found["redirect_uris"] == [BACK] and found["client_name"].startswith("Photo Album (")
    assert found["scope"] == "email openid profile read" and found["client_secret_expires_at"] > 0
    assert (found["token_endpoint_auth_method"], found["response_types"]) == ("client_secret_basic", ["code"])
    app = App(stage.send, found["client_id"], found["client_secret"], BACK)
    page = stage.browser.authorize(app, scope="openid read")
    assert b"nobody has verified its name" in page.body
    assert b"nobody has verified its name" not in stage.browser.authorize(stage.app).body
    tokens = stage.tokens(app, scope="openid read")
    assert stage.holds(tokens["access_token"]) and "id_token" in tokens


def test_such_an_app_acts_for_users_only_and_within_its_scopes(stage: Stage) -> None:
    app = registered(stage)
    own = app.proven("/oauth/token", grant_type="client_credentials")
    assert (own.status, own.json()["error"]) == (400, "unauthorized_client")
    assert app.proven("/oauth/device_authorization").json()["error"] == "unauthorized_client"
    assert "error=invalid_scope" in stage.browser.authorize(app, scope="write").headers["location"]
    public = registered(stage, token_endpoint_auth_method="none", scope="posts:read")
    assert public.secret is None and stage.tokens(public)["scope"] == "posts:read"


def test_users_are_led_back_to_registered_addresses_of_named_origins_alone(stage: Stage) -> None:
    native = registered(stage, redirect_uris=["http://127.0.0.1:7777/done"], token_endpoint_auth_method="none")
    assert stage.browser.authorize(native, redirect_uri="http://127.0.0.1:1234/done").status == 200
    other = registered(stage, redirect_uris=["https://other.example:8443/x"])
    assert stage.browser.authorize(other, redirect_uri="https://other.example:8443/y").status == 400


@cases(
    "uri",
    [
        "https://evil.example/back",
        "https://app.example.evil.example/",
        "https://app.example@evil.example/",
        "https://app.example:8443/",
        "https://other.example/",
        "http://app.example/back",
        "http://localhost/back",
        "http://[::1]/back",
        "org.example.app:/back",
        "javascript:alert(1)",
        "https://app.example/back#x",
        "https://*.app.example/",
        "//app.example/back",
        "",
        None,
        7,
        ["https://app.example/"],
    ],
)
def test_other_addresses_are_refused(stage: Stage, uri: Any) -> None:
    for uris in ([uri], [BACK, uri]):
        answer = register(stage, {**GOOD, "redirect_uris": uris})
        assert (answer.status, answer.json()["error"]) == (400, "invalid_redirect_uri")


@cases(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 5_000,
        {"redirect_uris": []},
        {"redirect_uris": BACK},
        {},
        {**GOOD, "redirect_uris": [f"{BACK}{number}" for number in range(6)]},
        {**GOOD, "client_name": "x" * 61},
        {**GOOD, "client_name": ""},
        {**GOOD, "client_name": " x"},
        {**GOOD, "client_name": "a\u202eb"},
        {**GOOD, "client_name": 7},
        {**GOOD, "scope": "admin"},
        {**GOOD, "scope": ""},
        {**GOOD, "scope": ["read"]},
        {**GOOD, "token_endpoint_auth_method": "private_key_jwt"},
        {**GOOD, "token_endpoint_auth_method": ["none"]},
        {**GOOD, "grant_types": ["client_credentials"]},
        {**GOOD, "grant_types": ["authorization_code", "password"]},
        {**GOOD, "grant_types": [{}]},
        {**GOOD, "response_types": ["token"]},
        {**GOOD, "response_types": []},
    ],
)
def test_what_is_not_offered_is_refused(stage: Stage, body: Any) -> None:
    answer = register(stage, body)
    assert answer.status == 400 and answer.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri")
    assert register(stage, GOOD, "text/plain").status == 400, "no page of another site can send it unasked"


def test_few_register_in_an_hour_and_few_are_there_at_a_time(stage: Stage) -> None:
    assert [register(stage).status for _ in range(6)] == [201] * 5 + [429]
    assert int(register(stage).headers["retry-after"]) > 0
    age(stage, 3601)
    assert register(stage).status == 201, "an hour later"
    assert len(stage.run(CLIENT_DETAILS.all(stage.service.app.store, "client_id"))) == 1, "and the others are gone"
    stage.service.execute("UPDATE diptych_client_details SET network = '192.0.2.1'")
    for number in range(49):
        stage.service.execute(
            "INSERT INTO diptych_client_details (client_id, device, network, created_at, expires_at) "
            f"SELECT 'other-{number}', device, 'n{number}', created_at, expires_at FROM diptych_client_details LIMIT 1"
        )
    assert register(stage).status == 429, "from wherever they come"


def test_of_many_at_once_no_more_are_let_in(stage: Stage) -> None:
    async def race() -> list[int]:
        registration = stage.service.handler.oauth.registration
        return [each.status for each in await asyncio.gather(*(registration.register(GOOD, "x") for _ in range(12)))]

    assert sorted(stage.run(race())) == [201] * 5 + [429] * 7


def test_an_app_that_nobody_uses_ends_and_others_end_later(stage: Stage) -> None:
    used, unused = registered(stage), registered(stage)
    tokens = stage.tokens(used, scope="openid read")
    age(stage, 3601)
    assert stage.browser.authorize(unused).status == 400
    assert used.refresh(tokens["refresh_token"]).status == 200
    age(stage, 90 * 86_400)
    assert stage.browser.authorize(used).status == 400
    registered(stage)
    ids = {client.id for client in stage.run(CLIENTS.all(stage.service.app.store, "id"))}
    assert not {used.id, unused.id} & ids
