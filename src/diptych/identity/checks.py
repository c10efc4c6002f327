"""What names, addresses and ids of accounts, clients and keys may be."""

from __future__ import annotations

import re

from diptych.errors import Code, Refusal

_ID = re.compile(r"[!-~]{1,255}")


def normalised_email(text: str) -> str:
    """An address, as it is kept and looked for."""
    return text.strip().lower()


def is_email(text: str) -> bool:
    """Does it look like the address of someone? Only a message that arrives could tell more."""
    local, _, domain = text.rpartition("@")
    sound = text.isprintable() and " " not in text and "@" not in local
    return sound and 0 < len(local) <= 64 and all(domain.split(".")) and len(text) <= 254


def checked_email(text: str) -> str:
    """An address, normalised; refused if it is none."""
    email = normalised_email(text)
    if not is_email(email):
        raise Refusal(Code.BAD_USER_INPUT, f"{email[:254]!r} is no e-mail address.")
    return email


def checked_name(text: str) -> str:
    """A name by which people tell clients or keys apart."""
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= 100:
        raise Refusal(Code.BAD_USER_INPUT, "A name has 1 to 100 printable characters, and no space at its ends.")
    return text


def checked_user(id: str | None) -> str | None:
    """The id of a user in the model, if any; its form is the model's affair."""
    if id is not None and not _ID.fullmatch(id):
        raise Refusal(Code.BAD_USER_INPUT, "The id of a user has 1 to 255 visible ASCII characters.")
    return id
