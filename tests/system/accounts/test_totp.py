"""The authenticator app: set up with a password, asked for before anything else, used once, and lost."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any

import pytest

from diptych.identity import second_factor, totp
from diptych.identity.records import RECOVERY_CODES, SECOND_STEPS, TOTP_KEYS, unix_time
from diptych.identity.second_factor import SecondFactor
from diptych.identity.signed import parse_token
from tests.support.effort import long_where
from tests.system.accounts.club import PASSWORD, Club, follow
from tests.system.accounts.test_addresses import account_of, do
from tests.system.oauth.flow import Browser, Heard, forms

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

VECTORS = {
    59: "94287082",
    1111111109: "07081804",
    1111111111: "14050471",
    1234567890: "89005924",
    2000000000: "69279037",
}


class Clock:
    """The time of codes, which a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.later = 0
        monkeypatch.setattr(second_factor, "unix_time", lambda: unix_time() + self.later)

    def code(self, key: bytes, periods: int = 0) -> str:
        return totp.code_at(key, (unix_time() + self.later) // totp.PERIOD + periods)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def set_up(club: Club, clock: Clock, email: str) -> tuple[bytes, list[str]]:
    """The key of the app of an account, and its recovery codes."""
    browser = club.signed_in(email)
    page = do(club, browser, "totp")
    assert page.status == 200 and b"<svg" in page.body and b"otpauth://totp/The%20Club" in page.body
    text = re.search(r'<code class="key">([A-Z2-7 ]+)</code>', page.body.decode())
    assert text is not None
    key = base64.b32decode(text[1].replace(" ", ""))
    done = do(club, browser, "totp-confirm", code=clock.code(key), password=PASSWORD)
    assert done.status == 200, done.body
    clock.later += totp.PERIOD
    return key, re.findall(r"<li><code>([a-z2-7-]{19})</code>", done.body.decode())


def at_second_step(club: Club, email: str) -> tuple[Browser, Heard]:
    """A browser that has given the password."""
    browser = club.browser()
    answer = browser.submit(browser.get("/oauth/account"), "account", email=email, password=PASSWORD)
    assert answer.status == 303 and answer.headers["location"] == "second-step"
    return browser, follow(browser, answer)


def is_in(browser: Browser) -> bool:
    return b"Signed in as" in browser.get("/oauth/account").body


def test_codes_are_those_of_the_rfc() -> None:
    for moment, code in VECTORS.items():
        assert totp.code_at(b"12345678901234567890", moment // 30) == code[-6:]
    key = b"12345678901234567890"
    assert totp.matching_step(key, "287082", 59, 0) == 1 and totp.matching_step(key, "287082", 59, 1) is None
    assert totp.matching_step(key, "287082", 89, 0) == 1 and totp.matching_step(key, "287082", 121, 0) is None
    assert totp.matching_step(key, "28708２", 59, 0) is None
    assert totp.otpauth(key, "a&b@x.org", "A: B").startswith("otpauth://totp/A%20%20B%3Aa%26b%40x.org?secret=")


def test_signing_in_takes_a_code_before_the_consent(club: Club, clock: Clock) -> None:
    email = club.member()
    key, _ = set_up(club, clock, email)
    browser = club.browser()
    answer = browser.submit(browser.authorize(club.app), "login", email=email, password=PASSWORD)
    assert answer.headers["location"] == "second-step"
    page = follow(browser, answer)
    assert list(forms(page)) == ["second-step"] and not is_in(browser)
    assert list(forms(browser.authorize(club.app))) == ["login"], "half a sign-in is none"
    wrong = browser.submit(page, "second-step", code="000000")
    assert wrong.status == 400 and b"The code is not right" in wrong.body
    before = dict(browser.cookies)
    done = browser.submit(page, "second-step", code=clock.code(key))
    assert done.status == 303 and browser.cookies != before
    assert list(forms(follow(browser, done))) == ["authorize", "logout"]
    signed_in = club.run(club.service.handler.oauth.signing_in.sessions.find(browser.cookies["__Secure-diptych"]))
    assert signed_in is not None and signed_in.methods == ("pwd", "otp")
    tokens = club.app.exchange(browser.decide(club.app, scope="openid email")["code"]).json()
    claims = parse_token(tokens["id_token"]).claims
    assert claims["amr"] == ["pwd", "otp", "mfa"] and claims["email_verified"] is True
    plain = club.signed_in(club.member())
    tokens = club.app.exchange(plain.decide(club.app, scope="openid")["code"]).json()
    assert parse_token(tokens["id_token"]).claims["amr"] == ["pwd"]


def test_a_code_is_used_once(club: Club, clock: Clock) -> None:
    email = club.member()
    key, _ = set_up(club, clock, email)
    code = clock.code(key)
    one, first = at_second_step(club, email)
    two, second = at_second_step(club, email)
    half = dict(one.cookies)
    assert one.submit(first, "second-step", code=code).status == 303 and is_in(one)
    assert two.submit(second, "second-step", code=code).status == 400 and not is_in(two)
    assert two.submit(second, "second-step", code=clock.code(key, -1)).status == 400, "an earlier one is used up, too"
    one.cookies = half
    assert one.submit(first, "second-step", code=clock.code(key, 1)).status == 400, "a step is taken once"


def test_of_two_uses_at_once_one_succeeds(club: Club, clock: Clock) -> None:
    email = club.member()
    key, codes = set_up(club, clock, email)
    factor, account = club.service.handler.oauth.signing_in.second_factor, account_of(club, email)

    async def race(code: str) -> list[Any]:
        return list(await asyncio.gather(*(factor.check(account, code) for _ in range(4))))

    assert sorted(map(str, club.run(race(clock.code(key))))) == ["False", "False", "False", "True"]
    club.forget_limits()
    assert sorted(map(str, club.run(race(codes[0])))) == ["False", "False", "False", "True"]


def test_a_recovery_code_stands_in_once(club: Club, clock: Clock) -> None:
    email = club.member()
    _, codes = set_up(club, clock, email)
    assert len(set(codes)) == 10
    stored = repr(club.run(RECOVERY_CODES.all(club.service.app.store, "hash")))
    assert not any(code in stored for code in codes)
    browser, page = at_second_step(club, email)
    assert browser.submit(page, "second-step", code=codes[0].upper().replace("-", " ")).status == 303 and is_in(browser)
    browser, page = at_second_step(club, email)
    assert browser.submit(page, "second-step", code=codes[0]).status == 400
    other = club.member()
    _, theirs = set_up(club, clock, other)
    assert browser.submit(page, "second-step", code=theirs[0]).status == 400


def test_wrong_codes_are_limited(club: Club, clock: Clock) -> None:
    email = club.member()
    key, codes = set_up(club, clock, email)
    browser, page = at_second_step(club, email)
    statuses = [browser.submit(page, "second-step", code="000000").status for _ in range(6)]
    assert statuses == [400] * 5 + [429]
    late = browser.submit(page, "second-step", code=clock.code(key))
    assert late.status == 429 and 0 < int(late.headers["retry-after"]) <= 86_400
    assert browser.submit(page, "second-step", code=codes[0]).status == 429


def test_a_key_is_encrypted_and_bound_to_its_account(club: Club, clock: Clock) -> None:
    one, other = club.member(), club.member()
    key, _ = set_up(club, clock, one)
    store = club.service.app.store
    (record,) = club.run(TOTP_KEYS.all(store, "account_id"))
    assert totp.as_text(key) not in record.secret
    first, second = account_of(club, one), account_of(club, other)
    club.service.execute(f"UPDATE diptych_totp_keys SET account_id = '{second.id}' WHERE account_id = '{first.id}'")
    factor = SecondFactor(store, club.service.handler.engine.secret)
    assert club.run(factor.check(second, clock.code(key))) is False


def test_setting_it_up_takes_the_password_and_a_right_code(club: Club, clock: Clock) -> None:
    email = club.member()
    browser = club.signed_in(email)
    page = do(club, browser, "totp")
    again = do(club, browser, "totp")
    text = re.search(r'<code class="key">([A-Z2-7 ]+)</code>', page.body.decode())
    assert text is not None and text[0].encode() in again.body, "the key stays until it is confirmed"
    assert do(club, browser, "totp-confirm", code="000000", password=PASSWORD).status == 400
    assert do(club, browser, "totp-confirm", code="000000", password="wrong horse").status == 400
    assert club.signed_in(email), "it is not on yet"


def test_one_session_does_not_see_the_key_that_another_turns_on(club: Club, clock: Clock) -> None:
    email = club.member()
    thief, keys = club.signed_in(email), set()
    for browser in (thief, club.signed_in(email), thief):
        found = re.search(r'<code class="key">([A-Z2-7 ]+)</code>', do(club, browser, "totp").body.decode())
        assert found is not None
        keys.add(found[1])
    assert len(keys) == 3
    key, _ = set_up(club, clock, email)
    assert totp.as_text(key) not in {text.replace(" ", "") for text in keys}
    browser, page = at_second_step(club, email)
    assert browser.submit(page, "second-step", code=clock.code(key)).status == 303


def test_turning_it_off_takes_the_password_and_a_code(club: Club, clock: Clock) -> None:
    email = club.member()
    key, _ = set_up(club, clock, email)
    browser, page = at_second_step(club, email)
    browser.submit(page, "second-step", code=clock.code(key))
    clock.later += totp.PERIOD
    assert b"The password is not right" in do(club, browser, "totp-off", code=clock.code(key), password="x").body
    assert b"The code is not right" in do(club, browser, "totp-off", code="000000", password=PASSWORD).body
    assert b"set up already" in do(club, browser, "totp").body
    assert b"your password alone" in do(club, browser, "totp-off", code=clock.code(key), password=PASSWORD).body
    assert club.signed_in(email)
    assert club.run(RECOVERY_CODES.all(club.service.app.store, "hash")) == []


def test_a_new_password_by_mail_leaves_it_on(club: Club, clock: Clock) -> None:
    email = club.member()
    set_up(club, clock, email)
    club.json("reset", {"email": email})
    assert club.json("confirm", {"token": club.token(email), "password": PASSWORD}).status == 200
    at_second_step(club, email)


def test_the_owner_of_the_service_resets_it(club: Club, clock: Clock) -> None:
    email = club.member()
    set_up(club, clock, email)
    at_second_step(club, email)
    account, was_on = club.run(club.accounts.reset_totp(email))
    assert account.email == email and was_on
    assert club.run(club.accounts.reset_totp(email))[1] is False
    assert club.signed_in(email)
    club.run(club.accounts.remove(email))
    assert club.run(TOTP_KEYS.all(club.service.app.store, "account_id")) == []


def test_half_a_sign_in_expires_and_ends_with_a_change(club: Club, clock: Clock) -> None:
    email = club.member()
    key, _ = set_up(club, clock, email)
    browser, page = at_second_step(club, email)
    club.run(club.accounts.set_password(email, PASSWORD))
    assert browser.submit(page, "second-step", code=clock.code(key)).status == 400 and not is_in(browser)
    browser, page = at_second_step(club, email)
    club.run(club.accounts.disable(email))
    club.run(club.accounts.enable(email))
    assert browser.submit(page, "second-step", code=clock.code(key)).status == 400 and not is_in(browser)
    browser, page = at_second_step(club, email)
    club.service.execute("UPDATE diptych_second_steps SET expires_at = 1")
    assert browser.submit(page, "second-step", code=clock.code(key)).status == 400 and not is_in(browser)
    at_second_step(club, email)
    assert len(club.run(SECOND_STEPS.all(club.service.app.store, "hash"))) == 1, "expired ones are removed"
    assert club.browser().get("/oauth/second-step").status == 400
