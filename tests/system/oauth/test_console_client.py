"""The console signs in by the service's own OAuth: a built-in client, for its own page, and for nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl

import pytest

from diptych.demo.model import model
from diptych.identity.oauth.console_client import CONSOLE_CLIENT
from tests.contract.http import data
from tests.support.in_process import in_process
from tests.system.oauth.flow import App
from tests.system.oauth.stage import HERE, Stage


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with (
        asyncio.Runner() as runner,
        in_process(model, "sqlite:///:memory:", runner, data.ROWS, base_url=HERE, console=True) as service,
    ):
        yield Stage(service)


@pytest.fixture
def app(stage: Stage) -> App:
    return App(stage.send, CONSOLE_CLIENT, None, f"{HERE}/console/")


def code_of(location: str) -> dict[str, str]:
    place, _, query = location.partition("?")
    assert place == f"{HERE}/console/"
    return dict(parse_qsl(query))


def test_who_is_signed_in_gets_a_code_without_a_page(stage: Stage, app: App) -> None:
    browser = stage.signed_in(stage.add_account("admin"))
    for prompt in (None, "none"):
        answer = browser.authorize(app, prompt=prompt, scope="read write")
        found = code_of(answer.headers["location"])
        assert found["state"] == "a state" and found["iss"] == HERE
        tokens = app.exchange(found["code"]).json()
        assert "id_token" not in tokens
        model_ = stage.service.get("/console/api/model", token=tokens["access_token"]).json()
        assert (model_["admin"], model_["viewer"]["id"]) == (True, data.ANN)
        assert stage.service.get("/console/api/admin/accounts", token=tokens["access_token"]).status == 200
    assert app.exchange(found["code"]).status == 400, "a code works once"


def test_it_is_led_back_to_an_address_that_is_not_in_ascii() -> None:
    with (
        asyncio.Runner() as runner,
        in_process(
            model, "sqlite:///:memory:", runner, base_url="https://Bücher.example/größe", console=True
        ) as service,
    ):
        there, stage = service.get("/console/api/boot").json()["signIn"]["redirect"], Stage(service)
        answer = stage.signed_in(stage.add_account()).authorize(App(stage.send, CONSOLE_CLIENT, None, there))
    assert there == "https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe/console/"
    assert answer.headers["location"].startswith(f"{there}?code=")


def test_who_is_not_is_asked_to_sign_in(stage: Stage, app: App) -> None:
    stranger = stage.signed_in(stage.add_account())
    stranger.cookies.clear()
    assert code_of(stranger.authorize(app, prompt="none").headers["location"])["error"] == "login_required"
    assert b'action="login"' in stranger.authorize(app).body


def test_a_refreshed_token_is_no_recent_sign_in(stage: Stage, app: App) -> None:
    browser = stage.signed_in(stage.add_account("admin"))
    tokens = app.exchange(code_of(browser.authorize(app).headers["location"])["code"]).json()
    later = app.refresh(tokens["refresh_token"]).json()["access_token"]
    assert stage.service.get("/console/api/rules", token=later).status == 200
    answer = stage.service.get("/console/api/admin/accounts", token=later)
    assert (answer.status, answer.json()["reauthenticate"]) == (401, True)


def test_an_old_session_signs_in_again_for_the_admin_pages(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = stage.signed_in(stage.add_account("admin"))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 400)
    tokens = app.exchange(code_of(browser.authorize(app).headers["location"])["code"]).json()
    assert stage.service.get("/console/api/admin/accounts", token=tokens["access_token"]).status == 401
    assert b'action="login"' in browser.authorize(app, max_age="300").body


def test_nobody_else_is_it(stage: Stage, app: App) -> None:
    browser = stage.signed_in(stage.add_account("admin"))
    for redirect in (
        "https://evil.example/console/",
        f"{HERE}/console",
        f"{HERE}/console/x",
        f"{HERE}/console/?x=1",
        "http://127.0.0.1:9999/console/",
        HERE.replace("https", "http") + "/console/",
    ):
        answer = browser.authorize(app, redirect_uri=redirect)
        assert answer.status == 400 and "location" not in answer.headers
    assert browser.authorize(app, code_challenge=None, code_challenge_method=None).headers["location"].count("error=")
    form = {"grant_type": "client_credentials", "client_id": CONSOLE_CLIENT}
    assert app.form("/oauth/token", form).status in (400, 401)


def test_without_a_console_there_is_no_such_client() -> None:
    with (
        asyncio.Runner() as runner,
        in_process(model, "sqlite:///:memory:", runner, data.ROWS, base_url=HERE) as service,
    ):
        stage = Stage(service)
        answer = stage.browser.authorize(App(stage.send, CONSOLE_CLIENT, None, f"{HERE}/console/"))
        assert answer.status == 400 and "location" not in answer.headers


def test_on_a_loopback_address_the_port_is_its_own() -> None:
    with (
        asyncio.Runner() as runner,
        in_process(model, "sqlite:///:memory:", runner, data.ROWS, console=True) as service,
    ):

        def send(port: str, redirect: str) -> int:
            app = App(lambda *sent: None, CONSOLE_CLIENT, None, redirect)  # type: ignore[arg-type]  # nothing is sent by it
            return service.get(f"/oauth/authorize?{app.asks()}", headers={"host": f"127.0.0.1:{port}"}).status

        assert send("8000", "http://127.0.0.1:8000/console/") == 200
        assert send("8000", "http://127.0.0.1:9999/console/") == 400
