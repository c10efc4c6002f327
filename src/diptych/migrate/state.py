"""A state: the tables of a model as plain data, which is compared, hashed and kept in `migrations/state.json`.

    state_of(model).tables["posts"].columns["rank"]     Meaning(type="Int", default=3)

A column is a `Meaning`, as databases record it; what is unique or has an index is in `keys`. Triggers, the feed and
system tables follow from the tables, and are made by the store itself (`db/fitting.py`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from diptych.compile.constraints import condition_text
from diptych.compile.indexes import declared_indexes
from diptych.compile.meaning import TRASH, Meaning, meanings
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model

FORMAT = 1
COUNTER = "counter"
"""What fills a counter: `counter`, or `counter:project_id`, the column within which it counts."""
Column = Meaning


class Key(msgspec.Struct, frozen=True, omit_defaults=True):
    """A unique key or an index; a partial one has its condition for each store."""

    columns: tuple[str, ...]
    unique: bool = False
    sqlite: str = ""
    postgres: str = ""
    inline: bool = False
    """Is it the key of one unique field, which a new table has as a constraint?"""

    def where(self, dialect: str) -> str:
        return self.sqlite if dialect == "sqlite" else self.postgres

    def __str__(self) -> str:
        return ", ".join(self.columns)


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """A CHECK constraint: its condition for each store."""

    sqlite: str
    postgres: str

    def text(self, dialect: str) -> str:
        return self.sqlite if dialect == "sqlite" else self.postgres


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of the model."""

    columns: dict[str, Column]
    keys: tuple[Key, ...] = ()
    checks: dict[str, Check] = {}
    search: tuple[str, ...] = ()

    def put(self, **changes: Any) -> Table:
        return msgspec.structs.replace(self, **changes)

    @property
    def trash(self) -> bool:
        deleted = self.columns.get("deleted_at")
        return deleted is not None and deleted.generated == TRASH


class State(msgspec.Struct, frozen=True):
    """All tables, and the name of the migration that leads here."""

    tables: dict[str, Table] = {}
    migration: str = ""
    format: int = FORMAT

    def put(self, table: str, changed: Table | None, was: str = "") -> State:
        """The state with another table; None removes it, `was` is its name before."""
        tables = {
            (table if name == (was or table) else name): (changed if name == (was or table) else there)
            for name, there in self.tables.items()
        }
        if table not in tables:
            tables[table] = changed
        return State({name: there for name, there in tables.items() if there is not None}, self.migration)

    @property
    def hash(self) -> str:
        """The digest of the tables; the order of columns and tables does not count."""
        text = json.dumps(msgspec.to_builtins(_sorted(self.tables)), sort_keys=True, ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:32]

    def encode(self) -> str:
        """The text of `state.json`."""
        return json.dumps(msgspec.to_builtins(self), indent=2, ensure_ascii=False, sort_keys=True) + "\n"

    @staticmethod
    def decode(text: str) -> State:
        return msgspec.json.decode(text, type=State)


def referring(state: State, target: str) -> list[str]:
    """The tables that refer to a table."""
    return [
        name
        for name, table in state.tables.items()
        if any(column.target == target for column in table.columns.values())
    ]


def _sorted(tables: dict[str, Table]) -> dict[str, Table]:
    return {name: table.put(keys=tuple(sorted(table.keys, key=repr))) for name, table in tables.items()}


def column(
    type: str,
    *,
    precision: int = 0,
    scale: int = 0,
    values: tuple[str, ...] = (),
    nullable: bool = False,
    target: str = "",
    on_delete: str = "",
    default: Any = None,
    generated: str = "",
) -> Column:
    """A column as a migration file says it: `column("Decimal", precision=8, scale=2, nullable=True)`."""
    return Column(
        type=type,
        precision=precision,
        scale=scale,
        values=tuple(values),
        nullable=nullable,
        target=target,
        on_delete=on_delete,
        default=default,
        generated=generated,
    )


def state_of(model: Model) -> State:
    """The state that a model wants."""
    means = meanings(model)
    tables = {
        resource.table: Table(
            {
                field.column: _column(resource, field, means[resource.table][field.column])
                for field in resource.fields.values()
                if field.stored
            },
            checks={
                check.name: Check(
                    condition_text(check.expr, model, resource, "sqlite"),
                    condition_text(check.expr, model, resource, "postgres"),
                )
                for check in resource.checks.values()
            },
            search=tuple(resource.fields[name].column for name in resource.search),
        )
        for resource in model.managed.values()
    }
    for ours, theirs in zip(declared_indexes(model, "sqlite"), declared_indexes(model, "postgres"), strict=True):
        key = Key(ours.columns, ours.unique, ours.where, theirs.where, ours.inline)
        table = tables[ours.resource.table]
        if key not in table.keys:
            tables[ours.resource.table] = table.put(keys=(*table.keys, key))
    return State(tables)


def _column(resource: ResourceDef, field: FieldDef, meaning: Meaning) -> Column:
    """What the database has of a column: neither the constraints of the service, nor defaults that only it fills."""
    generated = meaning.generated if field.marks_deleted or (field.generated and field.filled) else ""
    if field.counts is not None:
        generated = COUNTER + (f":{resource.fields[field.counts].column}" if field.counts else "")
    return msgspec.structs.replace(meaning, unique=False, indexed=False, rules=(), generated=generated)
