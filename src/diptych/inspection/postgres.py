"""Reads the tables and views of the current schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg

from diptych.errors import StartError
from diptych.inspection.found import FoundColumn, FoundDatabase, FoundReference, FoundTable, likely_keys

_HERE = "c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname NOT LIKE 'diptych\\_%'"
_TABLES = f"""
    SELECT c.oid, c.relname::text AS name, c.relkind IN ('v', 'm') AS is_view,
      obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND {_HERE} ORDER BY c.relname
"""
_COLUMNS = f"""
    SELECT a.attrelid, a.attname::text AS name, CASE y.typtype WHEN 'd' THEN format_type(y.typbasetype, y.typtypmod)
        WHEN 'e' THEN y.typname::text ELSE format_type(a.atttypid, a.atttypmod) END AS type,
      a.attnotnull AS required, a.attidentity <> '' AS counted, a.attgenerated <> '' AS computed,
      pg_get_expr(d.adbin, d.adrelid) AS default, col_description(a.attrelid, a.attnum) AS comment,
      ARRAY(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = a.atttypid ORDER BY e.enumsortorder) AS values
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
      LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm') AND {_HERE} ORDER BY a.attnum
"""
_CONSTRAINTS = f"""
    SELECT k.conrelid, k.contype::text AS kind, CASE o.relnamespace WHEN c.relnamespace THEN o.relname::text
        ELSE o.relnamespace::regnamespace || '.' || o.relname END AS target, k.confdeltype::text AS on_delete,
      pg_get_constraintdef(k.oid, true) AS text,
      ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (n, i)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.i) AS columns,
      ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (n, i)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.i) AS keys
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid LEFT JOIN pg_class o ON o.oid = k.confrelid
    WHERE {_HERE} ORDER BY k.conname
"""
_INDEXES = f"""
    SELECT i.indrelid, x.relname::text AS name, i.indpred IS NOT NULL OR i.indexprs IS NOT NULL AS odd,
      ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY u (n, i2)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.n
        WHERE u.i2 <= i.indnkeyatts ORDER BY u.i2) AS columns
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid
    WHERE i.indisunique AND NOT i.indisprimary AND {_HERE} ORDER BY x.relname
"""
_ELSEWHERE = """
    SELECT n.nspname::text, count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND n.nspname <> current_schema()
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' GROUP BY 1 ORDER BY 1
"""
_ACTIONS = {"a": "no action", "r": "restrict", "c": "cascade", "n": "set null", "d": "set default"}


async def inspect_postgres(url: str) -> FoundDatabase:
    """What the current schema of a database holds, read in one read-only transaction."""
    try:
        connection = await asyncpg.connect(url, timeout=5, server_settings={"application_name": "diptych"})
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StartError(f"The PostgreSQL database cannot be read: {error}.") from None
    try:
        async with connection.transaction(readonly=True):
            parts = [_by_table(await connection.fetch(query)) for query in (_COLUMNS, _CONSTRAINTS, _INDEXES)]
            tables = {}
            for row in await connection.fetch(_TABLES):
                columns, constraints, indexes = (part.get(row["oid"], []) for part in parts)
                found = _table(row, columns, constraints, indexes)
                if found.is_view:
                    found = FoundTable(
                        found.name, found.columns, True, await _view_key(connection, found), comment=found.comment
                    )
                tables[found.name] = found
            elsewhere = {name: count for name, count in await connection.fetch(_ELSEWHERE)}
            return FoundDatabase("postgres", tables, elsewhere)
    finally:
        await connection.close()


def _by_table(rows: Sequence[Any]) -> dict[int, list[Any]]:
    grouped: dict[int, list[Any]] = {}
    for row in rows:
        grouped.setdefault(row[0], []).append(row)
    return grouped


def _table(row: Any, columns: Sequence[Any], constraints: Sequence[Any], indexes: Sequence[Any]) -> FoundTable:
    key: tuple[str, ...] = next(
        (tuple(constraint["columns"]) for constraint in constraints if constraint["kind"] == "p"), ()
    )
    return FoundTable(
        row["name"],
        [_column(column, row["is_view"]) for column in columns],
        row["is_view"],
        key,
        [
            FoundReference(tuple(row["columns"]), row["target"], tuple(row["keys"]), _ACTIONS.get(row["on_delete"], ""))
            for row in constraints
            if row["kind"] == "f"
        ],
        [tuple(index["columns"]) for index in indexes if not index["odd"]],
        [row["text"].removeprefix("CHECK ") for row in constraints if row["kind"] == "c"],
        [
            *(
                f"the unique index {index['name']}, of some rows or of an expression"
                for index in indexes
                if index["odd"]
            ),
            *(f"the constraint {row['text']}" for row in constraints if row["kind"] == "x"),
        ],
        row["comment"] or "",
    )


def _column(row: Any, is_view: bool) -> FoundColumn:
    default = row["default"] or ""
    counted = row["counted"] or default.startswith("nextval(")
    return FoundColumn(
        row["name"],
        row["type"],
        is_view or not row["required"],
        "" if counted else default,
        counted,
        row["computed"],
        row["comment"] or "",
        tuple(row["values"]),
    )


async def _view_key(connection: Any, table: FoundTable) -> tuple[str, ...]:
    quoted = '"' + table.name.replace('"', '""') + '"'
    for name in likely_keys(table.columns):
        column = '"' + name.replace('"', '""') + '"'
        kind = next(item.type for item in table.columns if item.name == name)
        if kind.startswith(("smallint", "integer", "bigint", "text", "character varying", "uuid")):
            counts = await connection.fetchrow(f"SELECT count(*), count(DISTINCT {column}) FROM {quoted}")
            if counts[0] == counts[1] > 0:
                return (name,)
    return ()
