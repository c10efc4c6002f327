"""The chain of the audit log: each entry is one line of JSON, and its hash covers that line and the hash before it.

    hash = SHA-256(hash of the entry before, in hexadecimal, "\\n", the line without its last member)

    {"entry":2,"position":7,"at":"2026-…Z","resource":"posts","row":"0190…","kind":"UPDATED","store":"sqlite",
     "actor":{"channel":"rest","user":"0190…"},"old":{…},"new":{…},"hash":"9f…"}

The values of a row are the texts that the feed has stored, unchanged, so a chain can be verified without the model, and
after the model has changed. Anyone who can write to the database can also make all hashes anew: keep the head (number
and hash of the last entry) elsewhere, and have it verified.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

import msgspec

from diptych.ask.act import SQL

_raws = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_BY_SQL = f'{{"channel":"{SQL}"}}'


class Entry(NamedTuple):
    """A change in the audit log. Rows and actor are JSON texts; `masked` are columns that are left out of the rows."""

    entry: int
    position: int
    at: str
    resource: str
    row_id: str
    store: str
    """The database that stored the rows, whose form they have."""
    act: str | None
    masked: str
    old: str | None
    new: str | None

    @property
    def kind(self) -> str:
        return "CREATED" if self.old is None else "DELETED" if self.new is None else "UPDATED"

    def line(self) -> str:
        """The JSON of the entry that its hash covers, without the closing bracket: a member `hash` follows."""
        head = {"entry": self.entry, "position": self.position, "at": self.at, "resource": self.resource}
        plain = json.dumps({**head, "row": self.row_id, "kind": self.kind, "store": self.store}, separators=(",", ":"))
        masked = f',"masked":{self.masked}' if self.masked else ""
        return (
            f'{plain[:-1]},"actor":{self.act or _BY_SQL}{masked},"old":{self.old or "null"},"new":{self.new or "null"}'
        )

    def hash(self, before: str) -> str:
        """The hash of the entry, made from the hash of the entry before it and its own JSON."""
        return hashlib.sha256(f"{before}\n{self.line()}".encode()).hexdigest()

    def exported(self, hash: str) -> str:
        """The whole line of an export."""
        return f'{self.line()},"hash":"{hash}"}}'


def one_line(text: str | None) -> str | None:
    """JSON text without line breaks, which mean nothing outside of its strings."""
    if text is None or ("\n" not in text and "\r" not in text):
        return text
    return text.replace("\n", " ").replace("\r", " ")


def without(text: str | None, columns: tuple[str, ...]) -> str | None:
    """The JSON of a row without some columns; all others keep their texts."""
    if text is None or not columns:
        return text
    return _encode({name: value for name, value in _raws.decode(text).items() if name not in columns}).decode()


def version_in(text: str | None) -> int | None:
    """The version of the row that a JSON text holds."""
    if text is None:
        return None
    version = _raws.decode(text).get("version")
    return None if version is None else msgspec.json.decode(version, type=int | None)
