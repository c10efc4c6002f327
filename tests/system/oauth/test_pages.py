"""The pages of people: nobody else can send their forms, frame them, or learn from them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from diptych.identity import login_sessions as browsers
from diptych.identity.records import ACCOUNTS, LOGIN_SESSIONS, hashed, unix_time
from tests.support.cases import cases
from tests.system.oauth.flow import FORM, PASSWORD, WRONG, Browser, Heard, encoded, forms
from tests.system.oauth.stage import HERE, Stage, staged

COOKIE = "__Secure-diptych"


def is_sign_in(page: Heard) -> bool:
    return list(forms(page)) == ["login"]


def is_consent(page: Heard) -> bool:
    return list(forms(page)) == ["authorize", "logout"]


def test_someone_signs_in_and_decides(stage: Stage) -> None:
    browser, account = Browser(stage.send), stage.add_account()
    assert is_sign_in(browser.authorize(stage.app))
    assert is_consent(browser.sign_in(stage.app, account.email.upper()))
    assert is_consent(browser.authorize(stage.app)), "who is signed in is not asked again"
    assert "code" in browser.decide(stage.app)


def test_whoever_leaves_signs_in_anew(stage: Stage) -> None:
    browser = stage.signed_in(stage.add_account())
    old = dict(browser.cookies)
    answer = browser.submit(browser.authorize(stage.app), "logout")
    assert answer.status == 303
    assert is_sign_in(browser.get("/oauth/" + answer.headers["location"]))
    browser.cookies = old
    assert is_sign_in(browser.authorize(stage.app)), "the cookie holds no longer, wherever it is"


def test_a_browser_is_signed_out_after_a_while(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = stage.signed_in(stage.add_account())
    monkeypatch.setattr(browsers, "unix_time", lambda: unix_time() + browsers.SESSION_LIFETIME)
    assert is_sign_in(browser.authorize(stage.app))


@pytest.mark.parametrize("change", ["disable", "remove", "set_roles", "set_password"])
def test_a_browser_is_signed_out_when_the_account_changes(stage: Stage, change: str) -> None:
    account = stage.add_account()
    browser = stage.signed_in(account)
    page = browser.authorize(stage.app)
    more = {"set_roles": (("staff",),), "set_password": ("another horse",)}.get(change, ())
    stage.run(getattr(stage.accounts, change)(account.email, *more))
    answer = browser.submit(page, "authorize", decision="allow")
    assert "location" not in answer.headers
    assert is_sign_in(answer) and is_sign_in(browser.authorize(stage.app))


@pytest.mark.parametrize("decision", ["deny", "", None, "Allow", "allow "])
def test_nothing_but_allow_allows(stage: Stage, decision: str | None) -> None:
    answer = stage.browser.submit(stage.browser.authorize(stage.app), "authorize", decision=decision)
    assert "error=access_denied" in answer.headers["location"]
    assert "code=" not in answer.headers["location"]


def test_a_password_that_changes_while_someone_signs_in_signs_nobody_in(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, browser, authenticate = stage.add_account(), Browser(stage.send), stage.accounts.authenticate

    async def proven(*given: str) -> Any:
        found = await authenticate(*given)
        await stage.accounts.set_password(account.email, "another horse")
        return found

    monkeypatch.setattr(stage.accounts, "authenticate", proven)
    assert is_sign_in(browser.sign_in(stage.app, account.email))
    assert is_sign_in(browser.authorize(stage.app))


@pytest.mark.parametrize("change", ["set_password", "set_roles", "disable", "remove"])
def test_an_account_that_changes_while_someone_allows_gives_no_code(
    stage: Stage, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever has a stolen cookie could allow again and again until the moment when its owner ends it."""
    account, oauth = stage.add_account(), stage.service.handler.oauth.oauth
    browser, decide = stage.signed_in(account), oauth.decide

    async def changed(*given: Any) -> Any:
        more = {"set_roles": (("staff",),), "set_password": ("another horse",)}.get(change, ())
        await getattr(stage.accounts, change)(account.email, *more)
        return await decide(*given)

    monkeypatch.setattr(oauth, "decide", changed)
    back = browser.decide(stage.app)
    assert (back["error"], "code" in back) == ("access_denied", False)


# session fixation


def test_session_fixation_at_login(stage: Stage) -> None:
    """A cookie that was there before is not the cookie of whoever signs in."""
    browser = Browser(stage.send)
    browser.authorize(stage.app)
    planted = dict(browser.cookies)
    assert is_consent(browser.sign_in(stage.app, stage.add_account().email))
    assert browser.cookies[COOKIE] != planted[COOKIE]
    assert is_sign_in(Browser(stage.send, cookies=planted).authorize(stage.app))


def test_session_fixation_by_a_cookie_of_someone_else_who_is_signed_in(stage: Stage) -> None:
    attacker = stage.signed_in(stage.add_account())
    victim, planted = Browser(stage.send, cookies=dict(attacker.cookies)), dict(attacker.cookies)
    page = victim.authorize(stage.app)
    victim.submit(page, "logout")
    assert is_consent(victim.sign_in(stage.app, stage.add_account().email))
    assert is_sign_in(Browser(stage.send, cookies=planted).authorize(stage.app))
    assert victim.cookies != planted


def test_a_cookie_of_ones_own_making_opens_nothing(stage: Stage) -> None:
    for value in ("x", "0" * 43, "' OR 1=1 --", "x" * 1000):
        assert is_sign_in(Browser(stage.send, cookies={COOKIE: value}).authorize(stage.app))


def test_the_cookie_is_for_these_pages_alone(stage: Stage) -> None:
    browser = Browser(stage.send)
    page = browser.authorize(stage.app)
    given = [page, browser.submit(page, "login", email=stage.add_account().email, password=PASSWORD)]
    for answer in given:
        kept = answer.headers["set-cookie"].split("; ")[1:]
        assert {"Path=/oauth", "HttpOnly", "SameSite=Lax", "Secure"} < set(kept)
        assert not any(each.startswith("Domain") for each in kept)
    asked = stage.send("GET", "/orders", {"cookie": f"{COOKIE}={browser.cookies[COOKIE]}"})
    assert asked.status == 401, "it is no token"


def test_the_path_of_the_cookie_is_written_as_browsers_send_it(runner: asyncio.Runner) -> None:
    """They compare it with the path of a request, which is encoded, byte for byte (RFC 6265, §5.1.4)."""
    with staged("sqlite:///:memory:", runner, base_url=f"{HERE}/größe 1") as stage:
        kept = Browser(stage.send).authorize(stage.app).headers["set-cookie"].split("; ")
    assert "Path=/gr%C3%B6%C3%9Fe%201/oauth" in kept


def test_a_cookie_is_kept_as_a_hash(stage: Stage) -> None:
    browser = stage.signed_in(stage.add_account())
    kept = stage.run(LOGIN_SESSIONS.all(stage.service.app.store, "hash"))
    assert hashed(browser.cookies[COOKIE]) in [each.hash for each in kept]
    assert browser.cookies[COOKIE] not in repr(kept)


# CSRF


FOREIGN: dict[str, dict[str, Any]] = {
    "no cookie": {"cookies": {}},
    "a foreign cookie": {"cookies": {COOKIE: "of someone else"}},
    "the cookie twice": {"headers": {"cookie": f"{COOKIE}=one; {COOKIE}=two"}},
    "no token": {"token": None},
    "an empty token": {"token": ""},
    "a token of one's own making": {"token": "0" * 64},
    "a token in other letters": {"token": "ü" * 64},
    "a foreign origin": {"headers": {"origin": "https://evil.example"}},
    "an origin of another scheme": {"headers": {"origin": HERE.replace("https", "http")}},
    "an origin of a subdomain": {"headers": {"origin": "https://evil.api.example.org"}},
    "an origin that is hidden": {"headers": {"origin": "null"}},
    "a foreign site": {"headers": {"sec-fetch-site": "cross-site"}},
    "a site beside ours": {"headers": {"sec-fetch-site": "same-site"}},
    "a request of the user agent": {"headers": {"sec-fetch-site": "none"}},
}


@cases("name", FOREIGN)
@cases("form", ["login", "authorize", "logout"])
def test_csrf(light: Stage, form: str, name: str) -> None:
    account = light.add_account()
    browser = Browser(light.send) if form == "login" else light.signed_in(account)
    fields = {**forms(browser.authorize(light.app))[form], "email": account.email, "password": PASSWORD}
    fields |= {"decision": "allow"}
    kept, forged = dict(browser.cookies), FOREIGN[name]
    forger = Browser(light.send, forged.get("headers", {}), dict(forged.get("cookies", kept)))
    answer = forger.post(f"/oauth/{form}", {**fields, "token": forged.get("token", fields["token"])})
    assert answer.status == 403, answer.body
    assert "location" not in answer.headers and "set-cookie" not in answer.headers
    assert browser.post(f"/oauth/{form}", fields).status == 303, "and it did nothing: the form can still be sent"


def test_csrf_by_the_token_of_another_browser(light: Stage) -> None:
    other = Browser(light.send)
    token = forms(other.authorize(light.app))["login"]["token"]
    page = light.browser.authorize(light.app)
    assert light.browser.submit(page, "authorize", decision="allow", token=token).status == 403


def test_csrf_by_a_form_of_before_the_login(light: Stage) -> None:
    browser = Browser(light.send)
    old = forms(browser.authorize(light.app))["login"]
    browser.sign_in(light.app, light.add_account().email)
    assert browser.post("/oauth/authorize", {**old, "decision": "allow"}).status == 403


def test_csrf_by_get(light: Stage) -> None:
    fields = encoded({**forms(light.browser.authorize(light.app))["authorize"], "decision": "allow"})
    for form in ("login", "logout"):
        assert light.browser.get(f"/oauth/{form}?{fields}").status == 405
    assert "location" not in light.browser.get(f"/oauth/authorize?{light.app.asks()}&decision=allow").headers


def test_a_browser_that_says_that_it_is_here_is_believed(light: Stage) -> None:
    browser = Browser(light.send, {"origin": HERE, "sec-fetch-site": "same-origin"})
    assert is_consent(browser.sign_in(light.app, light.add_account().email))
    assert "code" in browser.decide(light.app)


# what a page tells


def test_clickjacking(light: Stage) -> None:
    browser = Browser(light.send)
    pages = [
        browser.authorize(light.app),
        browser.sign_in(light.app, "nobody@example.org", WRONG),
        light.browser.authorize(light.app),
        light.browser.authorize(light.app, client_id="nobody"),
        light.browser.post("/oauth/authorize", {}),
    ]
    assert [page.status for page in pages] == [200, 400, 200, 400, 403]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy and "base-uri 'none'" in policy
        assert "script-src" not in policy and "unsafe" not in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] in ("same-origin", "no-referrer")


def test_no_address_leaks_where_people_are_led(light: Stage) -> None:
    page = light.browser.authorize(light.app)
    answer = light.browser.submit(page, "authorize", decision="allow")
    assert (answer.headers["referrer-policy"], answer.headers["cache-control"]) == ("no-referrer", "no-store")
    assert answer.body == b""


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'><b>", "&lt;"])
def test_what_others_wrote_is_escaped(light: Stage, text: str) -> None:
    client, _ = light.run(light.clients.add(f"Name {text}", ["https://app.example/back"]))
    browser = Browser(light.send)
    page = browser.get("/oauth/authorize?" + light.app.asks(client_id=client.id, state=text))
    again = browser.submit(page, "login", email=f"{text}@example.org", password=text)
    for found in (page, again, browser.get(f"/oauth/authorize?client_id={text}")):
        assert text.encode() not in found.body
    assert forms(again)["login"]["request"] == light.app.asks(client_id=client.id, state=text)


def test_user_enumeration(stage: Stage) -> None:
    """An account that is not there, one without a password, one that is disabled, and a wrong password: the same bytes."""
    stage.forget_attempts()
    known, none, disabled = stage.add_account(), stage.add_account(), stage.add_account()
    store = stage.service.app.store
    stage.run(store.write(lambda: ACCOUNTS.change(store.dialect, {"id": none.id}, password=None)))
    stage.run(stage.accounts.disable(disabled.email))
    browser = Browser(stage.send)
    page = browser.authorize(stage.app)
    told = set()
    for email, password in (
        (known.email, WRONG),
        (none.email, PASSWORD),
        (disabled.email, PASSWORD),
        ("nobody@example.org", PASSWORD),
        ("no address", PASSWORD),
        (known.email, ""),
        (known.email, "x" * 5000),
        ("nobody@example.org", "x" * 5000),
    ):
        answer = browser.submit(page, "login", email=email, password=password)
        told.add((answer.status, answer.body.replace(email.encode(), b"E-MAIL"), tuple(answer.headers.items())))
    assert len(told) == 1
    assert next(iter(told))[0] == 400


def test_user_enumeration_by_waiting(stage: Stage) -> None:
    """Whoever fails too often waits, whether or not there is such an account."""
    stage.forget_attempts()
    told = set()
    for email in (stage.add_account().email, "nobody-else@example.org"):
        browser = Browser(stage.send)
        page = browser.authorize(stage.app)
        answers = [browser.submit(page, "login", email=email, password=WRONG) for _ in range(6)]
        told.add(tuple(answer.status for answer in answers))
        assert int(answers[-1].headers["retry-after"]) > 0
        late = browser.submit(page, "login", email=email, password=PASSWORD)
        assert late.status == 429, "not even the right password is looked at"
    assert told == {(400, 400, 400, 400, 400, 429)}


def test_a_password_is_never_in_a_url_or_a_log(light: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Nor is anything else that opens something, at whatever level a log is kept."""
    caplog.set_level(logging.DEBUG)
    account, browser = light.add_account(), Browser(light.send)
    page = browser.authorize(light.app)
    wrong = browser.submit(page, "login", email=account.email, password=WRONG)
    right = browser.submit(page, "login", email=account.email, password=PASSWORD)
    code = browser.decide(light.backend)["code"]
    found = light.backend.exchange(code).json()
    again = light.backend.refresh(found["refresh_token"]).json()
    light.backend.introspect(again["access_token"])
    light.backend.revoke(again["refresh_token"])
    light.backend.proven("/oauth/token", grant_type="client_credentials")
    secrets = [PASSWORD, WRONG, code, light.backend.secret, *browser.cookies.values()]
    secrets += [token[kind] for token in (found, again) for kind in ("access_token", "refresh_token")]
    for text in secrets:
        assert text is not None
        assert text not in caplog.text
        assert text not in right.headers["location"]
    for text in (PASSWORD, WRONG):
        assert text.encode() not in wrong.body
    assert all('method="post"' in found.body.decode() for found in (page, wrong))


def test_a_password_in_the_url_is_not_looked_at(light: Stage) -> None:
    browser, account = Browser(light.send), light.add_account()
    fields = forms(browser.authorize(light.app))["login"]
    query = encoded({"email": account.email, "password": PASSWORD})
    assert browser.post(f"/oauth/login?{query}", fields).status == 400
    assert is_sign_in(browser.authorize(light.app))


# forms


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_a_form_of_another_type_is_refused(light: Stage, kind: str) -> None:
    fields = forms(light.browser.authorize(light.app))["authorize"]
    assert light.browser.post("/oauth/authorize", {**fields, "decision": "allow"}, kind).status == 400
    assert light.browser.post("/oauth/authorize", {**fields, "decision": "allow"}, FORM.upper()).status == 303


def test_a_parameter_that_stands_twice_is_refused(light: Stage) -> None:
    fields = forms(light.browser.authorize(light.app))["authorize"]
    answer = light.browser.post("/oauth/authorize", {**fields, "decision": ["deny", "allow"]})
    assert (answer.status, "location" in answer.headers) == (400, False)
    assert light.browser.authorize(light.app, state=["one", "two"]).status == 400


def test_a_huge_form_is_refused(light: Stage) -> None:
    fields = forms(light.browser.authorize(light.app))["authorize"]
    assert light.browser.post("/oauth/authorize", {**fields, "decision": "allow" * 20_000}).status == 400


def test_a_browser_that_is_known_signs_in_while_others_fail(stage: Stage) -> None:
    account = stage.add_account()
    browser = stage.signed_in(account)
    stage.forget_attempts()
    for _ in range(6):
        stranger = Browser(stage.send)
        stranger.sign_in(stage.app, account.email, "wrong horse")
    assert stranger.sign_in(stage.app, account.email).status == 429
    browser.submit(browser.authorize(stage.app), "logout")
    assert browser.sign_in(stage.app, account.email).status == 200
    stage.forget_attempts()
