"""A mail as a message. No value can add a header or a recipient: addresses are parsed, and line ends are refused."""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr

from diptych.errors import Code, Refusal, StartError
from diptych.identity.checks import checked_email
from diptych.identity.mail.templates import MailTexts

_MAILABLE = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+"
)
"""Addresses to which mail can be sent: those of ASCII, without quotes (as browsers check them)."""


def mailable(text: str) -> str:
    """A normalised address to which mail can be sent; a Refusal if it is none."""
    email = checked_email(text)
    if not _MAILABLE.fullmatch(email):
        raise Refusal(Code.BAD_USER_INPUT, f"{email!r} is no e-mail address.")
    return email


def sender_of(text: str) -> Address:
    """The sender of mails, from its setting; a StartError if it is none."""
    name, spec = parseaddr(text)
    if not _MAILABLE.fullmatch(spec) or not text.isprintable():
        raise StartError(f"The setting mail_from cannot be {text!r}: expected an address such as no-reply@example.org.")
    return Address(name, addr_spec=spec)


def message(sender: Address, email: str, texts: MailTexts) -> EmailMessage:
    """One mail."""
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = Address(addr_spec=mailable(email))
    mail["Subject"] = texts.subject
    mail["Date"] = formatdate(usegmt=True)
    mail["Message-ID"] = make_msgid(domain=sender.domain)
    mail["Auto-Submitted"] = "auto-generated"  # so that no machine answers (RFC 3834)
    mail.set_content(texts.text)
    mail.add_alternative(texts.html, subtype="html")
    return mail
