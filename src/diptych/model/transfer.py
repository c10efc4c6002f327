"""Conversion of rows between Python objects and JSON objects.

{"id": "…", "title": "x", "authorId": "…"}   ↔   <Post …>, whose author is a reference
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.model.declare import rows
from diptych.model.declare.resource import Resource
from diptych.model.defs import ResourceDef
from diptych.model.scalar_values import as_json, from_json


def row_of(resources: Mapping[str, ResourceDef], name: str, data: Mapping[str, Any]) -> Resource:
    """A loaded row of a resource, from its fields as JSON; unknown keys are ignored."""
    return rows.load_row(resources[name].cls, values_of(resources, name, data))


def values_of(resources: Mapping[str, ResourceDef], name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The Python values of a JSON object, by attribute; the key of a to-one relation becomes a reference."""
    resource = resources[name]
    values: dict[str, Any] = {}
    for key, value in data.items():
        field = resource.fields.get(key)
        if field is None:
            continue
        converted = from_json(field.scalar, value)
        if field.relation:
            relation = resource.relations[field.relation]
            target = resources[relation.target].cls
            values[relation.attr] = None if converted is None else rows.reference(target, converted)
        else:
            values[field.attr] = converted
    return values


def input_of(resource: ResourceDef, row: Resource) -> dict[str, Any]:
    """The changed fields of a row as JSON, as a client would send them."""
    changed = rows.changes(row)
    data: dict[str, Any] = {}
    for key, field in resource.fields.items():
        relation = resource.relations.get(field.relation)
        attr = relation.attr if relation else field.attr
        if attr in changed:
            value = changed[attr]
            data[key] = _key(f"{resource.name}.{attr}", value) if relation else as_json(value)
    return data


def _key(where: str, row: object) -> str | None:
    """The id of the row in a to-one relation."""
    if row is None:
        return None
    if not isinstance(row, Resource):
        raise TypeError(f"{where} takes a row, not {row!r}")
    if rows.is_new(row):
        raise ValueError(f"{where} is not saved yet: await tx.save() it first")
    return row.id
