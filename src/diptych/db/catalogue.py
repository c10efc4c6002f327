"""What a database tells of itself: its tables with their columns, and their indexes. Nothing is changed by asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import apsw
import asyncpg

from diptych.compile.indexes import IndexFound
from diptych.compile.tables import RESERVED_PREFIX, Column, Schema
from diptych.model.model import Model


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tables of a database that are not Diptych's own, and all indexes."""

    tables: Schema
    indexes: Sequence[IndexFound] = ()

    def has_any_of(self, model: Model) -> bool:
        """Is there a table of the model? If not, all of them are made when the database is opened."""
        return any(resource.table in self.tables for resource in model.resources.values())


_SQLITE_COLUMNS = """
    SELECT t.name, c.name, c.type, NOT (c."notnull" OR c.pk)
    FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
"""
_SQLITE_INDEXES = """
    SELECT i.name, t.name, i."unique", iif(i.partial, NULL, iif(k.coll = 'BINARY', coalesce(k.name, ''), ''))
    FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_xinfo(i.name) k
    WHERE t.type = 'table' AND k.key ORDER BY i.name, k.seqno
"""
"""A row for each column of each index; NULL if the index does not have all rows."""


def sqlite_catalogue(db: apsw.Connection) -> Catalogue:
    """The catalogue of a SQLite database."""
    tables: dict[str, dict[str, Column]] = {}
    for table, column, kind, nullable in db.execute(_SQLITE_COLUMNS):
        if not table.startswith(RESERVED_PREFIX):
            tables.setdefault(table, {})[column] = Column(kind, bool(nullable))
    indexes = []
    for (name, table, unique), rows in groupby(db.execute(_SQLITE_INDEXES), key=lambda row: row[:3]):
        columns = tuple(column for *_, column in rows if column is not None)
        indexes.append(IndexFound(name, table, columns, bool(unique)))
    return Catalogue(tables, indexes)


_POSTGRES_COLUMNS = """
    SELECT c.relname, a.attname,
      format_type(a.atttypid, a.atttypmod) || coalesce(' COLLATE "' || l.collname || '"', ''), NOT a.attnotnull,
      a.atthasdef OR a.attidentity <> ''
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = quote_ident(current_schema())::regnamespace
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


async def postgres_catalogue(connection: asyncpg.Connection) -> Catalogue:
    """The catalogue of the current schema of a PostgreSQL database."""
    tables: dict[str, dict[str, Column]] = {}
    for table, column, *told in await connection.fetch(_POSTGRES_COLUMNS):
        if not table.startswith(RESERVED_PREFIX):
            tables.setdefault(table, {})[column] = Column(*told)
    indexes = [
        IndexFound(name, table, tuple(columns), unique)
        for name, table, unique, columns in await connection.fetch(_POSTGRES_INDEXES)
    ]
    return Catalogue(tables, indexes)
