"""Delivery of a mail: to an SMTP server, or into a folder. It blocks, and so runs in a thread (`outbox.py`).

smtp://user:password@mail.example.org:587        STARTTLS, which is required; the certificate is verified
smtps://user:password@mail.example.org           TLS from the start, port 465
smtp://127.0.0.1:2525?tls=no                     without TLS; a password is then sent to this machine only
"""

from __future__ import annotations

import os
import re
import smtplib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from diptych.config import Config
from diptych.errors import StartError
from diptych.setting_parsers import is_loopback

_LINK = re.compile(r"https?://\S+")
_TIMEOUT = 20.0
"""Seconds for each step of a delivery."""


class MailTransport(Protocol):
    """Delivers one mail, or raises an OSError; `smtplib.SMTPException` is one."""

    def deliver(self, mail: EmailMessage) -> None: ...


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server, and how to talk to it."""

    host: str
    port: int
    tls: bool
    """TLS from the start; if not, by STARTTLS, unless `plain`."""
    plain: bool
    user: str = ""
    password: str = field(default="", repr=False)

    def deliver(self, mail: EmailMessage) -> None:
        context = ssl.create_default_context()
        if self.tls:
            client: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT, context=context)
        else:
            client = smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT)
        with client:
            if not self.tls and not self.plain:
                client.starttls(context=context)
            if self.user:
                client.login(self.user, self.password)
            client.send_message(mail)


def smtp_server(url: str) -> SmtpServer:
    """The server of a URL."""
    parts = urlsplit(url)
    host, tls, plain = parts.hostname or "", parts.scheme == "smtps", parts.query == "tls=no"
    try:
        port = parts.port or (465 if tls else 587)
    except ValueError:
        raise StartError("The port of the setting smtp is no number.") from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if user and plain and not is_loopback(host):
        raise StartError(f"The setting smtp would send a password to {host} without TLS.")
    return SmtpServer(host, port, tls, plain, user, password)


class MailFolder(Struct, frozen=True):
    """A folder of mails, for development: each is a file that only its owner can read, and is reported."""

    folder: Path
    report: Callable[[str], None]

    def deliver(self, mail: EmailMessage) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{time.time_ns()}.eml"
        file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(mail.as_bytes(policy=SMTP))
        body = mail.get_body(("plain",))
        links = _LINK.findall(body.get_content()) if body is not None else []
        self.report(" ".join([f"Mail to {mail['To']} in {self.folder / name}:", *links]))


def transport_of(config: Config, report: Callable[[str], None]) -> MailTransport | None:
    """The transport of these settings; None if mails cannot be sent."""
    if config.smtp:
        return smtp_server(config.smtp)
    return MailFolder(Path(config.mail_folder), report) if config.mail_folder else None
