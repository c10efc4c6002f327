"""RP-initiated logout: the user is asked, and led on to registered addresses alone."""

from __future__ import annotations

from tests.support.cases import cases
from tests.system.oauth.flow import Browser, encoded, forms
from tests.system.oauth.stage import BACK, Stage


def end(**given: str | None) -> str:
    return f"/oauth/end_session?{encoded(given)}"


def test_a_user_is_asked_signed_out_and_led_on(light: Stage) -> None:
    browser = light.signed_in(light.add_account())
    token = light.tokens(browser=browser, scope="openid")["id_token"]
    page = browser.get(end(id_token_hint=token, post_logout_redirect_uri=BACK, state="a b"))
    assert (page.status, b"Sign out?" in page.body) == (200, True)
    assert "authorize" in forms(browser.authorize(light.app)), "not yet"
    answer = browser.submit(page, "end_session", confirm="yes")
    assert (answer.status, answer.headers["location"]) == (303, f"{BACK}?state=a+b")
    assert "login" in forms(browser.authorize(light.app))


def test_without_an_address_a_page_says_so(light: Stage) -> None:
    browser = light.signed_in(light.add_account())
    answer = browser.submit(browser.get(end()), "end_session", confirm="yes")
    assert (answer.status, b"Signed out" in answer.body) == (200, True)
    assert b"Signed out" in browser.get(end()).body, "who is not signed in is not asked"
    again = browser.get(end(client_id=light.app.id, post_logout_redirect_uri=BACK))
    assert (again.status, again.headers["location"]) == (303, BACK)


@cases(
    "given",
    [
        {"post_logout_redirect_uri": BACK},
        {"post_logout_redirect_uri": BACK, "client_id": "nobody"},
        {"post_logout_redirect_uri": BACK, "client_id": "\0"},
        {"post_logout_redirect_uri": BACK, "id_token_hint": "nonsense"},
        {"post_logout_redirect_uri": f"{BACK}/", "client_id": "APP"},
        {"post_logout_redirect_uri": "https://evil.example/", "client_id": "APP"},
        {"post_logout_redirect_uri": "javascript:alert(1)", "client_id": "APP"},
        {"post_logout_redirect_uri": BACK, "client_id": "BACKEND", "id_token_hint": "OF APP"},
    ],
)
def test_nobody_is_led_anywhere_else(light: Stage, given: dict[str, str]) -> None:
    token = light.tokens(scope="openid")["id_token"]
    words = {"APP": light.app.id, "BACKEND": light.backend.id, "OF APP": token}
    sent = {name: words.get(value, value) for name, value in given.items()}
    for browser in (light.browser, Browser(light.send)):
        answer = browser.get(end(**sent))
        assert (answer.status, "location" in answer.headers) == (400, False)
    fields = {**forms(light.browser.get(end()))["end_session"], "confirm": "yes", "request": encoded(sent)}
    assert light.browser.post("/oauth/end_session", fields).status == 400


def test_no_other_site_signs_a_user_out(light: Stage) -> None:
    browser = light.signed_in(light.add_account())
    fields = {**forms(browser.get(end()))["end_session"], "confirm": "yes"}
    evil = Browser(light.send, {"origin": "https://evil.example"}, dict(browser.cookies))
    assert evil.post("/oauth/end_session", fields).status == 403
    assert browser.post("/oauth/end_session", {**fields, "token": "x"}).status == 403
    asked = evil.post("/oauth/end_session", {"client_id": light.app.id})
    assert (asked.status, asked.headers["location"]) == (303, f"end_session?client_id={light.app.id}")
    assert "authorize" in forms(browser.authorize(light.app)), "still signed in"
