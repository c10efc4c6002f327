"""Numbers the rows of a table that gets a counter, on PostgreSQL, beside services that write it.

Batches are numbered in the order in which rows were made, each in a transaction of its own, with the last number of
each scope in `diptych_counters`: so a run that was interrupted goes on where it stopped. Rows that are made meanwhile
come last. Then one short transaction locks the table against writers, numbers what is left, and makes the trigger that
numbers rows from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from diptych.compile.system.counters import CREATE_COUNTERS, numbering_trigger
from diptych.compile.system.object import DialectName
from diptych.migrate.ddl import quote, type_ddl
from diptych.migrate.state import Column, Table
from diptych.migrate.step import Action, Alone, Number


def within_of(column: Column) -> str:
    """The column within which a counter counts; "" for all rows."""
    return column.generated.partition(":")[2]


def row_numbers(column: Column) -> str:
    """The number of a row that gets a counter, as an expression over all rows."""
    within = within_of(column)
    partition = f"PARTITION BY {quote(within)} " if within else ""
    return f"row_number() OVER ({partition}ORDER BY created_at, id)"


def rename_counter(old: str, new: str, dialect: DialectName) -> Iterator[str]:
    """The statements after which a counter goes on under another name, `table.column`."""
    yield from forget_counter(new, dialect)
    yield f"UPDATE diptych_counters SET name = '{new}' WHERE name = '{old}'"


def forget_counter(name: str, dialect: DialectName) -> Iterator[str]:
    """The statements after which a counter begins anew, though one that is gone had its name."""
    yield CREATE_COUNTERS[dialect]  # opening the database would make it, and a column is new perhaps
    yield f"DELETE FROM diptych_counters WHERE name = '{name}'"


def add_counter(table: str, name: str, column: Column, *, there: bool) -> Iterator[Action]:
    """A new counter, which may be null until all rows are numbered (`set_not_null` follows)."""
    quoted, within = quote(table), within_of(column)
    index = "diptych_number_" + hashlib.sha256(f"{table}.{name}".encode()).hexdigest()[:8]
    if not there:
        yield from forget_counter(f"{table}.{name}", "postgres")
        yield f"ALTER TABLE {quoted} ADD COLUMN {quote(name)} {type_ddl(column, 'postgres')}"
    order = f"ON {quoted} (created_at, id) WHERE {quote(name)} IS NULL"
    yield Alone(f"CREATE INDEX CONCURRENTLY {index} {order}", index)
    yield Number(number_rows(table, name, within))
    yield f"LOCK TABLE {quoted} IN SHARE ROW EXCLUSIVE MODE"
    yield number_rows(table, name, within)
    yield from numbering_trigger(table, name, within)
    yield f"DROP INDEX {index}"


def count_on(name: str, table: Table, column: str) -> Iterator[str]:
    """PostgreSQL: the statements that make the triggers anew that had to make way for a change of a column."""
    for counter, there in table.columns.items():
        if there.generated.startswith("counter") and column in (counter, within_of(there)):
            yield from numbering_trigger(name, counter, within_of(there))


def number_rows(table: str, name: str, within: str) -> str:
    """The statement that numbers rows that have no number; LIMIT can be added where it says so."""
    quoted, column, counter = quote(table), quote(name), f"'{table}.{name}'"
    scope = f"{quote(within)}::text" if within else "''"
    return (
        f"WITH batch AS (SELECT id, created_at, {scope} AS scope FROM {quoted} WHERE {column} IS NULL "
        f"ORDER BY created_at, id{LIMIT} FOR NO KEY UPDATE), "
        "numbered AS (SELECT b.id, b.scope, coalesce(c.last, 0) + row_number() OVER ("
        "PARTITION BY b.scope ORDER BY b.created_at, b.id) AS next FROM batch AS b "
        f"LEFT JOIN diptych_counters AS c ON c.name = {counter} AND c.scope = b.scope), "
        f"kept AS (INSERT INTO diptych_counters (name, scope, last) SELECT {counter}, scope, max(next) FROM numbered "
        "GROUP BY scope ON CONFLICT (name, scope) DO UPDATE SET last = excluded.last) "
        f"UPDATE {quoted} SET {column} = numbered.next FROM numbered WHERE {quoted}.id = numbered.id"
    )


LIMIT = " /* LIMIT */"
"""The place of a LIMIT in that statement."""
