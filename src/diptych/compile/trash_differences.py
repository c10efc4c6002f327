"""The differences of a database from a model in which a class has got a trash, or has lost it.

Without the trash, deleted rows would be there again. With it, keys that are unique among all rows would reveal
deleted ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diptych.compile.catalogue import Catalogue
from diptych.compile.fragment import identifier
from diptych.compile.indexes import ExistingIndex
from diptych.compile.meaning import TRASH
from diptych.compile.system.object import DialectName
from diptych.model.defs import ResourceDef

_BY_HAND = "change the table by hand (docs/reference/model.md, Changing a database by hand)"


def trash_differences(resource: ResourceDef, have: Catalogue, dialect: DialectName) -> Iterator[Mapping[str, Any]]:
    """The differences, as the arguments of a Difference."""
    was = have.recorded.get(resource.table, {}).get("deleted_at")
    if resource.trash:
        yield from (_whole_key(resource, index, dialect) for index in _whole_keys(resource, have))
    elif was is not None and was.generated == TRASH and "deleted_at" in have.tables[resource.table]:
        yield _left(identifier(resource.table).text, resource.table)


def _left(quoted: str, table: str) -> Mapping[str, Any]:
    """Deleted rows that would be there again."""
    rows = f"FROM {quoted} WHERE deleted_at IS NOT NULL"
    return {
        "sentence": f"the table {table} holds deleted rows, and the model has no trash for them",
        "apply": (),
        "obstacle": f"SELECT 1 {rows} LIMIT 1",
        "fix": f"delete them for good (DELETE {rows}), or give the class its trash again",
    }


def _whole_keys(resource: ResourceDef, have: Catalogue) -> Iterator[ExistingIndex]:
    """Unique indexes over all rows, of what is to be unique among those that are not deleted."""
    wanted: set[tuple[str, ...]] = {(field.column,) for field in resource.fields.values() if field.unique}
    wanted |= {tuple(sorted(key.columns)) for key in resource.keys if key.unique}
    for index in have.indexes:
        if index.table == resource.table and index.unique and tuple(sorted(index.columns)) in wanted:
            yield index


def _whole_key(resource: ResourceDef, index: ExistingIndex, dialect: DialectName) -> Mapping[str, Any]:
    name = f"{resource.table} ({', '.join(index.columns)})"
    sentence = f"the key {name} is unique among all rows, and should be among those that are not deleted"
    if index.name.startswith("sqlite_autoindex"):  # a part of the table itself
        return {"sentence": sentence, "fix": f"{name}: {_BY_HAND}"}
    quoted = '"' + index.name.replace('"', '""') + '"'
    drops = [f"DROP INDEX IF EXISTS {quoted}"]
    if dialect == "postgres":
        drops.insert(0, f"ALTER TABLE {identifier(resource.table).text} DROP CONSTRAINT IF EXISTS {quoted}")
    return {"sentence": sentence, "apply": tuple(drops), "done": f"dropped the key of all rows of {name}"}
