"""Counters: the table of the last numbers, and the triggers that number new rows of the model's tables.

    diptych_counters    name              scope        last
                        tickets.number    <project>    41

The row of a scope is taken in the transaction that creates the row of the model, so a number that is rolled back is
given to the next. PostgreSQL numbers in a trigger before the INSERT; SQLite has one writer, whose INSERT reads the next
number, and triggers that note it. In both, rows that others insert are numbered too, and a number that they give
themselves is never given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diptych.compile.fragment import Fragment, identifier, sql
from diptych.compile.system.object import MARK, DialectName, FeedTable, SystemObject, short_name

_COUNTERS: dict[DialectName, str] = {
    "sqlite": "name TEXT NOT NULL, scope TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (name, scope)",
    "postgres": 'name text COLLATE "C" NOT NULL, scope text COLLATE "C" NOT NULL, last bigint NOT NULL, '
    "PRIMARY KEY (name, scope)",
}

CREATE_COUNTERS: Mapping[DialectName, str] = {
    dialect: f"CREATE TABLE IF NOT EXISTS diptych_counters ({columns})" for dialect, columns in _COUNTERS.items()
}
"""The statement that makes the table of the last numbers."""
_LONGEST = 40


def counters(tables: Sequence[FeedTable], dialect: DialectName) -> Iterable[SystemObject]:
    """The parts that count, in the order in which they can be made; none if no table has a counter."""
    if not any(table.counters for table in tables):
        return
    create = f"CREATE TABLE diptych_counters ({_COUNTERS[dialect]})"
    yield SystemObject("diptych_counters", (create,))
    for table in tables:
        for column, within in table.counters:
            yield from (_sqlite if dialect == "sqlite" else _postgres)(_Counted(table.name, column, within))


def next_number(table: str, column: str, scope: Fragment | None) -> Fragment:
    """The next number of a counter as SQLite's only writer takes it."""
    counted = _Counted(table, column, "")
    text = sql("CAST({} AS TEXT)", scope) if scope is not None else Fragment("''")
    where = sql(f"name = '{counted.name}' AND scope = {{}}", text)
    return sql("(SELECT coalesce(max(last), 0) + 1 FROM diptych_counters WHERE {})", where)


def number_existing_rows(table: str, column: str, within: str) -> str:
    """The statement that numbers the rows of a table that has got a counter, in the order in which they were made."""
    name, quoted = identifier(table).text, identifier(column).text
    partition = f"PARTITION BY {identifier(within).text} " if within else ""
    numbers = f"SELECT id AS _id, row_number() OVER ({partition}ORDER BY created_at, id) AS _number FROM {name}"
    return f"UPDATE {name} SET {quoted} = _n._number FROM ({numbers}) AS _n WHERE _n._id = {name}.id"


def numbering_trigger(table: str, column: str, within: str) -> Iterable[str]:
    """PostgreSQL: the statements that make the trigger of a counter anew, whose last numbers are known."""
    function, trigger = _postgres(_Counted(table, column, within))
    name, _, on = trigger.name.partition(" on ")
    yield from function.create
    yield f"DROP TRIGGER IF EXISTS {identifier(name).text} ON {identifier(on).text}"
    yield trigger.create[-1]


class _Counted:
    """A counter: the table and column that it fills, and the column within which it counts ("": in all rows)."""

    def __init__(self, table: str, column: str, within: str) -> None:
        self.table = identifier(table).text
        self.trigger = short_name(f"{table}_{column}", _LONGEST)
        self.name = f"{table}.{column}"
        self.column = identifier(column).text
        self.within = identifier(within).text if within else ""
        self.watched = ", ".join(filter(None, (self.column, self.within)))

    def catch_up(self, greatest: str) -> str:
        """The statement after which the counter is beyond the rows that are there."""
        scope, group = (f"CAST({self.within} AS TEXT)", f" GROUP BY {self.within}") if self.within else ("''", "")
        numbers = f"SELECT '{self.name}', {scope}, max({self.column}) FROM {self.table} WHERE {self.column} > 0{group}"
        if not group:
            numbers += " HAVING count(*) > 0"
        return (
            f"INSERT INTO diptych_counters (name, scope, last) {numbers} ON CONFLICT (name, scope) "
            f"DO UPDATE SET last = {greatest}(diptych_counters.last, excluded.last)"
        )


def _sqlite(counted: _Counted) -> Iterable[SystemObject]:
    scope = f"CAST(NEW.{counted.within} AS TEXT)" if counted.within else "''"
    mine = f"name = '{counted.name}' AND scope = {scope}"
    # no ON CONFLICT: in a trigger, that of the outer statement holds (INSERT OR REPLACE, INSERT OR IGNORE)
    there = (
        f"INSERT INTO diptych_counters (name, scope, last) SELECT '{counted.name}', {scope}, 0 "
        f"WHERE NOT EXISTS (SELECT 1 FROM diptych_counters WHERE {mine})"
    )
    note = f"UPDATE diptych_counters SET last = NEW.{counted.column} WHERE {mine} AND last < NEW.{counted.column}"
    step = f"UPDATE diptych_counters SET last = last + 1 WHERE {mine}"
    give = (
        f"UPDATE {counted.table} SET {counted.column} = (SELECT last FROM diptych_counters WHERE {mine}) "
        f"WHERE id = NEW.id AND {counted.column} = 0"
    )
    is_given, is_not = f"NEW.{counted.column} <> 0", f"NEW.{counted.column} = 0"
    yield _trigger(counted, "counted", "AFTER INSERT", is_given, counted.catch_up("max"), there, note)
    yield _trigger(counted, "count", "AFTER INSERT", is_not, "", there, step, give)
    yield _trigger(counted, "renumbered", f"AFTER UPDATE OF {counted.watched}", is_given, "", there, note)


def _trigger(counted: _Counted, kind: str, event: str, when: str, before: str, *statements: str) -> SystemObject:
    name = f"diptych_{kind}_{counted.trigger}"
    quoted, body = identifier(name).text, "".join(f"  {statement};\n" for statement in statements)
    create = f"CREATE TRIGGER {quoted} {event} ON {counted.table} FOR EACH ROW WHEN {when}\nBEGIN {MARK}{body}END"
    made = (f"DROP TRIGGER IF EXISTS {quoted}", create)
    return SystemObject(name, (before, *made) if before else made, create)


def _postgres(counted: _Counted) -> Iterable[SystemObject]:
    scope = f"NEW.{counted.within}::text" if counted.within else "''"
    body = f"""
BEGIN
  IF NEW.{counted.column} IS NULL THEN
    INSERT INTO diptych_counters AS c (name, scope, last) VALUES ('{counted.name}', {scope}, 1)
      ON CONFLICT (name, scope) DO UPDATE SET last = c.last + 1 RETURNING c.last INTO NEW.{counted.column};
  ELSE
    INSERT INTO diptych_counters AS c (name, scope, last) VALUES ('{counted.name}', {scope}, NEW.{counted.column})
      ON CONFLICT (name, scope) DO UPDATE SET last = excluded.last WHERE c.last < excluded.last;
  END IF;
  RETURN NEW;
END
{MARK}"""
    function = f"diptych_count_{counted.trigger}"
    quoted = identifier(function).text
    # who inserts from outside needs no right to the counters: the function has those of its owner
    create = (
        f"CREATE OR REPLACE FUNCTION {quoted}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
        f"SET search_path = %I, pg_temp AS $body${body}$body$"
    )
    yield SystemObject(
        f"{function}()",
        (
            f"DO $do$ BEGIN EXECUTE format($f${create}$f$, current_schema()); END $do$",
            f"REVOKE ALL ON FUNCTION {quoted}() FROM PUBLIC",
        ),
        body,
    )
    trigger = f"diptych_count_{short_name(counted.name.partition('.')[2], _LONGEST)}"
    yield SystemObject(
        f"{trigger} on {counted.name.partition('.')[0]}",
        (
            counted.catch_up("greatest"),
            f"CREATE TRIGGER {identifier(trigger).text} BEFORE INSERT OR UPDATE OF {counted.watched} "
            f"ON {counted.table} FOR EACH ROW EXECUTE FUNCTION {quoted}()",
        ),
    )
