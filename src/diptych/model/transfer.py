"""Rows of Python ↔ JSON objects, with the names and the values of the wire.

    {"id": "…", "title": "x", "authorId": "…"}   ↔   <Post …>, whose author is a reference
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.model import rows
from diptych.model.defs import ResourceDef
from diptych.model.resource import Resource
from diptych.model.scalars import as_json, from_json


def row_of(resources: Mapping[str, ResourceDef], name: str, given: Mapping[str, Any]) -> Resource:
    """A loaded row of a resource, from its fields as JSON; all else that the object holds is left out."""
    return rows.load(resources[name].cls, values_of(resources, name, given))


def values_of(resources: Mapping[str, ResourceDef], name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The Python values of fields by attribute; the key of a to-one relation becomes a reference."""
    found = resources[name]
    values: dict[str, Any] = {}
    for key, value in given.items():
        field = found.fields.get(key)
        if field is None:
            continue
        made = from_json(field.scalar, value)
        if field.relation:
            relation = found.relations[field.relation]
            target = resources[relation.target].cls
            values[relation.attr] = None if made is None else rows.reference(target, made)
        else:
            values[field.attr] = made
    return values


def input_of(found: ResourceDef, row: Resource) -> dict[str, Any]:
    """What is to be written of a row, as a client would send it."""
    changed = rows.changes(row)
    given: dict[str, Any] = {}
    for key, field in found.fields.items():
        relation = found.relations.get(field.relation)
        attr = relation.attr if relation else field.attr
        if attr in changed:
            value = changed[attr]
            given[key] = _key(f"{found.name}.{attr}", value) if relation else as_json(value)
    return given


def _key(where: str, row: object) -> str | None:
    """The id of the row that a to-one relation leads to."""
    if row is None:
        return None
    if not isinstance(row, Resource):
        raise TypeError(f"{where} takes a row, not {row!r}")
    if rows.is_new(row):
        raise ValueError(f"{where} is not saved yet: await tx.save() it first")
    return row.id
