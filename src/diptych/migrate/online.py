"""DDL beside a service that runs, on PostgreSQL: what takes long is done under weak locks.

A foreign key or CHECK is added NOT VALID and validated later; an index is made CONCURRENTLY; a column becomes NOT NULL
by a CHECK that is validated first, so that SET NOT NULL reads no rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from diptych.compile.catalogue import Catalogue
from diptych.compile.indexes import free_name
from diptych.compile.system.feed_postgres import postgres_feed
from diptych.compile.system.object import DialectName
from diptych.compile.system.object import FeedTable as TriggerTable
from diptych.compile.system.trash import REFERS
from diptych.migrate.ddl import default_ddl, index_ddl, key_name, quote, reference_ddl, type_ddl
from diptych.migrate.state import Column, Key
from diptych.migrate.step import Action, Alone, Validate
from diptych.model.naming import LONGEST


def relax_null(table: str, name: str, *, nullable: bool) -> str:
    return f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(name)} {'DROP' if nullable else 'SET'} NOT NULL"


def set_not_null(table: str, name: str) -> Iterator[Action]:
    alter, check = f"ALTER TABLE {quote(table)}", quote(f"{table}_{name}_not_null"[:LONGEST])
    yield f"{alter} DROP CONSTRAINT IF EXISTS {check}"
    yield f"{alter} ADD CONSTRAINT {check} CHECK ({quote(name)} IS NOT NULL) NOT VALID"
    yield Validate(f"{alter} VALIDATE CONSTRAINT {check}")
    yield relax_null(table, name, nullable=False)
    yield f"{alter} DROP CONSTRAINT {check}"


def fill_function(table: str, name: str) -> str:
    """The name of the function, and of the trigger, that fills a column where a service writes null."""
    digest = hashlib.sha256(f"{table}.{name}".encode()).hexdigest()[:8]
    return f"diptych_fill_{table}_{name}"[: LONGEST - 9] + f"_{digest}"


def fill_nulls(table: str, name: str, expression: str) -> Iterator[Action]:
    """The trigger that gives rows without a value the one that the others get, until `contract` drops it.

    So a service with the model before, which knows nothing of the column, can go on to write rows.
    """
    function, quoted, column = quote(fill_function(table, name)), quote(table), quote(name)
    value = f"SELECT {expression} INTO NEW.{column} FROM (SELECT NEW.*) AS {quoted}"
    yield (
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $fill$ "
        f"BEGIN IF NEW.{column} IS NULL THEN {value}; END IF; RETURN NEW; END $fill$"
    )
    yield f"DROP TRIGGER IF EXISTS {function} ON {quoted}"
    yield (f"CREATE TRIGGER {function} BEFORE INSERT OR UPDATE ON {quoted} FOR EACH ROW EXECUTE FUNCTION {function}()")


def drop_fill(table: str, name: str) -> str:
    return f"DROP FUNCTION IF EXISTS {quote(fill_function(table, name))}() CASCADE"


def add_reference(table: str, name: str, column: Column, have: Catalogue) -> Iterator[Action]:
    """The foreign key of a column, in place of those that it has."""
    there = [link for link in have.references if (link.table, link.column) == (table, name)]
    alter = f"ALTER TABLE {quote(table)}"
    taken = {link.name for link in have.references if link.table == table and link not in there}
    constraint = free_name(table, f"{name}_fkey", taken)  # a column that was renamed keeps the name of its own
    if column.target and any((link.target, link.on_delete) == (column.target, column.on_delete) for link in there):
        yield Validate(f'{alter} VALIDATE CONSTRAINT "{there[0].name}"')
        return
    for reference in there:
        yield f'{alter} DROP CONSTRAINT "{reference.name}"'
    if column.target:
        text = f"FOREIGN KEY ({quote(name)}){reference_ddl(column)}"
        yield f"{alter} ADD CONSTRAINT {quote(constraint)} {text} NOT VALID"
        yield Validate(f"{alter} VALIDATE CONSTRAINT {quote(constraint)}")


def alter_on_postgres(
    table: str, name: str, was: Column, now: Column, using: str, have: Catalogue, triggers: Iterable[str]
) -> Iterator[Action]:
    """The actions that change a column; `triggers` are the statements for those that another type takes away."""
    alter = f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(name)}"
    wanted, default = type_ddl(now, "postgres"), default_ddl(name, now, "postgres")
    retyped = have.tables[table][name].type.lower() != wanted.lower()
    if retyped or default_ddl(name, was, "postgres") != default:
        yield f"{alter} DROP DEFAULT"
    if retyped:
        yield free_column(table, name)
        remark = " /* rewrites the table under a lock */" * is_rewritten(have.tables[table][name].type, wanted)
        yield f"{alter} TYPE {wanted}" + (f" USING ({using})" if using else "") + remark
        yield from triggers
    elif using:
        yield _switch_feed(table, "DISABLE")  # as with another type: what rows and stored changes hold is the same
        yield f"UPDATE {quote(table)} SET {quote(name)} = {using}"
        yield _switch_feed(table, "ENABLE")
    if default:
        yield f"{alter} SET DEFAULT {default}"
    if was.target != now.target:
        yield free_references(table)
    if was.target != now.target or was.on_delete != now.on_delete:
        yield from add_reference(table, name, now, have)
    if now.nullable:
        yield relax_null(table, name, nullable=True)
    elif have.tables[table][name].nullable:
        yield from set_not_null(table, name)


_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


def is_rewritten(was: str, now: str) -> bool:
    """Does PostgreSQL write a table anew when a column gets another type? Not for more digits before the point."""
    old, new = _NUMERIC.fullmatch(was.lower()), _NUMERIC.fullmatch(now.lower())
    return not (old and new and old[2] == new[2] and int(old[1]) <= int(new[1]))


_DROP_TRIGGERS = (
    "DO $$ DECLARE r record; BEGIN FOR r IN SELECT tgname FROM pg_trigger t WHERE tgrelid = '{table}'::regclass "
    "AND tgname ~ '^!?diptych_'{more} LOOP EXECUTE format('DROP TRIGGER %I ON {table}', r.tgname); END LOOP; END $$"
)


def _switch_feed(table: str, word: str) -> str:
    """The statement that disables, or enables, our triggers that log changes of a table, if it has them."""
    return (
        "DO $$ DECLARE r record; BEGIN FOR r IN SELECT tgname FROM pg_trigger "
        f"WHERE tgrelid = '{quote(table)}'::regclass AND tgname IN ('!diptych_feed', 'diptych_touch') "
        f"LOOP EXECUTE format('ALTER TABLE {quote(table)} {word} TRIGGER %I', r.tgname); END LOOP; END $$"
    )


def free_column(table: str, name: str) -> str:
    """The statement that drops our triggers of a column, which would be in its way; opening the database makes those
    that are wanted."""
    number = f"SELECT attnum FROM pg_attribute a WHERE a.attrelid = t.tgrelid AND attname = '{name}'"
    return _DROP_TRIGGERS.format(table=quote(table), more=f" AND ({number}) = ANY (tgattr)")


def free_references(table: str) -> str:
    """The statement that drops our triggers by which no row refers to one in the trash; the end of a migration, or of
    its undo, makes those that are wanted."""
    return _DROP_TRIGGERS.format(table=quote(table), more=f" AND tgname ~ '^{REFERS}'")


def follow_rename(table: str) -> Iterator[str]:
    """The statements that give a table with another name its feed; opening the database makes its other triggers."""
    yield _DROP_TRIGGERS.format(table=quote(table), more="")
    for part in postgres_feed([TriggerTable(table, ())]):
        if part.name.endswith(f" on {table}"):
            yield from part.create


def make_key(table: str, key: Key, dialect: DialectName, have: Catalogue) -> Iterator[Action]:
    taken = taken_names(have, table)
    create = index_ddl(table, key, dialect, taken)
    if dialect == "sqlite":
        yield create
        return
    yield Alone(create.replace("INDEX", "INDEX CONCURRENTLY", 1), key_name(table, key, dialect, taken))


def taken_names(have: Catalogue, table: str = "") -> set[str]:
    """The names that a new index cannot have: what was renamed keeps the indexes that are called as before.

    One of `table` without columns is partial, or was left invalid by a run that was interrupted: that is replaced.
    """
    return {*have.tables, *(index.name for index in have.indexes if index.columns or index.table != table)}


def names_of_key(table: str, key: Key, have: Catalogue, dialect: DialectName) -> list[str]:
    """The indexes of a database that are this key."""
    if key.where(dialect):
        named = key_name(table, key, dialect)
        return [index.name for index in have.indexes if index.table == table and index.name == named]
    columns = key.columns if key.unique else (*key.columns, "id")
    return [
        index.name
        for index in have.indexes
        if index.table == table
        and index.unique == key.unique
        and (sorted(index.columns) == sorted(columns) if key.unique else index.columns == columns)
    ]
