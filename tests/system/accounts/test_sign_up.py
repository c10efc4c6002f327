"""People sign up by mail: the link makes the account and its row, once, and nobody learns who has one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from diptych import Model, ModelError, Resource, Role, SignUp
from diptych.identity import email_links
from diptych.identity.records import ACCOUNTS, EMAIL_LINKS, hashed, unix_time
from diptych.identity.verified_emails import email_is_verified
from tests.support.effort import long_where
from tests.support.mailbox import text_of
from tests.system.accounts.club import HERE, PASSWORD, Club, clubbed, follow
from tests.system.accounts.club_model import Member, closed
from tests.system.oauth.flow import forms

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""


def test_someone_signs_up_on_pages_and_goes_on_to_the_app(club: Club) -> None:
    browser, email = club.browser(), club.address()
    page = browser.authorize(club.app)
    assert b"Create an account" in page.body
    address = page.body.decode().partition('href="sign-up')[2].partition('"')[0].replace("&amp;", "&")
    sent = browser.submit(browser.get("/oauth/sign-up" + address), "sign-up", email=email)
    assert sent.status == 200 and b"Look into your mailbox" in sent.body and email.encode() in sent.body
    page = browser.get(club.link(email))
    assert page.status == 200 and b'name="field.name"' in page.body
    before = dict(browser.cookies)
    answer = browser.submit(page, "confirm", password=PASSWORD, **{"field.name": "Zoe"})
    assert answer.status == 303 and browser.cookies != before
    consent = follow(browser, answer)
    assert list(forms(consent)) == ["authorize", "logout"]
    code = browser.decide(club.app)["code"]
    token = club.app.exchange(code).json()["access_token"]
    found = club.service.data("{ viewer { roles user { name email } } }", token=token)
    assert found == {"viewer": {"roles": ["friend"], "user": {"name": "Zoe", "email": email}}}


def test_a_program_signs_someone_up(club: Club) -> None:
    email = club.member()
    account = club.run(club.accounts.find(email))
    assert account is not None and account.roles == ("friend",) and account.user_id
    assert club.run(email_is_verified(club.service.app.store, account))
    assert club.signed_in(email)


def test_the_answer_is_the_same_for_those_who_have_an_account(club: Club) -> None:
    known, new = club.member(), club.address()
    answers = [club.json("sign-up", {"email": email}) for email in (known, new)]
    assert answers[0] == answers[1] and answers[0].json() == {"status": "sent"}
    first, second = club.mails(known)[-1], club.mails(new)[-1]
    assert "You have one already" in text_of(first) and "Create the account" in text_of(second)
    assert club.mails(new)[-1]["Auto-Submitted"] == "auto-generated" and first["From"] == "The Club <club@example.org>"
    pages = []
    for email in (known, club.address()):
        browser = club.browser()
        page = browser.submit(browser.get("/oauth/sign-up"), "sign-up", email=email)
        pages.append((page.status, page.body.replace(email.encode(), b""), sorted(page.headers)))
    assert pages[0] == pages[1]


def test_the_link_of_a_known_address_sets_a_password(club: Club) -> None:
    email = club.member()
    club.json("sign-up", {"email": email})
    page = club.browser().get(club.link(email))
    assert b"Set a new password" in page.body and b"field.name" not in page.body


def test_looking_at_a_link_changes_nothing_and_it_is_used_once(club: Club) -> None:
    email = club.address()
    club.json("sign-up", {"email": email})
    link, token = club.link(email), club.token(email)
    for _ in range(3):
        assert club.browser().get(link).status == 200
    assert club.run(club.accounts.find(email)) is None
    body = {"token": token, "password": PASSWORD, "fields": {"name": "Zoe"}}
    assert club.json("confirm", body).json() == {"status": "done", "purpose": "sign-up"}
    again = club.json("confirm", body)
    assert (again.status, again.code) == (404, "NOT_FOUND")
    assert club.browser().get(link).status == 400


def test_of_many_uses_at_once_one_succeeds(club: Club) -> None:
    email = club.address()
    for _ in range(2):
        club.json("sign-up", {"email": email})
    club.settle()
    tokens = [mail_token(club, index, email) for index in range(2)]
    accounts = club.service.handler.oauth.account.accounts
    rows = club.service.handler.oauth.account.rows
    assert accounts is not None and rows is not None

    async def race() -> list[Any]:
        work = [accounts.sign_up(tokens[index % 2], PASSWORD, {"name": "Zoe"}, (), rows.create) for index in range(8)]
        return await asyncio.gather(*work, return_exceptions=True)

    done = club.run(race())
    assert sum(not isinstance(one, BaseException) for one in done) == 1
    token = club.service.token(None)
    assert len(club.service.rows("/members", token=token)) == 1


def mail_token(club: Club, index: int, email: str) -> str:
    return text_of(club.mails(email)[index]).partition("token=")[2].split()[0]


def test_a_token_is_stored_as_a_hash_and_expires(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    email = club.address()
    club.json("sign-up", {"email": email})
    token = club.token(email)
    assert len(token) == 43
    store = club.service.app.store
    found = club.run(EMAIL_LINKS.all(store, "hash"))
    assert [link.hash for link in found] == [hashed(token)] and token not in repr(found)
    monkeypatch.setattr(email_links, "unix_time", lambda: unix_time() + email_links.LIFETIMES["sign-up"])
    assert club.json("confirm", {"token": token, "password": PASSWORD, "fields": {"name": "Zoe"}}).status == 404
    assert club.run(club.accounts.find(email)) is None


def test_what_is_wrong_is_told_and_the_link_stays(club: Club) -> None:
    email = club.address()
    club.json("sign-up", {"email": email})
    token, link = club.token(email), club.link(email)
    good = {"token": token, "password": PASSWORD, "fields": {"name": "Zoe"}}
    for bad, about in (
        ({"password": "short"}, "8 to 256"),
        ({"fields": {"name": "Z"}}, "name"),
        ({"fields": {}}, "name"),
        ({"fields": {"name": "Zoe", "bio": "x"}}, "bio"),
        ({"fields": {"name": "Zoe", "email": "other@example.org"}}, "email"),
        ({"fields": {"name": "Zoe", "id": "01900000-0000-7000-8000-0000000000a1"}}, "id"),
        ({"fields": [1]}, "fields"),
        ({"more": 1}, "fields"),
    ):
        answer = club.json("confirm", {**good, **bad})
        assert (answer.status, answer.code) == (422, "BAD_USER_INPUT") and about.encode() in answer.body, bad
    browser = club.browser()
    page = browser.submit(browser.get(link), "confirm", password=PASSWORD, **{"field.name": "<b>"})
    assert page.status == 303 or b"&lt;b&gt;" in page.body
    wrong = club.browser()
    email2 = club.address()
    club.json("sign-up", {"email": email2})
    page = wrong.submit(wrong.get(club.link(email2)), "confirm", password="short", **{"field.name": '"><script>'})
    assert page.status == 400 and b"A password has 8 to 256" in page.body and b"&quot;&gt;&lt;script&gt;" in page.body


def test_a_row_that_cannot_be_made_makes_no_account(club: Club) -> None:
    email, other = club.address(), club.member()
    club.service.execute(f"UPDATE members SET email = '{email}'")
    club.json("sign-up", {"email": email})
    answer = club.json("confirm", {"token": club.token(email), "password": PASSWORD, "fields": {"name": "Zoe"}})
    assert (answer.status, answer.code) == (409, "CONFLICT")
    assert club.run(club.accounts.find(email)) is None and club.run(club.accounts.find(other)) is not None


def test_a_form_of_another_page_is_refused(club: Club) -> None:
    browser, email = club.browser(), club.address()
    hidden = forms(browser.get("/oauth/sign-up"))["sign-up"]
    form = {**hidden, "email": email}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        browser.headers = headers
        assert browser.post("/oauth/sign-up", form).status == 403
    browser.headers = {}
    assert browser.post("/oauth/sign-up", {**form, "token": "0" * 64}).status == 403
    assert club.browser().post("/oauth/sign-up", form).status == 403, "the token is that of another browser"
    assert club.mails(email) == []


def test_the_host_header_does_not_make_links(club: Club) -> None:
    email = club.address()
    sent = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    assert club.json("sign-up", {"email": email}, **sent).status == 202
    (mail,) = club.mails(email)
    assert "evil" not in mail.as_string() and f"{HERE}/oauth/confirm" in text_of(mail)


@pytest.mark.parametrize(
    "email",
    [
        "a@example.org\r\nBcc: b@example.org",
        "a@example.org\nX: y",
        "a@example.org, b@example.org",
        "A <a@example.org>",
        '"a\r\n"@example.org',
        "a@example.org>",
        "a;b@example.org",
        "ä@example.org",
        "a",
        "",
        None,
        {"a": 1},
    ],
)
def test_an_address_cannot_add_headers_or_recipients(club: Club, email: Any) -> None:
    answer = club.json("sign-up", {"email": email})
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    club.settle()
    assert club.box.tries == 0


def test_mails_to_one_address_are_few_and_the_answer_stays(club: Club) -> None:
    email = club.address()
    answers = [club.json("sign-up", {"email": email}) for _ in range(6)]
    assert {answer.status for answer in answers} == {202}
    assert len(club.mails(email)) == 3


def test_requests_from_one_network_are_limited(club: Club) -> None:
    answers = [club.json("sign-up", {"email": club.address()}) for _ in range(22)]
    assert [answer.status for answer in answers] == [202] * 20 + [429] * 2
    assert 0 < int(answers[-1].headers["retry-after"]) <= 3600 and answers[-1].code == "RATE_LIMITED"
    browser = club.browser()
    assert browser.submit(browser.get("/oauth/sign-up"), "sign-up", email=club.address()).status == 429


def test_guessing_links_is_limited(club: Club) -> None:
    statuses = [club.json("confirm", {"token": f"guess{number}", "password": PASSWORD}).status for number in range(62)]
    assert statuses == [404] * 60 + [429] * 2
    assert club.browser().get("/oauth/confirm?token=x").status == 429
    email = club.address()
    club.forget_limits()
    club.json("sign-up", {"email": email})
    for _ in range(61):
        club.browser().get("/oauth/confirm?token=x")
    assert club.browser().get(club.link(email)).status == 200, "who has a link is not hindered by those who guess"


def test_without_a_declaration_nobody_signs_up(database: str, runner: asyncio.Runner) -> None:
    with clubbed(database, runner, closed) as club:
        assert club.json("sign-up", {"email": club.address()}).status == 404
        assert club.browser().get("/oauth/sign-up").status == 404
        page = club.browser().authorize(club.app)
        assert b"Create an account" not in page.body and b"Forgot your password?" in page.body


def test_without_mail_there_are_no_pages_for_it(database: str, runner: asyncio.Runner) -> None:
    with clubbed(database, runner, smtp="", mail_from="") as club:
        for path in ("sign-up", "reset", "confirm"):
            assert club.json(path, {"email": club.address()}).status == 404
            assert club.browser().get(f"/oauth/{path}").status == 404
        page = club.browser().authorize(club.app)
        assert b"Create an account" not in page.body and b"Forgot" not in page.body
        assert club.browser().get("/oauth/account").status == 200


@pytest.mark.parametrize(
    ("sign_up", "said"),
    [
        (SignUp(email="email"), "a new Member needs name"),
        (SignUp(fields=("name",)), "a new Member needs email"),
        (SignUp(email="email", fields=("name", "phone")), "nobody can fill in"),
        (SignUp(email="email", fields=("name", "version")), "nobody can fill in"),
        (SignUp(email="name", fields=("name", "email")), "twice"),
        (SignUp(email="email", fields=("name",), roles=("friend",)), "roles"),  # type: ignore[arg-type]  # wrong on purpose
        (SignUp(email="email", fields="name"), "names"),  # type: ignore[arg-type]  # wrong on purpose
        ("yes", "no SignUp"),
    ],
)
def test_mistakes_of_a_declaration_are_told(sign_up: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Model(Member, sign_up=sign_up)


def test_a_declaration_needs_the_resource_of_users() -> None:
    class Thing(Resource):
        name: str

    with pytest.raises(ModelError, match="user="):
        Model(Thing, sign_up=SignUp(fields=("name",)))
    found = Model(Thing, user=Thing, sign_up=SignUp(fields=("name",), roles=(Role("guest"),)))
    assert found.sign_up is not None and "guest" in found.roles


def test_records_of_expired_links_are_removed(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    club.json("sign-up", {"email": club.address()})
    monkeypatch.setattr(email_links, "_SWEEP", 1)
    monkeypatch.setattr(email_links, "unix_time", lambda: unix_time() + 90_000)
    club.json("sign-up", {"email": club.address()})
    assert len(club.run(EMAIL_LINKS.all(club.service.app.store, "hash"))) == 1
    assert club.run(ACCOUNTS.all(club.service.app.store, "id")) == []


@pytest.mark.parametrize(
    "request_text", ["a=b\r\nX-Injected: 1", "a=b%0d%0aX-Injected: 1", "//evil.example", "a" * 9_000, "é=\u2028", "&&"]
)
def test_where_a_link_leads_on_to_adds_no_header(club: Club, request_text: str) -> None:
    browser, email = club.browser(), club.address()
    page = browser.get("/oauth/sign-up")
    assert browser.submit(page, "sign-up", email=email, request=request_text).status == 200
    done = browser.submit(browser.get(club.link(email)), "confirm", password=PASSWORD, **{"field.name": "Zoe"})
    location = done.headers["location"]
    assert done.status == 303 and location.isascii() and location.isprintable() and " " not in location
    assert location == "account" or location.startswith("authorize?")
