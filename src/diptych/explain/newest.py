"""The newest rows of a resource, whatever rules show of them: for development."""

from __future__ import annotations

from diptych.compile.fragment import Fragment, identifier, sql
from diptych.compile.read import Reads
from diptych.db.store import Store
from diptych.model.defs import FieldDef
from diptych.model.model import Model


async def newest_rows(
    resource: str, label: FieldDef | None, model: Model, store: Store, most: int
) -> list[tuple[str, str]]:
    """The ids and labels of the rows with the largest ids; without a label, the id is one."""
    reads = Reads(model, store.dialect, None)
    row = reads.open(resource)
    key = row.id if row.resource.key.python is int else sql(store.dialect.id_text, row.id)
    text = key if label is None else sql("{}.{}", Fragment(row.alias), identifier(label.column))
    limit = Fragment(str(int(most)))
    plan = store.dialect.plan(
        sql("SELECT {}, {} FROM {} ORDER BY {} DESC LIMIT {}", key, text, reads.source(row), row.id, limit)
    )
    session = await store.session(reading=True)
    try:
        rows = await session.rows(plan.sql, ())
    finally:
        await session.end()
    return [(str(id), str(id if shown is None else shown)) for id, shown in rows]
