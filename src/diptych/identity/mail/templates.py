"""The texts of mails: a subject and a plain text for each kind, and the same as simple HTML.

A template has placeholders: $service is the title of the model, $email the address, $link the link, and $lasts how long
that is valid. The owner of a model replaces them by files of a folder (the setting `mail_templates`): `reset.txt`,
whose first line is the subject, and `reset.html`. Values are escaped in HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Literal

from msgspec import Struct

from diptych.errors import StartError

Kind = Literal["sign-up", "known", "reset", "verify", "change", "changed"]
PLACEHOLDERS = ("service", "email", "link", "lasts")
_SUBJECT = "Subject: "


class MailTexts(Struct, frozen=True):
    """The subject, the text and the HTML of a mail."""

    subject: str
    text: str
    html: str


_SENTENCES: Mapping[Kind, tuple[str, str, str, str]] = {
    "sign-up": (
        "Create your account at $service",
        "Somebody, most likely you, wants to create an account at $service with the address $email.",
        "Create the account",
        "If it was not you, do nothing: there is no account without this link.",
    ),
    "known": (
        "Your account at $service",
        "Somebody, most likely you, wanted to create an account at $service with the address $email. "
        "You have one already. If you do not know its password, set a new one.",
        "Set a new password",
        "If it was not you, do nothing.",
    ),
    "reset": (
        "A new password for $service",
        "Somebody, most likely you, wants to set a new password for $email at $service.",
        "Set a new password",
        "If it was not you, do nothing: your password stays as it is.",
    ),
    "verify": (
        "Confirm your address at $service",
        "Confirm that $email is your address at $service.",
        "Confirm the address",
        "If you have no account there, do nothing.",
    ),
    "change": (
        "Your new address at $service",
        "Confirm that $email is your new address at $service.",
        "Use this address",
        "If you have no account there, do nothing.",
    ),
    "changed": (
        "Your address at $service is about to change",
        "Somebody who knows your password wants to use another address than $email for your account at $service. "
        "It changes when the new address is confirmed.",
        "Set a new password",
        "If it was not you, set a new password now: that keeps the account with this address.",
    ),
}
"""Of each kind: the subject, what it is about, the words of the link, and what to do if it was somebody else."""


def built_in(kind: Kind) -> MailTexts:
    """The texts of a kind, as Diptych has them."""
    subject, about, button, otherwise = _SENTENCES[kind]
    lasts = "The link is valid for $lasts and can be used once."
    text = f"{about}\n\n{button}:\n$link\n\n{lasts}\n{otherwise}\n"
    html = (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>' + subject + "</title></head>\n"
        '<body style="font: 16px/1.5 sans-serif; max-width: 32em; margin: 2em auto; padding: 0 1em">\n'
        f'<p>{about}</p>\n<p><a href="$link">{button}</a></p>\n<p>{lasts}</p>\n<p>{otherwise}</p>\n</body>\n</html>\n'
    )
    return MailTexts(subject, text, html)


KINDS: tuple[Kind, ...] = tuple(_SENTENCES)


class Templates:
    """The texts of all kinds, those of a folder before the built-in ones; mistakes in them raise a StartError."""

    def __init__(self, folder: str = "") -> None:
        self._texts = {kind: _with_files(built_in(kind), kind, folder) for kind in KINDS}
        for kind, texts in self._texts.items():
            for part in (texts.subject, texts.text, texts.html):
                _check(kind, part)

    def fill(self, kind: Kind, values: Mapping[str, str]) -> MailTexts:
        """The texts of one mail."""
        texts = self._texts[kind]
        safe = {name: escape(value) for name, value in values.items()}
        subject = " ".join(Template(texts.subject).substitute(values).split())
        return MailTexts(subject, Template(texts.text).substitute(values), Template(texts.html).substitute(safe))


def _check(kind: str, part: str) -> None:
    try:
        Template(part).substitute(dict.fromkeys(PLACEHOLDERS, ""))
    except (KeyError, ValueError):
        known = ", ".join(f"${name}" for name in PLACEHOLDERS)
        raise StartError(f"A template of the mail {kind} has another placeholder than {known}.") from None


def _with_files(texts: MailTexts, kind: str, folder: str) -> MailTexts:
    if not folder:
        return texts
    if not Path(folder).is_dir():
        raise StartError(f"There is no folder {folder} with templates of mails.")
    plain, html = (_read(Path(folder) / f"{kind}.{ending}") for ending in ("txt", "html"))
    subject, text = texts.subject, texts.text
    if plain is not None:
        first, _, text = plain.partition("\n")
        subject = first.removeprefix(_SUBJECT).strip()
        text = text.lstrip("\n")
    return MailTexts(subject, text, html if html is not None else texts.html)


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8") if file.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"The template {file} cannot be read: {error}.") from None
