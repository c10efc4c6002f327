"""The device flow (RFC 8628): a program polls, a user types its code, looks at it and decides; and who would cheat."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.identity.oauth.device_codes import new_user_code, normalised_user_code
from diptych.identity.records import DEVICE_CODES, DeviceCode
from tests.contract.http.data import ANN
from tests.support.running import NewDatabase
from tests.system.oauth.flow import App, Browser, Heard, forms
from tests.system.oauth.stage import HERE, Stage, staged

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Stage]:
    with staged(new_database(), runner) as found:
        yield found


@pytest.fixture
def cli(stage: Stage) -> App:
    """A program without a browser, and without an address."""
    client, _ = stage.run(stage.clients.add(f"Tool {new_user_code()}", device=True))
    stage.forget_attempts()
    stage.service.execute("DELETE FROM diptych_device_codes")
    return App(stage.send, client.id, None, "")


def begin(app: App, **given: Any) -> dict[str, Any]:
    answer = app.proven("/oauth/device_authorization", **given)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), answer.body
    return dict(answer.json())


def poll(app: App, begun: dict[str, Any], **changed: Any) -> Heard:
    return app.proven("/oauth/token", **{"grant_type": GRANT, "device_code": begun["device_code"], **changed})


def error(answer: Heard) -> str:
    assert answer.status == 400
    return str(answer.json()["error"])


def typed(browser: Browser, code: str) -> Heard:
    return browser.submit(browser.get("/oauth/device"), "device", user_code=code)


def decide(browser: Browser, code: str, decision: str = "allow") -> Heard:
    page = typed(browser, code)
    assert page.status == 200, page.body
    return browser.post("/oauth/device", {**forms(page)["device"], "decision": decision})


def codes(stage: Stage) -> list[DeviceCode]:
    return stage.run(DEVICE_CODES.all(stage.service.app.store, "hash"))


def rest(stage: Stage) -> None:
    """The interval has passed."""
    stage.service.execute("UPDATE diptych_device_codes SET polled_at = 0")


def test_a_program_gets_tokens_when_its_user_has_typed_the_code(stage: Stage, cli: App) -> None:
    begun = begin(cli, scope="openid email read")
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", begun["user_code"])
    assert (begun["verification_uri"], begun["expires_in"], begun["interval"]) == (f"{HERE}/oauth/device", 600, 5)
    assert "verification_uri_complete" not in begun, "which would type the code for whoever is led there"
    assert error(poll(cli, begun)) == "authorization_pending"
    page = typed(stage.browser, begun["user_code"].lower().replace("-", " "))
    assert b"Connect Tool" in page.body and b"If someone sent you the code" in page.body
    assert b"see your e-mail address" in page.body
    assert stage.browser.post("/oauth/device", {**forms(page)["device"], "decision": "allow"}).status == 200
    tokens = poll(cli, begun).json()
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope", "refresh_token", "id_token"}
    assert stage.holds(tokens["access_token"])
    told = stage.backend.introspect(tokens["access_token"]).json()
    assert (told["sub"], told["client_id"], told["scope"]) == (ANN, cli.id, "email openid read")
    assert error(poll(cli, begun)) == "invalid_grant", "once"
    assert cli.refresh(tokens["refresh_token"]).status == 200


def test_a_user_denies(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    assert b"Not connected" in decide(stage.browser, begun["user_code"], "deny").body
    assert error(poll(cli, begun)) == "access_denied"
    assert typed(stage.browser, begun["user_code"]).status == 400, "it is decided"


def test_a_program_that_polls_too_fast_has_to_slow_down(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    assert [error(poll(cli, begun)) for _ in range(3)] == ["authorization_pending", "slow_down", "slow_down"]
    assert [code.interval for code in codes(stage)] == [15]
    rest(stage)
    assert error(poll(cli, begun)) == "authorization_pending"


def test_a_code_ends(stage: Stage, cli: App) -> None:
    begun, other = begin(cli), begin(cli)
    decide(stage.browser, other["user_code"])
    stage.service.execute("UPDATE diptych_device_codes SET expires_at = 1000")
    assert typed(stage.browser, begun["user_code"]).status == 400
    assert error(poll(cli, begun)) == error(poll(cli, other)) == "expired_token"


def test_a_code_is_for_its_client_alone(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    thief, _ = stage.run(stage.clients.add(f"Thief {new_user_code()}", device=True))
    decide(stage.browser, begun["user_code"])
    assert error(poll(App(stage.send, thief.id, None, ""), begun)) == "invalid_grant"
    assert error(poll(cli, begun, device_code="nonsense")) == "invalid_grant"
    assert error(poll(cli, begun, device_code=None)) == "invalid_request"
    assert error(stage.app.exchange(begun["device_code"])) == "invalid_grant", "it is no authorization code"
    assert poll(cli, begun).status == 200


def test_clients_have_the_flow_only_if_they_were_added_with_it(stage: Stage, cli: App) -> None:
    for app in (stage.app, stage.backend):
        assert error(app.proven("/oauth/device_authorization")) == "unauthorized_client"
        assert error(poll(app, begin(cli))) == "unauthorized_client"
    answer = stage.browser.authorize(App(stage.send, cli.id, None, "https://evil.example/"))
    assert answer.status == 400, "and such a client has nowhere to be led back to"
    assert error(cli.proven("/oauth/device_authorization", scope="nothing")) == "invalid_scope"
    assert error(cli.proven("/oauth/device_authorization", resource="https://x.example")) == "invalid_target"
    unknown = App(stage.send, "nobody", None, "").proven("/oauth/device_authorization")
    assert (unknown.status, unknown.json()["error"]) == (401, "invalid_client")


def test_a_link_types_no_code(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    page = stage.browser.get(f"/oauth/device?user_code={begun['user_code']}")
    assert page.status == 200 and begun["user_code"].encode() not in page.body
    assert set(forms(page)["device"]) == {"request", "token"}


def test_only_a_user_who_is_signed_in_types_codes(stage: Stage, cli: App) -> None:
    begun, browser = begin(cli), Browser(stage.send)
    page = browser.get("/oauth/device")
    assert set(forms(page)) == {"login"}
    fields = {**forms(page)["login"], "user_code": begun["user_code"]}
    assert "login" in forms(browser.post("/oauth/device", fields))
    account = stage.add_account()
    answer = browser.post("/oauth/login", {**fields, "email": account.email, "password": "correct horse"})
    assert (answer.status, answer.headers["location"]) == (303, "device")
    assert decide(browser, begun["user_code"]).status == 200
    out = browser.submit(browser.get("/oauth/device"), "logout")
    assert (out.status, out.headers["location"]) == (303, "device")
    assert set(forms(browser.get("/oauth/device"))) == {"login"}


def test_forms_of_others_are_refused(stage: Stage, cli: App) -> None:
    """By another site, by another browser, for another code, or for another page."""
    begun, other = begin(cli), begin(cli)
    page = typed(stage.browser, begun["user_code"])
    fields, theirs = forms(page)["device"], forms(typed(stage.browser, other["user_code"]))["device"]
    allow = {**fields, "decision": "allow"}
    stranger = stage.signed_in(stage.add_account())
    assert stranger.post("/oauth/device", allow).status == 403
    assert stage.browser.post("/oauth/device", {**allow, "token": "x"}).status == 403
    assert stage.browser.post("/oauth/device", {**allow, "code": theirs["code"]}).status == 403
    assert stage.browser.post("/oauth/device", {**allow, "seal": "é"}).status == 403
    assert stage.browser.post("/oauth/authorize", allow).status == 400
    assert stage.browser.post("/oauth/device", {**allow, "request": stage.app.asks()}).status == 400
    evil = Browser(stage.send, {"origin": "https://evil.example"}, dict(stage.browser.cookies))
    assert evil.post("/oauth/device", allow).status == 403
    assert error(poll(cli, begun)) == "authorization_pending"


def test_codes_cannot_be_guessed_not_even_by_who_has_valid_ones(stage: Stage, cli: App) -> None:
    browser = stage.signed_in(stage.add_account())
    statuses = []
    for number in range(7):
        statuses.append(typed(browser, new_user_code()).status)
        if number < 4:
            assert typed(browser, begin(cli)["user_code"]).status == 200  # which buys no further guess
    assert statuses[:4] == [400] * 4 and 429 in statuses[4:]
    wait = typed(browser, begin(cli)["user_code"])
    assert wait.status == 429 and int(wait.headers["retry-after"]) >= 1


def test_few_codes_are_valid_at_a_time(stage: Stage, cli: App) -> None:
    for _ in range(50):
        begin(cli)
    answer = cli.proven("/oauth/device_authorization")
    assert (answer.status, answer.json()["error"]) == (429, "slow_down")
    stage.service.execute("UPDATE diptych_device_codes SET expires_at = 1000")
    begin(cli)
    assert len([code for code in codes(stage) if code.expires_at > 1000]) == 1


def test_a_change_of_the_account_ends_what_it_allowed(stage: Stage, cli: App) -> None:
    account, begun, later = stage.add_account(), begin(cli), begin(cli)
    browser = stage.signed_in(account)
    decide(browser, begun["user_code"])
    page = forms(typed(browser, later["user_code"]))["device"]
    stage.run(stage.accounts.set_password(account.email, "another horse"))
    assert error(poll(cli, begun)) == "invalid_grant"
    assert "login" in forms(browser.post("/oauth/device", {**page, "decision": "allow"}))
    assert error(poll(cli, later)) == "authorization_pending"


def test_of_polls_at_once_one_gets_tokens(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    decide(stage.browser, begun["user_code"])
    form = {"client_id": cli.id, "grant_type": GRANT, "device_code": begun["device_code"]}

    async def race() -> list[Any]:
        oauth = stage.service.handler.oauth.oauth
        return await asyncio.gather(*(oauth.token({}, list(form.items()), HERE) for _ in range(6)))

    assert sorted(answer.status for answer in stage.run(race())) == [200] + [400] * 5


def test_a_removed_client_gets_nothing(stage: Stage, cli: App) -> None:
    begun = begin(cli)
    decide(stage.browser, begun["user_code"])
    (name,) = [each.name for each in stage.run(stage.clients.all()) if each.id == cli.id]
    stage.run(stage.clients.remove(name))
    assert poll(cli, begun).status == 401
    assert stage.run(stage.clients.details()).get(cli.id) is None


def test_codes_are_read_as_people_type_them() -> None:
    assert normalised_user_code(" bcdf ghjk\n") == normalised_user_code("BCDF-GHJK") == "BCDFGHJK"
    assert normalised_user_code("Ä1é" * 100) == ""
