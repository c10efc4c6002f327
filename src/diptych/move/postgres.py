"""A PostgreSQL database as the source or the target of a move."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from diptych.compile.fragment import identifier
from diptych.compile.tables import catch_up
from diptych.db.postgres.ddl import patiently
from diptych.db.postgres.store import PostgresStore
from diptych.db.violations import MOVED_STATE, MOVED_TEXT
from diptych.model.model import Model
from diptych.model.scalars import DATETIME, INTEGER_ID
from diptych.move.postgres_audit import ACTS, AUDIT, OWN_XID, PUT_ACTS, PUT_AUDIT
from diptych.move.postgres_values import ColumnForm, RowForm
from diptych.move.side import (
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

_Image = TypeVar("_Image", StoredChange, AuditEntry)
_SCHEMA = "quote_ident(current_schema())::regnamespace"
_TABLES = (
    f"SELECT relname::text FROM pg_class WHERE relnamespace = {_SCHEMA} AND relkind = 'r' "
    "AND (relname = ANY ($1::text[]) OR relname ~ '^diptych_') ORDER BY relname"
)
_REFERENCES = (
    "SELECT t.relname::text, k.conname::text, pg_get_constraintdef(k.oid) FROM pg_constraint k "
    f"JOIN pg_class t ON t.oid = k.conrelid WHERE k.contype = 'f' AND t.relnamespace = {_SCHEMA} "
    "AND t.relname = ANY ($1::text[])"
)
_AT = DATETIME.postgres_out.format("at")
_CHANGES = (
    f"SELECT position, mark, {_AT}, resource, row_id, old::text, new::text FROM diptych_feed "
    "WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3"
)
_HEAD = (
    "SELECT feed, CASE WHEN f.position IS NULL THEN 0 ELSE oldest END, coalesce(f.position, 0) FROM diptych_feed_head "
    "LEFT JOIN LATERAL (SELECT position FROM diptych_feed WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1) f "
    "ON true"
)
_PUT_CHANGES = (
    "INSERT INTO diptych_feed (id, position, mark, at, resource, row_id, old, new) "
    "SELECT position, position, mark, at::timestamptz, resource, row_id, old::json, new::json FROM unnest("
    "$1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) "
    "AS f (position, mark, at, resource, row_id, old, new)"
)
_NOTE = (
    f"INSERT INTO {MOVING} (name, value) SELECT * FROM unnest($1::text[], $2::text[]) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SETTINGS = (
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; "
    # a chunk is read by the index, whatever the statistics say, and not by a sort of the whole table for each
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0"
)
_CLOSED = f"""
    CREATE FUNCTION diptych_closed() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN RAISE EXCEPTION '{MOVED_TEXT}' USING ERRCODE = '{MOVED_STATE}'; END $body$
"""


class PostgresSide:
    """A PostgreSQL database, by its URL."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        address = urlsplit(store.url)
        self.name = f"postgresql://{address.hostname or ''}{f':{address.port}' if address.port else ''}{address.path}"
        self._forms: dict[str, RowForm] = {}
        self._locked: asyncpg.Connection | None = None

    async def open(self, model: Model) -> None:
        self._model = model
        self._forms = {resource.table: RowForm(resource) for resource in model.resources.values()}
        self._db = await self._connection()

    async def _connection(self) -> asyncpg.Connection:
        connection = await self._store.connection("diptych moves")
        await connection.execute(_SETTINGS)
        return connection

    async def close(self) -> None:
        await self._db.close()

    # the source

    async def faults(self, text_only: bool) -> list[str]:
        faults = []
        for table, form in self._forms.items():
            for column in form.columns:
                test = column.scalar.postgres_test.replace("{}", "{0}").format(column.quoted)
                if not test:
                    continue
                where = f"{column.quoted} IS NOT NULL AND NOT coalesce(({test}), false)"
                query = f"SELECT count(*), min(id::text) FROM {_name(table)} WHERE {where}"
                ((count, first),) = await self._db.fetch(query)
                if count:
                    faults.append(f"{table}.{column.name} of {count} rows is no {column.scalar}, first that of {first}")
        return faults

    async def count(self, table: str) -> int:
        async with self._db.transaction():
            await self._db.execute("SET LOCAL enable_seqscan = on")
            return int(await self._db.fetchval(f"SELECT count(*) FROM {_name(table)}"))

    async def rows(self, table: str, after: Any, most: int) -> list[Row]:
        key = self._forms[table].columns[self._forms[table].id_index]
        beyond, values = ("", []) if after is None else (f" WHERE id > {_bound(1, key)}", [after])
        return await self._rows(table, f"{beyond} ORDER BY {_name(table)}.id LIMIT {most:d}", values)

    async def rows_of(self, table: str, ids: Sequence[str]) -> list[Row]:
        tail = f" WHERE id = ANY ({self._ids(table)}) ORDER BY {_name(table)}.id"
        return await self._rows(table, tail, [self._keys(table, ids)])

    async def _rows(self, table: str, tail: str, values: Sequence[Any]) -> list[Row]:
        """Rows in the order of the column `id`: by its bare name, ORDER BY means the text that is selected."""
        form = self._forms[table]
        listed = ", ".join(column.select for column in form.columns)
        return [
            form.to_sqlite(row) for row in await self._db.fetch(f"SELECT {listed} FROM {_name(table)}{tail}", *values)
        ]

    def _ids(self, table: str) -> str:
        """The bound list of ids of a table."""
        kind, _, cast = self._forms[table].key.postgres_param.partition("::")
        return f"$1::{kind}[]" + (f"::{cast}[]" if cast else "")

    def _keys(self, table: str, ids: Sequence[str]) -> list[Any]:
        return [int(id) for id in ids] if self._forms[table].key is INTEGER_ID else list(ids)

    async def head(self) -> Head:
        while (numbered := await self._db.fetchval("SELECT diptych_number(2000)")) not in range(2000):
            if numbered < 0:  # another one is at it
                await asyncio.sleep(0.005)
        return Head(*(await self._db.fetch(_HEAD))[0])

    async def changes(self, after: int, until: int, most: int) -> list[StoredChange]:
        changes = []
        for *plain, old, new in await self._db.fetch(_CHANGES, after, until, most):
            form = self._forms.get(plain[3])
            images = (form.image_to_sqlite(old), form.image_to_sqlite(new)) if form is not None else (old, new)
            changes.append(StoredChange(*plain, *images))
        return changes

    async def audit(self, after: int, most: int) -> list[AuditEntry]:
        if not await self._has_audit():
            return []
        entries = []
        for row in await self._db.fetch(AUDIT, after, most):
            entry = AuditEntry(*row)
            if (form := self._forms.get(entry.resource)) is not None:
                entry = entry._replace(old=form.image_to_sqlite(entry.old), new=form.image_to_sqlite(entry.new))
            entries.append(entry)
        return entries

    async def _has_audit(self) -> bool:
        return bool(await self._db.fetchval("SELECT to_regclass('diptych_audit') IS NOT NULL"))

    async def audit_rest(self) -> AuditRest | None:
        if not await self._has_audit():
            return None
        (head,) = await self._db.fetch("SELECT position, entry, hash, first, first_hash FROM diptych_audit_head")
        return AuditRest(tuple(head), [(position, act) for position, act in await self._db.fetch(ACTS)])

    async def put_audit(self, entries: Sequence[AuditEntry], state: Mapping[str, str]) -> None:
        await self._put(PUT_AUDIT, entries, state)

    async def put_audit_rest(self, rest: AuditRest) -> None:
        positions, acts = [position for position, _ in rest.acts], [act for _, act in rest.acts]
        async with self._db.transaction():
            await self._db.execute(
                "UPDATE diptych_audit_head SET position = $1, entry = $2, hash = $3, first = $4, first_hash = $5",
                *rest.head,
            )
            await self._db.execute("DELETE FROM diptych_audit WHERE entry < (SELECT first FROM diptych_audit_head)")
            await self._db.execute(f"UPDATE diptych_feed SET xid = {OWN_XID} WHERE position = ANY ($1)", positions)
            await self._db.execute(PUT_ACTS, positions, acts)

    async def system_tables(self) -> list[str]:
        names = [name for (name,) in await self._db.fetch(_TABLES, [])]
        return [name for name in names if name not in NOT_COPIED]

    async def system_rows(self, table: str) -> tuple[list[str], list[Row]]:
        columns = [name for name, _ in await self._types(table)]
        rows = await self._db.fetch(f"SELECT {', '.join(map(_name, columns))} FROM {_name(table)}")
        return columns, [tuple(row) for row in rows]

    async def _types(self, table: str) -> list[tuple[str, str]]:
        query = (
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        return [(name, kind) for name, kind in await self._db.fetch(query, table)]

    async def last_ids(self) -> dict[str, int]:
        last = "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass)"
        tables = [table for table, form in self._forms.items() if form.key is INTEGER_ID]
        given = {table: await self._db.fetchval(last, _name(table)) for table in tables}
        return {table: number for table, number in given.items() if number is not None}

    @asynccontextmanager
    async def held_up(self) -> AsyncIterator[None]:
        audit = ("diptych_audit", "diptych_audit_head") if await self._has_audit() else ()
        tables = ", ".join(map(_name, (*self._forms, *await self.system_tables(), *audit)))
        lock = await self._connection()
        try:
            while True:  # behind a long transaction, others go on between two attempts
                transaction = lock.transaction()
                await transaction.start()
                try:
                    await lock.execute("SET LOCAL lock_timeout = 2000")
                    await lock.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
                    break
                except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                    await transaction.rollback()
                    await asyncio.sleep(0.2)
            self._locked = lock
            yield
            await transaction.commit()
        finally:
            self._locked = None
            await lock.close()

    async def close_to_writes(self, target: str) -> None:
        assert self._locked is not None
        execute = self._locked.execute
        await execute(f"CREATE TABLE {MOVED} (target text NOT NULL, at text NOT NULL)")
        await execute(
            f"INSERT INTO {MOVED} VALUES ($1, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'))",
            target,
        )
        await execute(_CLOSED)
        for table in (*self._forms, *await self.system_tables()):
            await execute(
                f"CREATE TRIGGER diptych_closed BEFORE INSERT OR UPDATE OR DELETE ON {_name(table)} "
                "FOR EACH STATEMENT EXECUTE FUNCTION diptych_closed()"
            )

    async def moved_to(self) -> str:
        there = await self._db.fetchval("SELECT to_regclass($1) IS NOT NULL", MOVED)
        return str(await self._db.fetchval(f"SELECT target FROM {MOVED}")) if there else ""

    # the target

    async def is_empty(self) -> bool:
        there = {name for (name,) in await self._db.fetch(_TABLES, [*self._forms])}
        for table in (*self._forms, "diptych_accounts"):
            if table in there and await self._db.fetchval(f"SELECT EXISTS (SELECT 1 FROM {_name(table)})"):
                return False
        return True

    async def prepare(self) -> None:
        await self._store.open(self._model)
        await self._store.close()

        async def strip() -> None:
            references = await self._strip()
            await self._db.execute(f'CREATE TABLE {MOVING} (name text COLLATE "C" PRIMARY KEY, value text NOT NULL)')
            await self._note({"references": json.dumps([[*row] for row in references])})

        await patiently(self._db, strip)

    async def suspend(self) -> None:
        await patiently(self._db, self._strip)

    async def _strip(self) -> list[Any]:
        references: list[Any] = await self._db.fetch(_REFERENCES, [*self._forms])
        for table, name, _ in references:
            await self._db.execute(f'ALTER TABLE {_name(table)} DROP CONSTRAINT "{name}"')
        for table in self._forms:
            await self._db.execute(f"ALTER TABLE {_name(table)} DISABLE TRIGGER USER")
        return references

    async def state(self) -> dict[str, str]:
        if not await self._db.fetchval("SELECT to_regclass($1) IS NOT NULL", MOVING):
            return {}
        return {name: value for name, value in await self._db.fetch(f"SELECT name, value FROM {MOVING}")}

    async def put(self, table: str, ids: Sequence[str], rows: Sequence[Row], state: Mapping[str, str]) -> None:
        form = self._forms[table]
        listed = ", ".join(column.quoted for column in form.columns)
        names = [f"c{index}" for index in range(len(form.columns))]
        values = ", ".join(f"{name}{column.cast}" for name, column in zip(names, form.columns, strict=True))
        arrays = ", ".join(f"${index + 1}::{column.array}" for index, column in enumerate(form.columns))
        insert = (
            f"INSERT INTO {_name(table)} ({listed}) SELECT {values} FROM unnest({arrays}) AS v ({', '.join(names)})"
        )
        by_column = [
            form.to_postgres(column, [row[index] for row in rows]) for index, column in enumerate(form.columns)
        ]
        async with self._db.transaction():
            if ids:
                delete = f"DELETE FROM {_name(table)} WHERE id = ANY ({self._ids(table)})"
                await self._db.execute(delete, self._keys(table, ids))
            if rows:
                try:
                    await self._db.execute(insert, *by_column)
                except (asyncpg.UniqueViolationError, asyncpg.ExclusionViolationError) as error:
                    raise Clash(table, error) from error
            await self._note(state)

    async def put_changes(self, changes: Sequence[StoredChange], state: Mapping[str, str]) -> None:
        await self._put(_PUT_CHANGES, changes, state)

    async def _put(self, insert: str, images: Sequence[_Image], state: Mapping[str, str]) -> None:
        """Insert changes or entries of the audit log, whose rows are JSON as SQLite stores it."""
        rows = [self._stored(image) for image in images]
        async with self._db.transaction():
            if rows:
                await self._db.execute(insert, *map(list, zip(*rows, strict=True)))
            await self._note(state)

    def _stored(self, image: _Image) -> _Image:
        form = self._forms.get(image.resource)
        if form is None:
            return image
        return image._replace(old=form.image_to_postgres(image.old), new=form.image_to_postgres(image.new))

    async def put_system(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if create := optional_table(table, "postgres"):
            await self._db.execute(create)
        kinds = dict(await self._types(table))
        arrays = ", ".join(f"${index + 1}::{kinds[column]}[]" for index, column in enumerate(columns))
        async with self._db.transaction():
            await self._db.execute(f"DELETE FROM {_name(table)}")
            if rows:
                insert = f"INSERT INTO {_name(table)} ({', '.join(map(_name, columns))}) SELECT * FROM unnest({arrays})"
                await self._db.execute(insert, *map(list, zip(*rows, strict=True)))

    async def complete(self, head: Head, last_ids: Mapping[str, int]) -> None:
        references = json.loads((await self.state())["references"])
        async with self._db.transaction():
            there = {(table, name) for table, name, _ in await self._db.fetch(_REFERENCES, [*self._forms])}
            for table, name, text in references:
                if (table, name) not in there:
                    await self._db.execute(f'ALTER TABLE {_name(table)} ADD CONSTRAINT "{name}" {text} NOT VALID')
            for table in self._forms:
                await self._db.execute(f"ALTER TABLE {_name(table)} ENABLE TRIGGER USER")
            await self._continue_feed(head)
            for resource in self._model.resources.values():
                if resource.key is INTEGER_ID:
                    await self._db.execute(catch_up(resource))
            for table, last in last_ids.items():
                await self._db.execute(
                    "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass, $2)", _name(table), last
                )

    async def _continue_feed(self, head: Head) -> None:
        await self._db.execute(
            "UPDATE diptych_feed_head SET feed = $1, oldest = $2, settled = $3, settling = $3, since = NULL",
            head.feed,
            max(1, head.oldest),
            head.position,
        )
        await self._db.execute("DELETE FROM diptych_feed WHERE position < $1", head.oldest)
        if head.position:
            await self._db.execute("SELECT setval('diptych_feed_id_seq', $1)", head.position)

    async def release(self) -> None:
        await self._db.execute(f"DROP TABLE IF EXISTS {MOVING}")
        await self._db.execute("RESET enable_seqscan; RESET enable_bitmapscan")  # foreign keys are validated by joins
        for table, name, text in await self._db.fetch(_REFERENCES, [*self._forms]):
            if text.endswith(" NOT VALID"):
                await self._db.execute(f'ALTER TABLE {_name(table)} VALIDATE CONSTRAINT "{name}"')

    async def _note(self, state: Mapping[str, str]) -> None:
        if state:
            await self._db.execute(_NOTE, [*state], [*state.values()])


def _bound(number: int, column: ColumnForm) -> str:
    return f"${number}::{column.scalar.postgres_param}"


def _name(name: str) -> str:
    return identifier(name).text
