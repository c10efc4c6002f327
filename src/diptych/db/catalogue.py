"""Reads the catalogue of a database: tables and columns, indexes, foreign keys, and the record of what columns mean."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from diptych.compile.catalogue import Catalogue, CatalogueColumn, CompositeReference, ExistingReference
from diptych.compile.indexes import ExistingIndex
from diptych.compile.meaning import FORMAT, Meaning, decode_meanings
from diptych.compile.system.upgrade import SETTING, SYSTEM_VERSION, SystemVersion
from diptych.compile.tables import RESERVED_PREFIX
from diptych.errors import StartError

if TYPE_CHECKING:
    import asyncpg

_SQLITE_COLUMNS = """
    SELECT t.name, c.name, c.type, NOT (c."notnull" OR c.pk), c.dflt_value IS NOT NULL, t.type = 'view'
    FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type IN ('table', 'view')
"""
_SQLITE_INDEXES = """
    SELECT i.name, t.name, i."unique", iif(i.partial, NULL, iif(k.coll = 'BINARY', coalesce(k.name, ''), ''))
    FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_xinfo(i.name) k
    WHERE t.type = 'table' AND k.key ORDER BY i.name, k.seqno
"""
"""A row for each column of each index; NULL if the index does not have all rows."""
_SQLITE_REFERENCES = """
    SELECT '', t.name, k."from", k."table", k.on_delete, coalesce(k."to", '')
    FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) k WHERE t.type = 'table'
    GROUP BY t.name, k.id HAVING count(*) = 1
"""
_SQLITE_COMPOSITES = """
    SELECT k.name, k.columns, k."table", k.keys, k.on_delete FROM (
      SELECT t.name AS name, k."table", k.on_delete, json_group_array(k."from") AS columns,
        json_group_array(coalesce(k."to", '')) AS keys
      FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) k WHERE t.type = 'table'
      GROUP BY t.name, k.id HAVING count(*) > 1) k
"""
_SQLITE_CHECKS = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK%'"
_CHECK = re.compile(r'CONSTRAINT "([a-z0-9_]+)" CHECK')
_SEARCHES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'diptych_search_%'"
_RECORD = "SELECT name, format, columns FROM diptych_schema"
_VERSION = f"SELECT value FROM diptych_settings WHERE name = '{SETTING}'"


def sqlite_catalogue(db: apsw.Connection) -> Catalogue:
    tables: dict[str, dict[str, CatalogueColumn]] = {}
    views: dict[str, dict[str, CatalogueColumn]] = {}
    system: dict[str, dict[str, CatalogueColumn]] = {}
    for table, column, kind, nullable, filled, is_view in db.execute(_SQLITE_COLUMNS):
        home = system if table.startswith(RESERVED_PREFIX) else views if is_view else tables
        home.setdefault(table, {})[column] = CatalogueColumn(kind, bool(nullable), bool(filled))
    version = _version(db.execute(_VERSION) if "diptych_settings" in system else ())
    indexes = []
    for (name, table, unique), rows in groupby(db.execute(_SQLITE_INDEXES), key=lambda row: row[:3]):
        columns = tuple(column for *_, column in rows if column is not None)
        indexes.append(ExistingIndex(name, table, columns, bool(unique)))
    references = _references(db.execute(_SQLITE_REFERENCES))
    checks = {table: frozenset(_CHECK.findall(text)) for table, text in db.execute(_SQLITE_CHECKS)}
    searches = frozenset(name for (name,) in db.execute(_SEARCHES))
    record = _recorded(db.execute(_RECORD) if "diptych_schema" in system else ())
    composites = [
        CompositeReference(table, tuple(json.loads(columns)), target, tuple(json.loads(keys)), _action(action))
        for table, columns, target, keys, action in db.execute(_SQLITE_COMPOSITES)
    ]
    return Catalogue(tables, indexes, references, checks, searches, views, record, composites, system, version)


_POSTGRES_COLUMNS = """
    SELECT c.relname, a.attname, CASE y.typtype
        WHEN 'd' THEN format_type(y.typbasetype, y.typtypmod) ELSE format_type(a.atttypid, a.atttypmod) END
        || coalesce(' COLLATE "' || l.collname || '"', ''), NOT a.attnotnull,
      a.atthasdef OR a.attidentity <> '', c.relkind IN ('v', 'm')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
      LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace = quote_ident(current_schema())::regnamespace
      AND a.attnum > 0 AND NOT a.attisdropped
"""
_POSTGRES_INDEXES = """
    SELECT c.relname::text, t.relname::text, i.indisunique, CASE
      WHEN i.indpred IS NULL AND i.indisvalid AND m.amname = 'btree' THEN ARRAY(
        SELECT coalesce(a.attname::text, '') FROM unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
          LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            AND a.attcollation = i.indcollation[k.place::int - 1]
        WHERE k.place <= i.indnkeyatts ORDER BY k.place)
      ELSE '{}' END
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
      JOIN pg_am m ON m.oid = c.relam
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
"""
_POSTGRES_REFERENCES = """
    SELECT k.conname::text, t.relname::text, a.attname::text, o.relname::text, CASE k.confdeltype
      WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
      ELSE 'SET DEFAULT' END, i.attname::text
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_class o ON o.oid = k.confrelid
      JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
      JOIN pg_attribute i ON i.attrelid = k.confrelid AND i.attnum = k.confkey[1]
    WHERE k.contype = 'f' AND cardinality(k.conkey) = 1
      AND t.relnamespace = quote_ident(current_schema())::regnamespace
"""
_POSTGRES_COMPOSITES = """
    SELECT t.relname::text, ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS c (attnum, place)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.attnum ORDER BY c.place), o.relname::text,
      ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS c (attnum, place)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = c.attnum ORDER BY c.place),
      CASE k.confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE'
        WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_class o ON o.oid = k.confrelid
    WHERE k.contype = 'f' AND cardinality(k.conkey) > 1
      AND t.relnamespace = quote_ident(current_schema())::regnamespace
"""
_POSTGRES_CHECKS = """
    SELECT t.relname::text, array_agg(k.conname::text) FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
    WHERE k.contype = 'c' AND t.relnamespace = quote_ident(current_schema())::regnamespace GROUP BY t.relname
"""


async def postgres_catalogue(connection: asyncpg.Connection) -> Catalogue:
    """The catalogue of the current schema of a PostgreSQL database."""
    tables: dict[str, dict[str, CatalogueColumn]] = {}
    views: dict[str, dict[str, CatalogueColumn]] = {}
    system: dict[str, dict[str, CatalogueColumn]] = {}
    for table, column, *description, is_view in await connection.fetch(_POSTGRES_COLUMNS):
        home = system if table.startswith(RESERVED_PREFIX) else views if is_view else tables
        home.setdefault(table, {})[column] = CatalogueColumn(*description)
    version = _version(await connection.fetch(_VERSION) if "diptych_settings" in system else ())
    indexes = [
        ExistingIndex(name, table, tuple(columns), unique)
        for name, table, unique, columns in await connection.fetch(_POSTGRES_INDEXES)
    ]
    references = _references(await connection.fetch(_POSTGRES_REFERENCES))
    checks = {table: frozenset(names) for table, names in await connection.fetch(_POSTGRES_CHECKS)}
    record = _recorded(await connection.fetch(_RECORD) if "diptych_schema" in system else ())
    searches = frozenset(index.name for index in indexes if index.name.startswith("diptych_search_"))
    composites = [
        CompositeReference(table, tuple(columns), target, tuple(keys), _action(action))
        for table, columns, target, keys, action in await connection.fetch(_POSTGRES_COMPOSITES)
    ]
    return Catalogue(tables, indexes, references, checks, searches, views, record, composites, system, version)


def _references(rows: Iterable[Any]) -> list[ExistingReference]:
    return [
        ExistingReference(name, table, column, target, _action(action), key)
        for name, table, column, target, action, key in rows
    ]


def _action(action: str) -> str:
    """What a deletion does, in the words of the model."""
    return "restrict" if action == "NO ACTION" else action.lower()


def _recorded(rows: Iterable[Any]) -> dict[str, dict[str, Meaning]]:
    """The record; refused if its format is that of a later version."""
    record = {}
    for name, number, columns in rows:
        if number > FORMAT:
            raise StartError("The database was last opened by a later version of Diptych, and needs that version.")
        try:
            record[name] = decode_meanings(columns)
        except msgspec.MsgspecError as error:
            raise StartError(f"The row {name} of diptych_schema cannot be read: {error}.") from None
    return record


def _version(rows: Iterable[Any]) -> SystemVersion | None:
    """The version of the system tables; refused if it is a later one that this code cannot work with."""
    for (text,) in rows:
        try:
            there = SystemVersion.decode(text)
        except msgspec.MsgspecError as error:
            raise StartError(f"The row {SETTING} of diptych_settings cannot be read: {error}.") from None
        if there.compatible_from > SYSTEM_VERSION:
            raise StartError(
                f"The system tables of the database have version {there.version}, and this version of Diptych knows "
                f"{SYSTEM_VERSION}: it needs one that knows {there.compatible_from} or later."
            )
        return there
    return None
