"""A SQLite database as the source or the target of a move."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import apsw

from diptych.compile.fragment import identifier
from diptych.db.sqlite.connection import SqliteConnection
from diptych.db.sqlite.store import SqliteStore
from diptych.db.sqlite.watchdog import Watchdog
from diptych.db.violations import MOVED_TEXT, violation_of_sqlite
from diptych.errors import StartError
from diptych.model.model import Model
from diptych.model.scalars import INTEGER_ID
from diptych.move.postgres_values import RowForm, normalised
from diptych.move.side import (
    AUDIT_COLUMNS,
    MOVED,
    MOVING,
    NOT_COPIED,
    AuditEntry,
    AuditRest,
    Clash,
    Head,
    Row,
    StoredChange,
    optional_table,
)

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'diptych\\_%' ESCAPE '\\' ORDER BY name"
_TRIGGERS = (
    "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'diptych\\_%' ESCAPE '\\' "
    "AND name NOT LIKE 'diptych\\_search\\_%' ESCAPE '\\'"
)
_CHANGES = (
    "SELECT position, mark, at, resource, row_id, old, new FROM diptych_feed "
    "WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
)
_AUDIT = (
    "SELECT entry, position, at, resource, row_id, version, old, new, act, masked, "
    "coalesce(origin, json_array('sqlite', resource, old, new)), hash FROM diptych_audit "
    "WHERE entry > ? ORDER BY entry LIMIT ?"
)
_ACTS = (
    "SELECT f.position, a.act FROM diptych_feed f JOIN diptych_acts a ON a.first <= f.position AND a.last = "
    "(SELECT min(b.last) FROM diptych_acts b WHERE b.last >= f.position) "
    "WHERE f.position > (SELECT position FROM diptych_audit_head)"
)
_HEAD = (
    "SELECT feed, coalesce((SELECT min(position) FROM diptych_feed), 0), "
    "coalesce((SELECT max(position) FROM diptych_feed), 0) FROM diptych_feed_head"
)
_NOTE = f"INSERT INTO {MOVING} (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class SqliteSide:
    """A SQLite file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = f"sqlite:///{path}"
        self._dog = Watchdog()
        self._forms: dict[str, RowForm] = {}
        self._locked: apsw.Connection | None = None
        self._syncs_less = False

    async def open(self, model: Model) -> None:
        self._model = model
        self._forms = {resource.table: RowForm(resource) for resource in model.resources.values()}
        try:
            self._db = SqliteConnection(self.path, self._dog, write=True).db
            self._db.execute("PRAGMA foreign_keys=OFF").fetchall()
        except apsw.Error as error:
            raise StartError(f"The SQLite database {self.path} cannot be opened: {error}.") from None

    async def close(self) -> None:
        self._db.close()
        self._dog.close()

    # the source

    async def faults(self, text_only: bool) -> list[str]:
        faults = []
        for table, form in self._forms.items():
            for column in form.columns:
                test = column.scalar.sqlite_test.replace("{}", "{0}").format(column.quoted)
                bad = [f"NOT coalesce(({test}), false)"] if test else []
                if column.scalar.sqlite == "TEXT":
                    bad.append(f"typeof({column.quoted}) <> 'text'")
                    bad += [f"instr({column.quoted}, char(0)) > 0"] if text_only else []
                if not bad:
                    continue
                where = f"{column.quoted} IS NOT NULL AND ({' OR '.join(bad)})"
                count, first = self._row(f"SELECT count(*), min(id) FROM {_name(table)} WHERE {where}")
                if count:
                    faults.append(f"{table}.{column.name} of {count} rows is no {column.scalar}, first that of {first}")
        dangling = self._all("PRAGMA foreign_key_check")
        if dangling:
            faults.append(f"{len(dangling)} references lead nowhere, the first in {dangling[0][0]}")
        return faults

    async def count(self, table: str) -> int:
        return int(self._row(f"SELECT count(*) FROM {_name(table)}")[0])

    async def rows(self, table: str, after: Any, most: int) -> list[Row]:
        beyond, values = ("", [most]) if after is None else (" WHERE id > ?", [after, most])
        return self._rows(table, f"{beyond} ORDER BY id LIMIT ?", values)

    async def rows_of(self, table: str, ids: Sequence[str]) -> list[Row]:
        keys = json.dumps([int(id) for id in ids] if self._forms[table].key is INTEGER_ID else list(ids))
        return self._rows(table, " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", [keys])

    def _rows(self, table: str, tail: str, values: Sequence[Any]) -> list[Row]:
        form = self._forms[table]
        listed = ", ".join(column.quoted for column in form.columns)
        rows = self._all(f"SELECT {listed} FROM {_name(table)}{tail}", values)
        nested = [(index, column.scalar) for index, column in enumerate(form.columns) if column.name in form.nested]
        if not nested:
            return rows
        whole = []
        for row in rows:
            values = list(row)
            for index, scalar in nested:
                values[index] = None if row[index] is None else normalised(scalar, row[index])
            whole.append(tuple(values))
        return whole

    async def head(self) -> Head:
        return Head(*self._row(_HEAD))

    async def changes(self, after: int, until: int, most: int) -> list[StoredChange]:
        changes = []
        for *plain, old, new in self._all(_CHANGES, (after, until, most)):
            form = self._forms.get(plain[3])
            images = (form.normalised(old), form.normalised(new)) if form is not None else (old, new)
            changes.append(StoredChange(*plain, *images))
        return changes

    async def audit(self, after: int, most: int) -> list[AuditEntry]:
        if not self._has_audit():
            return []
        entries = []
        for row in self._all(_AUDIT, (after, most)):
            entry = AuditEntry(*row)
            if (form := self._forms.get(entry.resource)) is not None:
                entry = entry._replace(old=form.normalised(entry.old), new=form.normalised(entry.new))
            entries.append(entry)
        return entries

    def _has_audit(self) -> bool:
        return bool(self._all("SELECT 1 FROM sqlite_schema WHERE name = 'diptych_audit'"))

    async def audit_rest(self) -> AuditRest | None:
        if not self._has_audit():
            return None
        head = self._row("SELECT position, entry, hash, first, first_hash FROM diptych_audit_head")
        return AuditRest(head, self._all(_ACTS))

    async def put_audit(self, entries: Sequence[AuditEntry], state: Mapping[str, str]) -> None:
        marks = ", ".join("?" * len(AuditEntry._fields))
        with self._transaction():
            self._db.executemany(f"INSERT INTO diptych_audit ({AUDIT_COLUMNS}) VALUES ({marks})", entries)
            self._note(state)

    async def put_audit_rest(self, rest: AuditRest) -> None:
        with self._transaction():
            self._db.execute(
                "UPDATE diptych_audit_head SET position = ?, entry = ?, hash = ?, first = ?, first_hash = ?", rest.head
            )
            self._db.execute("DELETE FROM diptych_audit WHERE entry < (SELECT first FROM diptych_audit_head)")
            self._db.executemany(
                "INSERT OR REPLACE INTO diptych_acts (last, first, act) VALUES (?1, ?1, ?2)", rest.acts
            )

    async def system_tables(self) -> list[str]:
        names = [name for (name,) in self._all(_TABLES)]
        return [name for name in names if name not in NOT_COPIED and not name.startswith("diptych_search_")]

    async def system_rows(self, table: str) -> tuple[list[str], list[Row]]:
        columns = [row[1] for row in self._all(f"PRAGMA table_info({_name(table)})")]
        return columns, self._all(f"SELECT {', '.join(map(_name, columns))} FROM {_name(table)}")

    async def last_ids(self) -> dict[str, int]:
        tables = [table for table, form in self._forms.items() if form.key is INTEGER_ID]
        given = dict(self._all("SELECT name, seq FROM sqlite_sequence")) if tables else {}
        return {table: given[table] for table in tables if table in given}

    @asynccontextmanager
    async def held_up(self) -> AsyncIterator[None]:
        lock = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
        lock.set_busy_timeout(10_000)
        try:
            lock.execute("BEGIN IMMEDIATE")
            self._locked = lock
            yield
            lock.execute("COMMIT")
        except apsw.BusyError:
            raise StartError("Others are writing all the time; try again.") from None
        finally:
            self._locked = None
            lock.close()

    async def close_to_writes(self, target: str) -> None:
        assert self._locked is not None
        execute = self._locked.execute
        execute(f"CREATE TABLE {MOVED} (target TEXT NOT NULL, at TEXT NOT NULL)")
        execute(f"INSERT INTO {MOVED} VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", (target,))
        for table in (*self._forms, *await self.system_tables()):
            for event in ("INSERT", "UPDATE", "DELETE"):
                name = _name(f"diptych_closed_{event.lower()}_{table}")
                refuse = f"SELECT RAISE(ABORT, '{MOVED_TEXT}')"
                execute(f"CREATE TRIGGER {name} BEFORE {event} ON {_name(table)} BEGIN {refuse}; END")

    async def moved_to(self) -> str:
        there = self._all("SELECT 1 FROM sqlite_schema WHERE name = ?", (MOVED,))
        return str(self._row(f"SELECT target FROM {MOVED}")[0]) if there else ""

    # the target

    async def is_empty(self) -> bool:
        there = {name for (name,) in self._all("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        tables = [table for table in (*self._forms, "diptych_accounts") if table in there]
        return not any(self._row(f"SELECT EXISTS (SELECT 1 FROM {_name(table)})")[0] for table in tables)

    async def prepare(self) -> None:
        store = SqliteStore(self.path)
        await store.open(self._model)
        await store.close()
        with self._transaction():
            triggers = self._strip()
            self._db.execute(f"CREATE TABLE {MOVING} (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._note({"triggers": json.dumps([text for _, text in triggers])})

    async def suspend(self) -> None:
        with self._transaction():
            self._strip()

    def _strip(self) -> list[tuple[str, str]]:
        triggers: list[tuple[str, str]] = self._all(_TRIGGERS)
        for name, _ in triggers:
            self._db.execute(f"DROP TRIGGER {_name(name)}")
        return triggers

    async def state(self) -> dict[str, str]:
        if not self._syncs_less:  # a chunk that is lost is copied again: its state is lost with it
            self._db.execute("PRAGMA synchronous=NORMAL").fetchall()
            self._syncs_less = True
        if not self._all("SELECT 1 FROM sqlite_schema WHERE name = ?", (MOVING,)):
            return {}
        return dict(self._all(f"SELECT name, value FROM {MOVING}"))

    async def put(self, table: str, ids: Sequence[str], rows: Sequence[Row], state: Mapping[str, str]) -> None:
        form = self._forms[table]
        listed = ", ".join(column.quoted for column in form.columns)
        marks = ", ".join("?" * len(form.columns))
        with self._transaction():
            if ids:
                delete = f"DELETE FROM {_name(table)} WHERE id IN (SELECT value FROM json_each(?))"
                self._db.execute(delete, (json.dumps([int(i) for i in ids] if form.key is INTEGER_ID else [*ids]),))
            try:
                self._db.executemany(f"INSERT INTO {_name(table)} ({listed}) VALUES ({marks})", rows)
            except apsw.ConstraintError as error:
                violation = violation_of_sqlite(error)
                if violation is not None and violation.kind == "unique":
                    raise Clash(table, error) from error
                raise
            self._note(state)

    async def put_changes(self, changes: Sequence[StoredChange], state: Mapping[str, str]) -> None:
        insert = (
            "INSERT INTO diptych_feed (position, mark, at, resource, row_id, old, new) VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        with self._transaction():
            self._db.executemany(insert, changes)
            self._note(state)

    async def put_system(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if create := optional_table(table, "sqlite"):
            self._db.execute(create)
        marks = ", ".join("?" * len(columns))
        with self._transaction():
            self._db.execute(f"DELETE FROM {_name(table)}")
            insert = f"INSERT INTO {_name(table)} ({', '.join(map(_name, columns))}) VALUES ({marks})"
            self._db.executemany(insert, rows)

    async def complete(self, head: Head, last_ids: Mapping[str, int]) -> None:
        triggers = json.loads((await self.state())["triggers"])
        self._db.execute("PRAGMA synchronous=FULL").fetchall()
        with self._transaction():
            there = {text for _, text in self._all(_TRIGGERS)}
            for text in triggers:
                if text not in there:
                    self._db.execute(text)
            self._db.execute("UPDATE diptych_feed_head SET feed = ?", (head.feed,))
            self._db.execute("DELETE FROM diptych_feed WHERE position < ?", (head.oldest,))
            for table, last in last_ids.items():
                self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
                self._db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))

    async def release(self) -> None:
        self._db.execute(f"DROP TABLE IF EXISTS {MOVING}")

    def _note(self, state: Mapping[str, str]) -> None:
        self._db.executemany(_NOTE, state.items())

    def _all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._db.execute(statement, values).fetchall()

    def _row(self, statement: str) -> Any:
        return self._all(statement)[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._db:
            yield


def _name(name: str) -> str:
    return identifier(name).text
