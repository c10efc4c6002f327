"""Changes of single rows by plain statements, as someone would make them who knows nothing of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from diptych.compile.fragment import Fragment, identifier, join, sql, to_sql
from diptych.compile.plan import SlotBind
from diptych.db.script import Script, Step, Violation
from diptych.db.store import Store
from diptych.model.declare.roles import NOBODY
from diptych.model.defs import ResourceDef


async def update_row(store: Store, resource: ResourceDef, id: Any, values: Mapping[str, Any]) -> None:
    """Other values for some fields of a row."""
    fields = [resource.fields[name] for name in values]
    places = (store.dialect.value(SlotBind(at, each.scalar)) for at, each in enumerate(fields, 1))
    pairs = (sql("{} = {}", identifier(each.column), place) for each, place in zip(fields, places, strict=True))
    key = store.dialect.value(SlotBind(0, resource.key))
    statement = sql("UPDATE {} SET {} WHERE id = {}", identifier(resource.table), join(", ", pairs), key)
    await _run(store, statement, [id, *values.values()])


async def delete_row(store: Store, resource: ResourceDef, id: Any) -> None:
    """A row less; or none, if others still refer to it."""
    key = store.dialect.value(SlotBind(0, resource.key))
    await _run(store, sql("DELETE FROM {} WHERE id = {}", identifier(resource.table), key), [id])


async def insert_row(store: Store, resource: ResourceDef, row: Mapping[str, Any]) -> None:
    """A row more."""
    await store.insert(resource, list(row), [list(row.values())])


async def _run(store: Store, statement: Fragment, values: Sequence[Any]) -> None:
    text, binds = to_sql(statement, store.dialect.placeholder)
    parameters = [store.dialect.getter(each)(values, NOBODY, {}) for each in binds]

    def script() -> Script[None]:
        yield Step(text, parameters)

    with suppress(Violation):
        await store.write(script)
