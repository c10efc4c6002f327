"""Values that could be given for a field, and are not what it has."""

from __future__ import annotations

from typing import Any

from diptych.model.constraints import fault_of
from diptych.model.scalars import ID, INTEGER_ID, STRING
from tests.proof.matrix.stage import Member, Stage
from tests.support.edge_cases import pool
from tests.support.random_writes import fitting


def fresh(stage: Stage, member: Member, old: Any) -> Any:
    """Another value than the old one: marked, if the type leaves room for a mark."""
    field = member.field
    assert field is not None
    return next((value for value in other_values(stage, member) if value != old), None)


def other_values(stage: Stage, member: Member) -> list[Any]:
    """Values that fit the field."""
    field = member.field
    assert field is not None
    if field.relation:
        target = member.resource.relations[field.relation].target
        return [row["id"] for row in stage.data[target]]
    if field.scalar in (ID, INTEGER_ID):
        return [row["id"] for row in stage.data[member.resource.name]]
    examples = [value for value in pool(field.scalar) if value is not None]
    if field.scalar.choices or field.scalar.python is bool:
        return examples
    example = fitting(field, examples[-1])
    marked = stage.planter.like(member.resource, field, example)
    short = [_SHORT] if field.scalar is STRING and not fault_of(_SHORT, field.constraints) else []
    return [marked, *(fitting(field, value) for value in examples), *short]


_SHORT = "XYZ"
"""What also fits a field that leaves no room for a mark, such as the code of a currency."""
