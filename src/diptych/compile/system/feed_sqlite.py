"""The feed of a SQLite database: its tables, and the triggers of each table of the model.

They run whichever way a row is changed, and in whatever SQLite does so; they must not rely on its settings
(`recursive_triggers`), nor on the order in which triggers fire. One that the owner of the database has made may have
changed the row once more before one of these fires: then the newest change of the row has logged it already, and
lacks only how the row was before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diptych.compile.fragment import identifier
from diptych.compile.system.object import LONG_VALUE, MARK, NOW, FeedTable, SystemObject


def sqlite_feed(tables: Sequence[FeedTable]) -> Iterable[SystemObject]:
    """The parts of a SQLite feed, in the order in which they can be made."""
    yield from _TABLES
    for table in tables:
        yield from (_ExistingTriggers if table.key else _Triggers)(table).parts()


_TABLES = (
    SystemObject(
        "diptych_feed",
        (
            "CREATE TABLE diptych_feed (position INTEGER PRIMARY KEY, mark INTEGER NOT NULL, at TEXT NOT NULL, "
            "resource TEXT NOT NULL, row_id TEXT NOT NULL, old TEXT, new TEXT)",
        ),
    ),
    # the changes that hold a value which others may leave out
    SystemObject(
        "diptych_feed_long",
        (f"CREATE INDEX diptych_feed_long ON diptych_feed (resource, row_id) WHERE length(old) > {LONG_VALUE}",),
    ),
    SystemObject(
        "diptych_feed_head",
        (
            "CREATE TABLE diptych_feed_head (feed TEXT NOT NULL)",
            "INSERT INTO diptych_feed_head (feed) VALUES (lower(hex(randomblob(8))))",
        ),
    ),
    # rows that may be about to be replaced: see below
    SystemObject(
        "diptych_feed_replaced",
        ("CREATE TABLE diptych_feed_replaced (resource TEXT NOT NULL, row_id TEXT NOT NULL, old TEXT NOT NULL)",),
    ),
)
_BOUNDED = "SELECT RAISE(ABORT, 'version is beyond 2147483647') WHERE NEW.version > 2147483647"
"""As on PostgreSQL, where the column is a 32-bit integer, which is what `version` is on the wire."""
_MOST_COLUMNS = 60
"""Columns of one json_object(): the SQLite of others, which runs these triggers too, may take 127 arguments at most."""


class _Triggers:
    def __init__(self, table: FeedTable) -> None:
        self.name = table.name
        self.table = identifier(table.name).text
        self.columns = {column: identifier(column).text for column in table.columns}
        self.texts = frozenset(table.texts)
        self.textual = frozenset(table.textual)
        self.key = [identifier(column).text for column in table.key]
        keys = (table.key or ("id",), *table.unique)
        self.unique = [[identifier(column).text for column in columns] for columns in keys]

    def parts(self) -> Iterable[SystemObject]:
        """The triggers of the table, each with its text, so that one is replaced when the columns have changed."""
        moves = "NEW.id IS NOT OLD.id"
        yield self._trigger("touch", "AFTER UPDATE", f"NEW.version <= OLD.version AND NOT ({moves})", *self._touch())
        yield self._trigger(
            "changed",
            "AFTER UPDATE",
            f"NEW.version > OLD.version AND NOT ({moves})",
            _BOUNDED,
            self._log_current(self._json("OLD", "_t"), other="OLD"),
            self._overtaken(self._before()),
        )
        yield self._trigger("moved", "AFTER UPDATE", moves, *self._move())
        yield self._trigger("replacing", "BEFORE INSERT", f"EXISTS (SELECT 1 {self._rivals()})", *self._replacing())
        yield self._trigger(
            "created",
            "AFTER INSERT",
            "",
            _BOUNDED,
            *self._replaced(),
            self._log_current("NULL"),
            self._overtaken("NULL"),
        )
        yield self._trigger(
            "deleted",
            "AFTER DELETE",
            "",
            self._log_deleted(),
            f"DELETE FROM diptych_feed_replaced WHERE {self._is_row('OLD')}",
        )

    def _trigger(self, kind: str, event: str, when: str, *statements: str) -> SystemObject:
        name = f'"diptych_{kind}_{self.name}"'
        condition = f" WHEN {when}" if when else ""
        body = "".join(f"  {statement};\n" for statement in statements)
        create = f"CREATE TRIGGER {name} {event} ON {self.table} FOR EACH ROW{condition}\nBEGIN {MARK}{body}END"
        return SystemObject(name.strip('"'), (f"DROP TRIGGER IF EXISTS {name}", create), create)

    # logging a change

    def _json(self, row: str, other: str = "") -> str:
        """A row as JSON: each value as it is stored, a JSON column as the text that it is.

        A long text that is the same in the other row of the change is the number 1, which no column of text holds.
        """
        pairs = [f"'{name}', {self._value(name, row, other)}" for name in self.columns]
        json = f"json_object({', '.join(pairs[:_MOST_COLUMNS])})"
        for start in range(_MOST_COLUMNS, len(pairs), _MOST_COLUMNS):
            more = ", ".join(f"'$.{pair[1:]}" for pair in pairs[start : start + _MOST_COLUMNS])
            json = f"json_set({json}, {more})"
        return json

    def _value(self, name: str, row: str, other: str) -> str:
        value = f"{row}.{self.columns[name]}"
        shown = f"CAST({value} AS TEXT)"  # JSON holds no blob
        if name not in self.textual:  # the lesser of the two: numbers come before texts, and texts before blobs
            shown = f"min({value}, {shown})"
        if not other or name not in self.texts:
            return shown
        same = f"length({value}) > {LONG_VALUE} AND {value} IS {other}.{self.columns[name]}"
        return f"CASE WHEN {same} THEN 1 ELSE {shown} END"

    def _before(self) -> str:
        """The row before, for the newest change of it: the row after that one is the row as it is, if it is there."""
        return f"(SELECT {self._json('OLD', '_t')} FROM (SELECT 1) LEFT JOIN {self.table} _t ON {self._is_same})"

    def _log(self, row_id: str, old: str, new: str, source: str = "") -> str:
        return (
            "INSERT INTO diptych_feed (mark, at, resource, row_id, old, new) "
            f"SELECT random() & 2147483647, {NOW['sqlite']}, '{self.name}', {row_id}, {old}, {new}{source}"
        )

    def _log_current(self, old: str, when: str = "_t.version = NEW.version", other: str = "") -> str:
        """Log a row as it is, unless it has changed again."""
        source = f" FROM {self.table} _t WHERE {self._is_same} AND {when}"
        return self._log(self._id("_t"), old, self._json("_t", other), source)

    def _log_deleted(self) -> str:
        return self._log(self._id("OLD"), self._json("OLD"), "NULL")

    def _overtaken(self, old: str) -> str:
        """If nothing was logged just now, complete the newest change of the row."""
        newest = f"(SELECT CASE changes() WHEN 0 THEN {self._newest()} END)"
        return f"UPDATE diptych_feed SET old = {old} WHERE position = {newest}"

    def _newest(self) -> str:
        """The newest change of a row. It is among the last of all, so there is no index for this."""
        return f"(SELECT position FROM diptych_feed WHERE {self._is_row('NEW')} ORDER BY position DESC LIMIT 1)"

    def _is_row(self, row: str) -> str:
        return f"resource = '{self.name}' AND row_id = {self._id_text(row)}"

    # the id of a row

    _is_same = "_t.id = NEW.id"
    """Is the row of the table the new one?"""
    _is_logged = "_t.id = _r.row_id"
    """Is the row of the table that which may have been replaced?"""

    def _id(self, row: str) -> str:
        return f"{row}.id"

    def _id_text(self, row: str) -> str:
        return f"CAST({row}.id AS TEXT)"

    # an update that does not move the version, or that moves the id

    def _touch(self) -> tuple[str, str]:
        """The inner update moves the version and is logged, with the row before the outer update as `old`."""
        return self._bump(), f"UPDATE diptych_feed SET old = {self._before()} WHERE position = {self._newest()}"

    def _bump(self) -> str:
        return (
            f"UPDATE {self.table} SET version = OLD.version + 1, updated_at = {NOW['sqlite']} "
            "WHERE id = NEW.id AND version <= OLD.version"
        )

    def _move(self) -> tuple[str, ...]:
        """A row with another id is another row. If the version has to be moved, that is logged, too."""
        return (
            self._log_deleted(),
            self._bump(),
            self._log_current("NULL", "NEW.version > OLD.version"),
            f"UPDATE diptych_feed SET old = NULL WHERE position = {self._newest()} AND NEW.version <= OLD.version",
        )

    # INSERT OR REPLACE, which fires no DELETE trigger unless `recursive_triggers` is on

    def _rivals(self) -> str:
        """The rows that an INSERT would have to replace; or would leave alone, or update: this is not known before."""
        keys = (" AND ".join(f"_t.{column} = NEW.{column}" for column in columns) for columns in self.unique)
        return f"FROM {self.table} _t WHERE " + " OR ".join(keys)

    def _replacing(self) -> tuple[str, str]:
        return (
            f"DELETE FROM diptych_feed_replaced WHERE resource = '{self.name}'",
            "INSERT INTO diptych_feed_replaced (resource, row_id, old) "
            f"SELECT '{self.name}', {self._id('_t')}, {self._json('_t')} {self._rivals()}",
        )

    def _replaced(self) -> tuple[str, str]:
        """A new row is there, so those in its way are gone; what was left alone or updated before is not."""
        deleted = f"NOT EXISTS (SELECT 1 FROM {self.table} _t WHERE {self._is_logged})"
        source = (
            f" FROM diptych_feed_replaced _r WHERE _r.resource = '{self.name}' "
            f"AND (_r.row_id = {self._id_text('NEW')} OR {deleted})"
        )
        return (
            self._log("_r.row_id", "_r.old", "NULL", source),
            f"DELETE FROM diptych_feed_replaced WHERE resource = '{self.name}'",
        )


class _ExistingTriggers(_Triggers):
    """The triggers of a table that Diptych did not make: it has a key of any columns, and no version.

    A row has changed again if one of its values is another. A key that is null, which SQLite allows, is empty text.
    """

    def __init__(self, table: FeedTable) -> None:
        super().__init__(table)
        self._is_same = " AND ".join(f"_t.{column} IS NEW.{column}" for column in self.key)
        self._is_logged = " AND ".join(
            f"_t.{column} IS json_extract(_r.old, '$.{name}')" for name, column in zip(table.key, self.key, strict=True)
        )
        self._unchanged = " AND ".join(f"_t.{column} IS NEW.{column}" for column in self.columns.values())

    def parts(self) -> Iterable[SystemObject]:
        moves = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in self.key)
        changed = self._log_current(self._json("OLD", "_t"), self._unchanged, other="OLD")
        created = self._log_current("NULL", self._unchanged), self._overtaken("NULL")
        rivals = f"EXISTS (SELECT 1 {self._rivals()})"
        forget = f"DELETE FROM diptych_feed_replaced WHERE {self._is_row('OLD')}"
        yield self._trigger("changed", "AFTER UPDATE", f"NOT ({moves})", changed, self._overtaken(self._before()))
        yield self._trigger("moved", "AFTER UPDATE", moves, self._log_deleted(), *created)
        yield self._trigger("replacing", "BEFORE INSERT", rivals, *self._replacing())
        yield self._trigger("created", "AFTER INSERT", "", *self._replaced(), *created)
        yield self._trigger("deleted", "AFTER DELETE", "", self._log_deleted(), forget)

    def _id(self, row: str) -> str:
        return self._id_text(row)

    def _id_text(self, row: str) -> str:
        """The id as `TableRef.id` has it: the texts of the columns of its key, with a comma between."""
        texts = [f"CAST({row}.{column} AS TEXT)" for column in self.key]
        if len(texts) > 1:
            texts = [f"replace(replace({text}, '%', '%25'), ',', '%2C')" for text in texts]
        joined = " || ',' || ".join(texts)
        return f"coalesce({joined}, '')"
