"""The triggers of tables that Diptych did not make: what they need to know of a table, and what takes them off.

They depend on the table more than on the model, so that two models of one table make the same triggers: they log every
column, but for those of bytes that the model does not have.
"""

from __future__ import annotations

from collections.abc import Iterable

from diptych.compile.affinity import affinity
from diptych.compile.catalogue import Catalogue
from diptych.compile.fragment import identifier
from diptych.compile.system.feed_postgres import existing_function
from diptych.compile.system.feed_sqlite import sqlite_feed
from diptych.compile.system.object import DialectName, FeedTable
from diptych.model.defs import ResourceDef
from diptych.model.model import Model
from diptych.model.naming import MAPPED
from diptych.model.scalars import STRING


def existing_table(resource: ResourceDef, have: Catalogue) -> FeedTable:
    """A table that exists, as its triggers need it."""
    there = have.tables.get(resource.table, {})
    stored = {field.column: field for field in resource.fields.values() if field.stored}
    columns = [
        name
        for name, column in there.items()
        if name in stored or (affinity(column.type) != "BLOB" and MAPPED.fullmatch(name))
    ]
    texts = [name for name, field in stored.items() if field.scalar is STRING or field.scalar.is_json]
    textual = [name for name in columns if name in texts or affinity(there[name].type) == "TEXT"]
    keys = {index.columns for index in have.indexes if index.table == resource.table and index.unique}
    unique = sorted(key for key in keys if key and {*key} <= {*columns} and key != resource.key_columns)
    return FeedTable(resource.table, columns, unique, texts, (), textual, resource.key_columns)


def existing_tables(model: Model) -> list[str]:
    """The tables of a model that Diptych did not make."""
    return [resource.table for resource in model.resources.values() if not resource.managed and not resource.is_view]


def take_off(model: Model, dialect: DialectName) -> Iterable[str]:
    """The statements that take all triggers off the tables that Diptych did not make."""
    for table in existing_tables(model):
        if dialect == "sqlite":
            parts = sqlite_feed([FeedTable(table, ("id",), key=("id",))])
            yield from (f'DROP TRIGGER IF EXISTS "{part.name}"' for part in parts if part.text)
            continue
        quoted = identifier(table).text
        yield f'DROP TRIGGER IF EXISTS "!diptych_feed" ON {quoted}'
        yield f'DROP TRIGGER IF EXISTS "!diptych_truncate" ON {quoted}'
        yield f"DROP FUNCTION IF EXISTS {existing_function(table)}()"


TRIGGERS: dict[DialectName, str] = {
    "sqlite": "SELECT CAST(json_group_array(DISTINCT tbl_name) AS BLOB) FROM sqlite_schema "
    "WHERE type = 'trigger' AND name = 'diptych_changed_' || tbl_name",
    "postgres": "SELECT convert_to(coalesce(json_agg(DISTINCT c.relname)::text, '[]'), 'UTF8') FROM pg_trigger t "
    "JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname = '!diptych_feed' "
    "AND c.relnamespace = quote_ident(current_schema())::regnamespace",
}
"""The query for the tables whose changes are logged, as JSON."""
