"""The channel of ETags: a tag tells two answers apart, and nothing else.

A value is changed behind the service's back. Where the oracle says that what the viewer sees is the same after it,
the tags are the same; where it is another, so are they. (`version` and `updatedAt` count every write, so that they
are not asked for.)
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from diptych.model.defs import FieldDef, ResourceDef
from tests.proof.matrix.planted import Rows
from tests.proof.matrix.stage import Eye, Member, Sent, get
from tests.proof.matrix.values import fresh
from tests.proof.matrix.writing import kinds
from tests.support.oracle import Row, Sight, wire

_MOVES = ("id", "version", "updatedAt")
"""What is not changed, or moves with every change."""


def etag(eye: Eye, member: Member) -> None:
    resource, field = member.resource, member.field
    assert field is not None
    names = [each.name for each in eye.known(resource) if each.field and each.name not in _MOVES[1:]]
    for row in kinds(eye, member):
        value = fresh(eye.stage, member, row.data[member.name])
        rows = _changed(eye.stage.data, resource, row, {member.name: value})
        seen = [_seen(each, resource, row, names) for each in (eye.sight, Sight(eye.model, eye.viewer, rows))]
        asked = _requests(resource, row, names)
        before = [eye.send(sent).headers.get("etag") for sent in asked]
        eye.stage.execute(_update(resource, field, row, value))
        after = [eye.change(sent, rows).headers.get("etag") for sent in asked]
        eye.stage.reset()
        for one, other in zip(before, after, strict=True):
            assert (one == other) == (seen[0] == seen[1]), f"{member} of {row.id} for {eye.name}: {seen}"


def applies(member: Member) -> bool:
    """Can the value be changed by itself?"""
    return member.field is not None and member.field.stored and member.name not in _MOVES


def _requests(resource: ResourceDef, row: Row, names: list[str]) -> list[Sent]:
    document = f'{{ {resource.one}(id: "{row.id}") {{ {" ".join(names)} }} }}'
    query = get("/graphql", query=document)
    return [get(f"/{resource.path}/{row.id}", fields=",".join(names)), query]


def _changed(data: Rows, resource: ResourceDef, row: Row, values: dict[str, Any]) -> Rows:
    rows = [{**each, **values} if each["id"] == row.id else each for each in data[resource.name]]
    return {**data, resource.name: rows}


def _seen(sight: Sight, resource: ResourceDef, row: Row, names: list[str]) -> Any:
    """The row as the viewer sees it; None if not at all."""
    found = sight.find(resource.name, row.id)
    if found is None or not sight.readable(found):
        return None
    return [wire(resource.fields[name].scalar, sight.shown(name, found)) for name in names]


def _update(resource: ResourceDef, field: FieldDef, row: Row, value: Any) -> str:
    convert = field.scalar.to_sqlite
    stored = convert(value) if convert and value is not None else value
    return f'UPDATE "{resource.table}" SET "{field.column}" = {_literal(stored)} WHERE id = \'{row.id}\';'


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int | float | Decimal):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
