"""A new password, verification and change of an address, by links of mails."""

from __future__ import annotations

import asyncio

import pytest

from diptych.identity import email_links
from diptych.identity.records import Account, unix_time
from diptych.identity.verified_emails import email_is_verified
from tests.support.effort import long_where
from tests.support.mailbox import text_of
from tests.support.running import NewDatabase
from tests.system.accounts.club import PASSWORD, Club, clubbed, follow
from tests.system.accounts.club_model import patrons

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

NEW = "another horse"


def account_of(club: Club, email: str) -> Account:
    account = club.run(club.accounts.find(email))
    assert account is not None
    return account


def added(club: Club) -> str:
    """An account of the command line, whose address nobody has proven."""
    email = club.address()
    club.run(club.accounts.add(email, PASSWORD))
    return email


def is_verified(club: Club, email: str) -> bool:
    return club.run(email_is_verified(club.service.app.store, account_of(club, email)))


def test_a_new_password_ends_all_sessions_and_tokens(club: Club) -> None:
    email = club.member()
    browser = club.signed_in(email)
    tokens = club.app.exchange(browser.decide(club.app)["code"]).json()
    thief = club.browser()
    page = thief.submit(thief.get("/oauth/reset"), "reset", email=email)
    assert page.status == 200 and f"If <strong>{email}</strong> has an account".encode() in page.body
    owner = club.browser()
    done = owner.submit(owner.get(club.link(email)), "confirm", password=NEW)
    assert done.status == 200 and b"Your password is changed" in done.body
    assert b"Sign in" in browser.get("/oauth/account").body, "the session has ended"
    assert b"Sign in" in owner.get("/oauth/account").body, "a new password signs nobody in"
    assert club.app.refresh(tokens["refresh_token"]).status == 400
    assert club.service.get("/viewer", token=tokens["access_token"]).status == 401
    assert club.signed_in(email, NEW)
    browser = club.browser()
    assert browser.submit(browser.get("/oauth/account"), "account", email=email, password=PASSWORD).status == 400


def test_the_answer_does_not_tell_who_has_an_account(club: Club) -> None:
    known, unknown, off = club.member(), club.address(), added(club)
    club.run(club.accounts.disable(off))
    answers = [club.json("reset", {"email": email}) for email in (known, unknown, off)]
    assert answers[0] == answers[1] == answers[2] and answers[0].status == 202
    assert len(club.mails(known)) == 2 and club.mails(unknown) == [] and club.mails(off) == []


def test_both_kinds_of_requests_take_the_same_statements(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    known, unknown = club.member(), club.address()
    store = club.service.app.store
    steps: list[list[str]] = []
    write = store.write

    async def counted(script, locks=""):  # type: ignore[no-untyped-def]  # passes on what it gets
        def noted():  # type: ignore[no-untyped-def]  # passes on what it gets
            run, row = script(), None
            try:
                while True:
                    step = run.send(row)
                    steps[-1].append(step.sql)
                    row = yield step
            except StopIteration as done:
                return done.value

        return await write(noted, locks)

    monkeypatch.setattr(store, "write", counted)
    for path in ("reset", "sign-up"):
        for email in (known, unknown):
            steps.append([])
            club.json(path, {"email": email})
    assert steps[0] == steps[1] and steps[2] == steps[3] and steps[0]


def test_a_link_ends_when_the_account_changes(club: Club) -> None:
    email = club.member()
    for _ in range(2):
        club.json("reset", {"email": email})
    mails = club.mails(email)
    first, second = (text_of(mail).partition("token=")[2].split()[0] for mail in mails[-2:])
    assert club.json("confirm", {"token": second, "password": NEW}).status == 200
    assert club.json("confirm", {"token": first, "password": "thief's horse"}).status == 404
    club.forget_limits()
    club.json("reset", {"email": email})
    token = club.token(email)
    club.run(club.accounts.disable(email))
    assert club.json("confirm", {"token": token, "password": NEW}).status == 404
    club.run(club.accounts.enable(email))
    assert club.json("confirm", {"token": token, "password": NEW}).status == 404, "it is not back with the account"
    club.json("reset", {"email": email})
    token = club.token(email)
    club.run(club.accounts.set_password(email, PASSWORD))
    assert club.json("confirm", {"token": token, "password": NEW}).status == 404


def test_a_link_expires_soon(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    email = club.member()
    club.json("reset", {"email": email})
    token = club.token(email)
    monkeypatch.setattr(email_links, "unix_time", lambda: unix_time() + 1_800)
    assert club.json("confirm", {"token": token, "password": NEW}).status == 404


def test_an_address_is_verified_by_a_link(club: Club) -> None:
    email = added(club)
    browser = club.signed_in(email)
    assert not is_verified(club, email) and b"not confirmed" in browser.get("/oauth/account").body
    page = do(club, browser, "verify")
    assert b"A link is on its way" in page.body
    other = club.browser()
    done = other.submit(other.get(club.link(email)), "confirm")
    assert done.status == 200 and is_verified(club, email)
    assert b"not confirmed" not in browser.get("/oauth/account").body
    assert b"Sign in" in other.get("/oauth/account").body, "a link that verifies signs nobody in"


def test_a_new_password_by_mail_verifies_the_address(club: Club) -> None:
    email = added(club)
    club.json("reset", {"email": email})
    assert club.json("confirm", {"token": club.token(email), "password": NEW}).status == 200
    assert is_verified(club, email)


def do(club: Club, browser, what: str, **fields: str):  # type: ignore[no-untyped-def]  # passes on what it gets
    """Send a form of the page of an account."""
    page = browser.get("/oauth/account")
    token = page.body.decode().partition('name="token" value="')[2].partition('"')[0]
    return browser.post("/oauth/account", {"token": token, "do": what, **fields})


def test_an_address_changes_when_the_new_one_is_confirmed(club: Club) -> None:
    old, new = club.member(), club.address()
    browser = club.signed_in(old)
    assert b"The password is not right" in do(club, browser, "change", email=new, password="wrong horse").body
    assert club.mails(new) == []
    page = do(club, browser, "change", email=new, password=PASSWORD)
    assert page.status == 200 and b"on its way to the new address" in page.body
    assert "about to change" in club.mails(old)[-1]["Subject"]
    assert account_of(club, old)
    done = browser.submit(browser.get(club.link(new)), "confirm")
    assert done.status == 200 and b"Your address is changed" in done.body
    assert club.run(club.accounts.find(old)) is None and is_verified(club, new)
    assert b"Sign in" in browser.get("/oauth/account").body
    token = club.service.token(account_of(club, new).user_id)
    assert club.service.data("{ viewer { user { email } } }", token=token) == {"viewer": {"user": {"email": new}}}


def test_the_old_address_can_stop_a_change(club: Club) -> None:
    old, new = club.member(), club.address()
    do(club, club.signed_in(old), "change", email=new, password=PASSWORD)
    change = club.token(new)
    assert club.json("confirm", {"token": club.token(old), "password": NEW}).status == 200
    assert club.json("confirm", {"token": change}).status == 404
    assert account_of(club, old)


def test_an_address_of_another_account_is_not_taken(club: Club) -> None:
    one, other = club.member(), club.member()
    browser = club.signed_in(one)
    page = do(club, browser, "change", email=other, password=PASSWORD)
    free = do(club, browser, "change", email=club.address(), password=PASSWORD)
    assert page.body == free.body, "the page does not tell that there is another account"
    answer = club.json("confirm", {"token": club.token(other)})
    assert (answer.status, answer.code) == (409, "CONFLICT")
    assert account_of(club, one) and account_of(club, other)


def test_who_is_not_signed_in_changes_nothing(club: Club) -> None:
    email = club.member()
    page = do(club, club.browser(), "change", email=club.address(), password=PASSWORD)
    assert b"You were signed out" in page.body or b"Sign in" in page.body
    browser = club.signed_in(email)
    out = do(club, browser, "sign-out")
    assert out.status == 303 and b"Sign in" in follow(browser, out).body
    assert club.signed_in(email).post("/oauth/account", {"do": "verify"}).status == 403


def test_a_session_that_was_there_before_is_not_used(club: Club) -> None:
    """Session fixation: a cookie that someone else chose is replaced."""
    email = club.member()
    browser = club.browser()
    page = browser.get("/oauth/account")
    chosen = dict(browser.cookies)
    assert browser.submit(page, "account", email=email, password=PASSWORD).status == 303
    assert browser.cookies != chosen
    thief = club.browser()
    thief.cookies = chosen
    assert b"Sign in" in thief.get("/oauth/account").body


def test_an_address_that_nobody_writes_by_the_api_is_always_a_proven_one(
    new_sqlite: NewDatabase, runner: asyncio.Runner
) -> None:
    """The declaration of docs/how-to/sign-up.md: sign-up and change write what `WriteBy()` keeps from all others."""
    with clubbed(new_sqlite(), runner, patrons) as club:
        email, victim, new = club.member(), club.address(), club.address()
        account = account_of(club, email)
        url, token = f"/patrons/{account.user_id}", club.service.token(account.user_id)
        assert club.service.send_json("PATCH", url, {"name": "Zed"}, token).status == 200
        assert club.service.send_json("PATCH", url, {"email": victim}, token).status == 403
        assert club.member(victim) == victim
        do(club, club.signed_in(email), "change", email=new, password=PASSWORD)
        assert club.json("confirm", {"token": club.token(new)}).status == 200
        token = club.service.token(account.user_id)
        assert club.service.get(url, token=token).json()["email"] == account_of(club, new).email == new
