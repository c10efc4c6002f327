"""Where people are led: to the client's own address, character by character, or nowhere."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.support.cases import cases
from tests.system.oauth.flow import Browser, Heard, forms
from tests.system.oauth.stage import BACK, Stage


def led_nowhere(answer: Heard) -> None:
    """A page for the person, and nothing that a browser would follow or send."""
    assert answer.status == 400, answer.body
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert not {"location", "refresh", "set-cookie"} & set(answer.headers)
    assert b"<form" not in answer.body and b"<a " not in answer.body and b"http-equiv" not in answer.body


@cases(
    "redirect",
    [
        None,
        "",
        BACK + "/",
        BACK + "/more",
        BACK + "space",
        BACK + "?query=added",
        BACK + "?",
        BACK + "#fragment",
        BACK + "#",
        "https://app.example",
        "https://app.example/",
        "https://app.example/back/../evil",
        "https://app.example/other/../back",
        "https://app.example/./back",
        "https://app.example//back",
        "https://app.example/%62ack",
        "https://app.example%2Fback",
        "https://app.example/Back",
        "https://APP.example/back",
        "HTTPS://app.example/back",
        "http://app.example/back",
        "https://app.example./back",
        "https://app.example:443/back",
        "https://app.example:8443/back",
        "https://evil.app.example/back",
        "https://app.example.evil.example/back",
        "https://evilapp.example/back",
        "https://user@app.example/back",
        "https://app.example@evil.example/back",
        "https://app.example:pass@evil.example/back",
        "https://evil.example/https://app.example/back",
        "https://evil.example?https://app.example/back",
        "https://app.example\\@evil.example/back",
        "https:///app.example/back",
        "https:app.example/back",
        "//app.example/back",
        "/back",
        "back",
        " https://app.example/back",
        "https://app.example/back ",
        "https://app.example/back\n",
        "https://app.example/back\r\nlocation: https://evil.example",
        "https://app.example/back\0",
        "https://app.example/bäck",
        'https://app.example/back"',
        "javascript:alert(1)",
        "data:text/html,x",
        "https://*.example/back",
        "*",
    ],
)
def test_redirect_by_prefix_or_pattern(light: Stage, redirect: str | None) -> None:
    led_nowhere(light.browser.authorize(light.app, redirect_uri=redirect))
    led_nowhere(light.browser.authorize(light.app, redirect_uri=redirect, response_type="token"))
    led_nowhere(light.browser.authorize(light.app, redirect_uri=redirect, code_challenge=None))


@cases(
    "redirect",
    [
        "http://127.0.0.1:52001/other",
        "http://127.0.0.1:52001/back/",
        "http://127.0.0.1:52001/back?query=added",
        "http://127.0.0.1:52001",
        "https://127.0.0.1:52001/back",
        "http://localhost:52001/back",
        "http://[::1]:52001/back",
        "http://127.0.0.2:52001/back",
        "http://127.0.0.1.evil.example:52001/back",
        "http://127.0.0.1:52001@evil.example/back",
        "http://user@127.0.0.1:52001/back",
        "http://127.1:52001/back",
        "http://2130706433:52001/back",
        "http://127.0.0.1:/back",
        "http://127.0.0.1:052001/back",
        "http://127.0.0.1:99999/back",
        "http://127.0.0.1:port/back",
        "http://127.0.0.1:٥٢٠٠١/back",
    ],
)
def test_loopback_with_more_than_another_port(light: Stage, redirect: str) -> None:
    led_nowhere(light.browser.authorize(light.add_app("http://127.0.0.1/back"), redirect_uri=redirect))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_the_port_of_a_loopback_address_is_free(light: Stage, host: str) -> None:
    for registered in (f"http://{host}/back?from=here", f"http://{host}:4000/back?from=here"):
        app = light.add_app(registered)
        for port in ("", ":4000", ":52001"):
            answer = light.browser.authorize(app, redirect_uri=f"http://{host}{port}/back?from=here")
            assert answer.status == 200, (registered, port)


@pytest.mark.parametrize(
    "redirect",
    [
        "org.example.app:/done",
        "org.example.app://done/here",
        "org.example.app:///done",
        "https://app.example/back?tenant=a%20b&flag&tenant=%C3%A9&&raw=%ff",
        "https://app.example",
    ],
)
def test_an_address_is_kept_whole_where_something_is_added(light: Stage, redirect: str) -> None:
    page = light.browser.authorize(app := light.add_app(redirect))
    location = light.browser.submit(page, "authorize", decision="allow").headers["location"]
    assert location.startswith(redirect)
    added = location.removeprefix(redirect)
    assert added[0] == ("&" if "?" in redirect else "?")
    told = parse_qsl(added[1:])
    assert [name for name, _ in told] == ["code", "state", "iss"]
    assert app.exchange(dict(told)["code"]).status == 200
    denied = light.browser.submit(page, "authorize", decision="deny").headers["location"]
    assert denied.startswith(f"{redirect}{added[0]}error=access_denied&")


@cases(
    "changed",
    [
        {"client_id": None},
        {"client_id": "nobody"},
        {"client_id": "x" * 10_000},
        {"client_id": "a\0b"},
        {"client_id": "' OR 1=1 --"},
        {"client_id": ["one", "two"]},
        {"redirect_uri": [BACK, BACK]},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": None},
    ],
    ids=lambda changed: str(changed)[:40],
)
@cases("more", [{}, {"response_type": "token"}, {"scope": "all"}, {"code_challenge": None}], ids=str)
def test_error_redirect_before_the_client_is_proven(
    stage: Stage, changed: dict[str, Any], more: dict[str, Any]
) -> None:
    """Whatever else is wrong, and whether or not someone is signed in."""
    for browser in (stage.browser, Browser(stage.send)):
        led_nowhere(browser.authorize(stage.app, **{**more, **changed}))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
    ],
)
def test_once_they_are_proven_the_client_is_told(stage: Stage, changed: dict[str, Any], error: str) -> None:
    answer = Browser(stage.send).authorize(stage.app, **changed)
    assert answer.status == 303
    place, _, query = answer.headers["location"].partition("?")
    told = dict(parse_qsl(query))
    assert (place, told["error"], told["state"]) == (BACK, error, "a state")
    assert set(told) == {"error", "error_description", "state", "iss"}


def test_open_redirect_through_login(stage: Stage) -> None:
    """What a sign-in form says of its request is held against the client again."""
    browser, account = Browser(stage.send), stage.add_account()
    page = browser.authorize(stage.app)
    for request in (
        stage.app.asks(redirect_uri="https://evil.example/"),
        "https://evil.example/",
        "//evil.example/",
        "",
        stage.app.asks(client_id="nobody"),
        stage.app.asks() + "&redirect_uri=https%3A%2F%2Fevil.example%2F",
    ):
        for form in ("login", "logout", "authorize"):
            fields = {**forms(page)["login"], "request": request, "email": account.email, "password": "correct horse"}
            led_nowhere(browser.post(f"/oauth/{form}", {**fields, "decision": "allow"}))


def test_login_leads_back_to_nothing_but_the_request(stage: Stage) -> None:
    browser, account = Browser(stage.send), stage.add_account()
    page = browser.authorize(stage.app)
    fields = {
        **forms(page)["login"],
        "email": account.email,
        "password": "correct horse",
        "next": "https://evil.example/",
    }
    answer = browser.post("/oauth/login?next=https://evil.example/&redirect_uri=https://evil.example/", fields)
    assert answer.status == 303
    assert answer.headers["location"] == "authorize?" + stage.app.asks()
