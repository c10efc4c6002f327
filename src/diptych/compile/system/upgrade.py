"""The version of the system tables, and the columns that a table of an earlier version lacks.

    diptych_settings    name             value
                        system_tables    {"version":2,"compatible_from":1}

Changes are additive: tables, indexes, and columns that are nullable or have a default. These are made wherever they
are missing, whatever the version. Rows that need other values get them by a numbered step (`db/upgrades.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec import Struct, json

SYSTEM_VERSION = 2
"""The version of the system tables that this code makes. Raised with every change of them."""
COMPATIBLE_FROM = 1
"""The earliest version whose code works with these tables. Raised if earlier code cannot go on with them."""
SETTING = "system_tables"
"""The row of `diptych_settings` with the version of a database."""
RETIRED = ("diptych_jobs_next",)
"""Indexes that earlier versions made. A database that has one loses it when it is opened."""


class SystemVersion(Struct, frozen=True):
    """The version of the system tables of a database."""

    version: int = 1
    """1 is that of databases from before there were versions."""
    compatible_from: int = 1
    """The earliest version whose code can open it."""

    def encode(self) -> str:
        return json.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> SystemVersion:
        return json.decode(text, type=cls)


CURRENT = SystemVersion(SYSTEM_VERSION, COMPATIBLE_FROM)
"""What is recorded by this code."""


def added_columns(create: str, have: Mapping[str, Container[str]]) -> Iterator[str]:
    """The statements that add the columns which a table that is there lacks; none for what is no table."""
    begin, _, rest = create.partition(" (")
    words = begin.split()
    if words[:2] != ["CREATE", "TABLE"] or words[-1] not in have:
        return
    for name, definition in columns_of(rest).items():
        if name not in have[words[-1]]:
            yield f"ALTER TABLE {words[-1]} ADD COLUMN {definition}"


def columns_of(text: str) -> dict[str, str]:
    """The definitions of the columns of a table, by name, from the text after the first parenthesis of CREATE TABLE."""
    definitions, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        if sign == "(":
            depth += 1
        elif sign in ",)" and depth == 0:
            definitions.append(text[start:place].strip())
            start = place + 1
            if sign == ")":
                break
        elif sign == ")":
            depth -= 1
    return {definition.split()[0]: definition for definition in definitions if not definition.startswith("PRIMARY KEY")}
