"""How mails are sent: by a queue, tried again, bounded, from templates, to a server or into a folder."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from diptych.config import Config
from diptych.errors import Refusal, StartError
from diptych.identity.mail.message import message, sender_of
from diptych.identity.mail.outbox import Outbox
from diptych.identity.mail.post import post_of
from diptych.identity.mail.templates import KINDS, MailTexts, Templates
from diptych.identity.mail.transport import MailFolder, smtp_server
from tests.support.mailbox import link_of, mailbox, text_of
from tests.system.accounts.club import Club, clubbed
from tests.system.accounts.club_model import model

BASE = "https://club.example"


def a_mail(to: str = "ann@example.org") -> EmailMessage:
    return message(sender_of("Club <club@example.org>"), to, MailTexts("Hello", "A text.\n", "<p>A text.</p>\n"))


def sent(outbox: Outbox, *mails: Callable[[], EmailMessage | None]) -> None:
    async def run() -> None:
        for mail in mails:
            outbox.put(mail)
        async with asyncio.timeout(20):
            while outbox.waiting:
                await asyncio.sleep(0.01)
        await outbox.stop()

    asyncio.run(run())


def test_a_mail_has_a_text_and_html() -> None:
    with mailbox() as box:
        sent(Outbox(smtp_server(box.url)), a_mail, lambda: None, a_mail)
        assert box.recipients == [["ann@example.org"], ["ann@example.org"]]
    mail = box.mails[0]
    assert mail.get_content_type() == "multipart/alternative" and text_of(mail).split() == ["A", "text."]
    assert mail["From"] == "Club <club@example.org>" and mail["Message-ID"].endswith("@example.org>")


def test_what_fails_for_now_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with mailbox() as box:
        box.answer = lambda number: "250 OK" if number > 2 else "451 later"
        sent(Outbox(smtp_server(box.url), delays=(0.01, 0.01, 0.01)), a_mail)
        assert box.tries == 3 and len(box.mails) == 1
    assert "ann@" not in caplog.text and caplog.text.count("cannot be sent") == 2


def test_what_is_refused_for_good_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    with mailbox() as box:
        box.answer = lambda number: "554 no"
        sent(Outbox(smtp_server(box.url), delays=(0.01,)), a_mail)
        assert box.tries == 1
        box.answer = lambda number: "451 later"
        sent(Outbox(smtp_server(box.url), delays=(0.01, 0.01)), a_mail)
        assert box.tries == 1 + 3
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 2


def test_a_server_that_is_away_holds_up_no_request_and_the_queue_is_bounded(
    database: str, runner: asyncio.Runner
) -> None:
    with clubbed(database, runner, smtp="smtp://127.0.0.1:9?tls=no") as club:
        outbox = club.service.handler.oauth.account.outbox
        assert outbox is not None
        outbox._most = 3
        answers = [club.json("sign-up", {"email": club.address()}).status for _ in range(3)]
        known = club.json("reset", {"email": club.address()})
        assert answers == [202] * 3 and (known.status, known.code) == (503, "UNAVAILABLE")
        browser = club.browser()
        page = browser.submit(browser.get("/oauth/sign-up"), "sign-up", email=club.address())
        assert page.status == 503


def test_a_full_queue_refuses() -> None:
    async def run() -> None:
        outbox = Outbox(smtp_server("smtp://127.0.0.1:9?tls=no"), most=1)
        outbox.put(a_mail)
        with pytest.raises(Refusal):
            outbox.put(a_mail)
        await outbox.stop()

    asyncio.run(run())


def test_a_folder_gets_files_that_others_cannot_read(tmp_path: Path) -> None:
    told: list[str] = []
    folder = tmp_path / "mails"
    texts = MailTexts("Hello", "Open:\nhttps://club.example/oauth/confirm?token=x\n", "<p></p>")
    mail = message(sender_of("club@example.org"), "ann@example.org", texts)
    MailFolder(folder, told.append).deliver(mail)
    (file,) = folder.iterdir()
    assert file.suffix == ".eml" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    read = message_from_bytes(file.read_bytes(), policy=default)
    assert link_of(read) == "https://club.example/oauth/confirm?token=x"
    assert "https://club.example/oauth/confirm?token=x" in told[0] and str(file) in told[0]


@pytest.mark.parametrize("bad", ["a@x.org\nBcc: b@x.org", "a@x.org\r\n\r\nbody", "a@x.org,b@x.org", "<a@x.org>"])
def test_no_value_adds_a_header(bad: str) -> None:
    with pytest.raises(Refusal):
        a_mail(bad)
    title = "Club\r\nBcc: thief@example.org"
    filled = Templates().fill("reset", {"service": title, "email": "a@x.org", "link": "https://x/", "lasts": "1"})
    mail = message(sender_of("club@example.org"), "a@x.org", filled)
    assert mail["Bcc"] is None and "\n" not in mail["Subject"]


def test_values_are_escaped_in_html() -> None:
    values = {"service": "<b>Club</b>", "email": "a&b@x.org", "link": 'https://x/?a="&b', "lasts": "<"}
    for kind in KINDS:
        html = Templates().fill(kind, values).html
        assert "<b>" not in html and "a&amp;b@x.org" in html and 'a="' not in html


def test_the_owner_replaces_templates(tmp_path: Path) -> None:
    (tmp_path / "reset.txt").write_text("Subject: Neues Passwort für $service\n\nHier: $link ($lasts)\n")
    (tmp_path / "reset.html").write_text('<p><a href="$link">Hier</a></p>')
    found = Templates(str(tmp_path))
    values = {"service": "Club", "email": "a@x.org", "link": "https://x/", "lasts": "30 minutes"}
    texts = found.fill("reset", values)
    assert texts == MailTexts(
        "Neues Passwort für Club", "Hier: https://x/ (30 minutes)\n", '<p><a href="https://x/">Hier</a></p>'
    )
    assert found.fill("verify", values) == Templates().fill("verify", values)
    (tmp_path / "verify.txt").write_text("Subject: x\n\n$password\n")
    with pytest.raises(StartError, match="placeholder"):
        Templates(str(tmp_path))
    with pytest.raises(StartError, match="no folder"):
        Templates(str(tmp_path / "away"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"smtp": "smtp://mail.example.org", "mail_from": "a@x.org"}, "needs base_url"),
        ({"smtp": "smtp://mail.example.org", "base_url": BASE}, "needs mail_from"),
        ({"smtp": "smtp://mail.example.org", "base_url": BASE, "mail_from": "a@x.org\nBcc: b@x.org"}, "mail_from"),
        ({"smtp": "smtp://mail.example.org", "base_url": BASE, "mail_from": "nobody"}, "mail_from"),
        ({"smtp": "smtp://a:b@mail.example.org?tls=no", "base_url": BASE, "mail_from": "a@x.org"}, "without TLS"),
        ({"smtp": "smtp://mail.example.org:x", "base_url": BASE, "mail_from": "a@x.org"}, "port"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(StartError, match=said):
        post_of(Config(**settings), "Club")


def test_the_server_of_a_url() -> None:
    found = smtp_server("smtp://ann%40x.org:p%2Fw@mail.example.org")
    assert (found.host, found.port, found.tls, found.plain) == ("mail.example.org", 587, False, False)
    assert (found.user, found.password) == ("ann@x.org", "p/w") and "p/w" not in repr(found)
    assert smtp_server("smtps://mail.example.org").port == 465


def test_starttls_is_required() -> None:
    with mailbox() as box, pytest.raises(OSError, match="STARTTLS"):
        smtp_server(box.url.removesuffix("?tls=no")).deliver(a_mail())


def test_a_dev_folder_makes_links_of_the_loopback_address(
    database: str, runner: asyncio.Runner, tmp_path: Path
) -> None:
    with clubbed(database, runner, model, smtp="", base_url="", mail_folder=str(tmp_path / "m")) as club:
        email = club.address()
        assert club.json("sign-up", {"email": email}, host="127.0.0.1:8000").status == 202
        assert club.json("sign-up", {"email": email}, host="evil.example").status == 503
        club.settle()
        (file,) = (tmp_path / "m").iterdir()
        read = message_from_bytes(file.read_bytes(), policy=default)
        assert link_of(read).startswith("http://127.0.0.1:8000/oauth/confirm?token=")


def test_stopping_does_not_wait_for_mails(club: Club) -> None:
    club.json("sign-up", {"email": club.address()})
