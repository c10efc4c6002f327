"""The feed of a table that changes: stored changes are kept, in the new shape. Positions and marks stay.

A stored change holds the row before and after as JSON by column, so a renamed column gets its new name there, and a new
one that must not be null its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from diptych.compile.system.object import DialectName
from diptych.migrate.ddl import quote, type_ddl, value_ddl
from diptych.migrate.state import Column, Table
from diptych.migrate.step import Action, Look, Stored


def rename_resource(old: str, new: str, dialect: DialectName) -> Iterator[str]:
    """The statements that give stored changes the new name of their table."""
    yield from set_aside(new, dialect)
    yield _rename(old, new)


def set_aside(table: str, dialect: DialectName) -> Iterator[str]:
    """The statements after which stored changes of a table that is gone are not those of another with its name."""
    yield _rename(table, f"{table} (dropped)")
    if dialect == "sqlite":  # else the rows that an INSERT might have replaced would be reported as deleted
        yield f"DELETE FROM diptych_feed_replaced WHERE resource = '{table}'"


def _rename(old: str, new: str) -> str:
    return f"UPDATE diptych_feed SET resource = '{new}' WHERE resource = '{old}'"


def remove_key(table: str, name: str, dialect: DialectName) -> Action:
    """The action after which stored changes have no value of a column that is gone, which a new one would show."""
    if dialect == "sqlite":
        sides = (f"{side} = json_remove({side}, '$.{name}')" for side in ("old", "new"))
        there = (f"json_type({side}, '$.{name}') IS NOT NULL" for side in ("old", "new"))
    else:
        less = f"CASE _r.key WHEN '=' THEN (_r.value::jsonb - '{name}')::json ELSE _r.value END"
        sides = (
            f"{side} = (SELECT json_object_agg(_r.key, {less}) FROM json_each({side}) AS _r WHERE _r.key <> '{name}')"
            for side in ("old", "new")
        )
        there = (f"{side}::jsonb ? '{name}' OR {side}::jsonb -> '=' ? '{name}'" for side in ("old", "new"))
    gone = f"{_update(table, sides)} AND ({' OR '.join(there)})"
    return gone if dialect == "sqlite" else Stored(gone)


def rename_key(table: str, old: str, new: str, dialect: DialectName) -> str:
    """The statement that gives a value its new name in stored changes."""
    if dialect == "sqlite":
        sides = (
            f"{side} = CASE WHEN json_type({side}, '$.{old}') IS NOT NULL "
            f"THEN json_set(json_remove({side}, '$.{old}'), '$.{new}', {side} -> '$.{old}') ELSE {side} END"
            for side in ("old", "new")
        )
    else:
        key = f"CASE _r.key WHEN '{old}' THEN '{new}' ELSE _r.key END"
        listed = f"((_r.value::jsonb - '{old}') || '[\"{new}\"]'::jsonb)::json"
        value = f"CASE WHEN _r.key = '=' AND _r.value::jsonb ? '{old}' THEN {listed} ELSE _r.value END"
        sides = (
            f"{side} = CASE WHEN {side}::jsonb ? '{old}' OR {side}::jsonb -> '=' ? '{old}' "
            f"THEN (SELECT json_object_agg({key}, {value}) FROM json_each({side}) AS _r WHERE _r.key <> '{new}') "
            f"ELSE {side} END"
            for side in ("old", "new")
        )
    return _update(table, sides)


def fill_key(table: str, name: str, column: Column, value: object, dialect: DialectName) -> str:
    """The statement that gives stored changes a value where they have none, or null."""
    shown = value_ddl(column, value, dialect)
    if dialect == "sqlite":
        sides = (
            f"{side} = CASE WHEN {side} IS NULL OR coalesce(json_type({side}, '$.{name}'), 'null') <> 'null' "
            f"THEN {side} ELSE json_set({side}, '$.{name}', {shown}) END"
            for side in ("old", "new")
        )
    else:
        sides = (
            f"{side} = CASE WHEN coalesce({side}::jsonb -> '=', '[]') ? '{name}' "
            f"OR coalesce({side}::jsonb ->> '{name}', CASE WHEN {side} IS NULL THEN '' END) IS NOT NULL "
            f"THEN {side} ELSE {_put(side, name, f'{shown}::{_cast(column)}')} END"
            for side in ("old", "new")
        )
    return _update(table, sides)


def compute_key(
    name: str,
    table: str,
    before: Table,
    column: Column,
    expression: str,
    dialect: DialectName,
    *,
    missing: bool = False,
) -> str:
    """The statement that computes a value of stored changes from the row that each holds, as it was before.

    It runs before the table itself is changed; with `missing`, after it, for changes that have no value, or null. A
    long value that a change left out is taken from the row as it is, and nothing else is: the audit log lacks columns
    that it must not have.
    """
    if dialect == "sqlite":
        shown = ", ".join(_stored(table, old, of) for old, of in before.columns.items())
        made = f"json_set({{0}}, '$.{name}', (SELECT {expression} FROM (SELECT {shown}) AS {quote(table)}))"
    else:
        key, typed = _cast(before.columns["id"]), quote(table)
        change = f"(SELECT row_id::{key} AS id, {{0}}::jsonb -> '=' AS left_out) AS _c"
        of_now = f"FROM {change} JOIN {typed} AS _t ON _t.id = _c.id, json_each(row_to_json(_t)) AS _e"
        now = f"(SELECT json_object_agg(_e.key, _e.value) {of_now} WHERE _c.left_out ? _e.key)"
        base = f"CASE WHEN {{0}}::jsonb ? '=' THEN json_populate_record(NULL::{typed}, {now}) ELSE NULL::{typed} END"
        value = f"(SELECT ({expression})::{_cast(column)} FROM (SELECT (diptych_row({base}, {{0}})).*) AS {typed})"
        made = _put("{0}", name, value)
    sides = (
        f"{side} = CASE WHEN {_lacks(side, name, dialect) if missing else f'{side} IS NOT NULL'} "
        f"THEN {made.replace('{0}', side)} ELSE {side} END"
        for side in ("old", "new")
    )
    return _update(table, sides)


def _put(side: str, name: str, value: str) -> str:
    """A stored row of PostgreSQL with a value. The others keep their texts: jsonb has an order of its own."""
    others = f"SELECT _r.key, _r.value FROM json_each({side}) AS _r WHERE _r.key <> '{name}'"
    return f"(SELECT json_object_agg(key, value) FROM ({others} UNION ALL SELECT '{name}', to_json({value})) AS _p)"


def value_of_row(table: str, name: str, otherwise: str) -> str:
    """The value that the row of a stored change has now, as an expression for `compute_key`."""
    now = f"SELECT _m.{quote(name)} FROM {quote(table)} AS _m WHERE _m.id = {quote(table)}.id"
    return f"coalesce(({now}), {otherwise})"


def in_audit_log(sql: str, dialect: DialectName) -> list[str]:
    """The statements that do the same to the audit log, where there is one; its hashes cover the texts from before, so
    these are kept beside the new ones."""
    if not sql.startswith(_STORED_CHANGES):
        return []
    origin = _ORIGIN[dialect]
    where = sql[sql.rindex(" WHERE ") :]
    return [
        f"UPDATE diptych_audit SET origin = {origin}{where} AND origin IS NULL",
        "UPDATE diptych_audit " + sql.removeprefix(_STORED_CHANGES),
    ]


def not_in_audit_log(table: str) -> Look:
    """The changes of a table that the audit log would never have if it were dropped."""
    appended = "(SELECT position FROM diptych_audit_head)"
    where = f"resource = '{table}' AND (position IS NULL OR position > {appended})"
    sentence = (
        f"the audit log has not come to {{}} changes of {table}: run `diptych audit head` with a model that has it"
    )
    return sentence, f"SELECT count(*) FROM diptych_feed WHERE {where}"


_CHANGE = "(SELECT row_id AS id) AS _c"
"""SQLite: the id of a stored change, under a name that a column of the table does not hide."""
_STORED_CHANGES = "UPDATE diptych_feed "
_ORIGIN: Mapping[DialectName, str] = {
    "sqlite": "json_array('sqlite', resource, old, new)",
    "postgres": "json_build_array('postgres', resource, old::text, new::text)::text",
}


def _lacks(side: str, name: str, dialect: DialectName) -> str:
    """Is there a row, without a value?"""
    if dialect == "sqlite":
        return f"{side} IS NOT NULL AND coalesce(json_type({side}, '$.{name}'), 'null') = 'null'"
    left_out = f"coalesce({side}::jsonb -> '=', '[]') ? '{name}'"
    return f"{side} IS NOT NULL AND {side}::jsonb ->> '{name}' IS NULL AND NOT {left_out}"


def _stored(table: str, name: str, column: Column) -> str:
    """A column of a stored row of SQLite. A text that was left out is a number there."""
    value = f"{{0}} ->> '$.{name}'"
    if type_ddl(column, "sqlite") == "TEXT":
        now = f"(SELECT _t.{quote(name)} FROM {_CHANGE} JOIN {quote(table)} AS _t ON _t.id = _c.id)"
        value = f"CASE json_type({{0}}, '$.{name}') WHEN 'integer' THEN {now} ELSE {value} END"
    return f"{value} AS {quote(name)}"


def _cast(column: Column) -> str:
    return type_ddl(column, "postgres").partition(" COLLATE")[0]


def _update(table: str, sides: Iterable[str]) -> str:
    return f"UPDATE diptych_feed SET {', '.join(sides)} WHERE resource = '{table}'"
