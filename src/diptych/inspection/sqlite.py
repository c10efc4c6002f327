"""Reads the tables and views of a SQLite file, and as much of their rows as types need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import apsw

from diptych.compile.affinity import affinity
from diptych.errors import StartError
from diptych.inspection.found import FoundColumn, FoundDatabase, FoundReference, FoundTable, likely_keys

_OWN = ("sqlite_", "diptych_")
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_MOMENT = f"{_DAY}T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z"
_SCHEMA = "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')"
_CHECK = re.compile(r"\bCHECK\s*\(", re.IGNORECASE)


def inspect_sqlite(path: str) -> FoundDatabase:
    """What a SQLite file holds. It is opened to be read only."""
    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            rows: list[Any] = db.execute(_SCHEMA).fetchall()
            ours = [row for row in rows if not str(row[0]).lower().startswith(_OWN)]
            return FoundDatabase(
                "sqlite", {name: _Table(db, name, kind, sql or "").found() for name, kind, sql in ours}
            )
        finally:
            db.close()
    except apsw.Error as error:
        raise StartError(f"The SQLite database {path} cannot be read: {error}.") from None


class _Table:
    def __init__(self, db: apsw.Connection, name: str, kind: str, sql: str) -> None:
        self.db = db
        self.name = name
        self.is_view = kind == "view"
        self.sql = sql
        self.quoted = _quoted(name)

    def found(self) -> FoundTable:
        rows = self._rows('SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)', self.name)
        key = tuple(row[0] for row in sorted((row for row in rows if row[4]), key=lambda row: row[4]))
        columns = [self._column(*row[:4], pk=row[4], hidden=row[5], keys=len(key)) for row in rows]
        uniques, left = self._uniques()
        return FoundTable(
            self.name,
            columns,
            self.is_view,
            self._view_key(columns) if self.is_view else key,
            [*self._references()],
            [unique for unique in uniques if unique != key],
            [] if self.is_view else [*_checks(self.sql)],
            left,
        )

    def _column(
        self, name: str, kind: str, required: int, default: str | None, *, pk: int, hidden: int, keys: int
    ) -> FoundColumn:
        counted = bool(pk) and keys == 1 and kind.upper() == "INTEGER"
        holds = "" if hidden else self._holds(name, kind)
        nullable = not (required or pk) or self.is_view
        return FoundColumn(name, kind, nullable, default or "", counted, hidden in (2, 3), holds=holds)

    def _holds(self, name: str, kind: str) -> str:
        """What the rows hold, where the declared type does not say: SQLite keeps any value in any column.

        A column that is declared TIME is text, and never `time`: the form of Diptych's own times is not looked for.
        """
        column, upper = _quoted(name), kind.upper()
        if "DATE" in upper or "TIME" in upper:
            for word, form in (("day", _DAY), ("moment", _MOMENT)):
                odd = f"{column} IS NOT NULL AND (typeof({column}) <> 'text' OR {column} NOT GLOB '{form}')"
                if not self._any(odd) and self._any(f"{column} IS NOT NULL"):
                    return word
            return "text"
        if affinity(kind) == "INTEGER" and self._any(f"{column} NOT BETWEEN {-(2**31)} AND {2**31 - 1}"):
            return "long"
        if not kind:
            rows = self._rows(f"SELECT DISTINCT typeof({column}) FROM {self.quoted} WHERE {column} IS NOT NULL")
            kinds = {row[0] for row in rows}
            return str(kinds.pop()) if len(kinds) == 1 else "nothing" if not kinds else "mixed"
        return ""

    def _any(self, where: str) -> bool:
        return bool(self._rows(f"SELECT 1 FROM {self.quoted} WHERE {where} LIMIT 1"))

    def _rows(self, sql: str, *values: str) -> list[Any]:
        return self.db.execute(sql, values).fetchall()

    def _view_key(self, columns: list[FoundColumn]) -> tuple[str, ...]:
        for name in likely_keys(columns):
            column = _quoted(name)
            ((rows, different),) = self._rows(f"SELECT count(*), count(DISTINCT {column}) FROM {self.quoted}")
            if rows == different > 0:
                return (name,)
        return ()

    def _references(self) -> Iterator[FoundReference]:
        rows = self._rows(
            'SELECT id, "table", "from", "to", on_delete FROM pragma_foreign_key_list(?) ORDER BY id, seq', self.name
        )
        for number in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == number]
            keys = tuple(row[3] or "" for row in own)
            yield FoundReference(tuple(row[2] for row in own), own[0][1], keys, own[0][4].lower())

    def _uniques(self) -> tuple[list[tuple[str, ...]], list[str]]:
        """The unique keys of plain columns, and sentences about others."""
        uniques, left = [], []
        for name, partial in self._rows('SELECT name, partial FROM pragma_index_list(?) WHERE "unique"', self.name):
            columns = [row[0] for row in self._rows("SELECT name FROM pragma_index_info(?) ORDER BY seqno", name)]
            if partial or None in columns:
                left.append(f"the unique index {name}, of some rows or of an expression")
            else:
                uniques.append(tuple(columns))
        return uniques, left


def _checks(sql: str) -> Iterator[str]:
    """The conditions of the CHECK constraints in the text of a table."""
    for match in _CHECK.finditer(sql):
        depth, at = 1, match.end()
        while depth and at < len(sql):
            depth += {"(": 1, ")": -1}.get(sql[at], 0)
            at += 1
        yield " ".join(sql[match.end() : at - 1].split())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
