"""Validation of names, e-mail addresses and user ids of accounts, clients and keys."""

from __future__ import annotations

import re

from diptych.errors import Code, Refusal

_ID = re.compile(r"[!-~]{1,255}")


def normalised_email(text: str) -> str:
    """An address in the form in which it is stored and compared."""
    return text.strip().lower()


def is_email(text: str) -> bool:
    """Has the text the form of an e-mail address? Whether it exists, only a message could show."""
    local, _, domain = text.rpartition("@")
    sound = text.isprintable() and " " not in text and "@" not in local
    return sound and 0 < len(local) <= 64 and all(domain.split(".")) and len(text) <= 254


def checked_email(text: str) -> str:
    """A normalised address; a Refusal if the text is none."""
    email = normalised_email(text)
    if not is_email(email):
        raise Refusal(Code.BAD_USER_INPUT, f"{email[:254]!r} is no e-mail address.")
    return email


def checked_name(text: str) -> str:
    """A name of a client or a key, validated."""
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= 100:
        raise Refusal(Code.BAD_USER_INPUT, "A name has 1 to 100 printable characters, and no space at its ends.")
    return text


def checked_user(id: str | None) -> str | None:
    """The id of a user in the model, if any, validated for length and characters only."""
    if id is not None and not _ID.fullmatch(id):
        raise Refusal(Code.BAD_USER_INPUT, "The id of a user has 1 to 255 visible ASCII characters.")
    return id
