"""Index advice: columns that read rules compare and that have no index.

A read rule is a condition of every list. Where it compares a column of the row itself with a value that is the same for
all rows, an index on that column finds the rows; without one the database scans the table.

    return self.region == viewer.region          Post.region is compared … and has no index

Other parts of a rule need no index: negations, booleans (they would select half of the table), related rows (they are
found by id), operators that no index serves (`BY_INDEX` has the others), and conditions in conjunction with a
comparison that has an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from diptych.model.declare.declared import annotated
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.operators import BY_INDEX
from diptych.model.read.source import location_of
from diptych.model.rules.expr import And, Col, Compare, Const, Expr, Or, ViewerId, ViewerValue
from diptych.model.scalars import BOOLEAN


def advise(resources: Mapping[str, ResourceDef]) -> list[str]:
    """A sentence for each column without an index that a read rule searches by: the rule, and what to write."""
    by_column: dict[tuple[str, str], str] = {}
    for resource in resources.values():
        for rule in resource.rules:
            if "read" in rule.verbs and not rule.fields:
                for field in _lacking(rule.expr, resource):
                    by_column.setdefault((resource.name, field.attr), _advice(resource, field, rule.name))
    return list(by_column.values())


def _lacking(expr: Expr, resource: ResourceDef) -> Iterator[FieldDef]:
    """The fields without an index by which the expression searches."""
    match expr:
        case And(of):
            if not any(_is_helped(part, resource) for part in of):
                yield from _all_lacking(of, resource)
        case Or(of):
            yield from _all_lacking(of, resource)
        case Compare():
            field = _searched(expr, resource)
            if field is not None and not _has_index(field):
                yield field


def _all_lacking(of: Iterable[Expr], resource: ResourceDef) -> Iterator[FieldDef]:
    for part in of:
        yield from _lacking(part, resource)


def _is_helped(expr: Expr, resource: ResourceDef) -> bool:
    """Can an index find the rows that match?"""
    match expr:
        case And(of):
            return any(_is_helped(part, resource) for part in of)
        case Or(of):
            return all(_is_helped(part, resource) for part in of)
        case Compare():
            field = _searched(expr, resource)
            return field is not None and _has_index(field)
    return False


def _searched(compare: Compare, resource: ResourceDef) -> FieldDef | None:
    """The field of the row itself that is compared with a value that is the same for all rows."""
    match (compare.left, compare.right):
        case (Col((name,)), other) | (other, Col((name,))) if isinstance(other, Const | ViewerId | ViewerValue):
            field = resource.fields[name]
            return field if compare.op in BY_INDEX and field.stored and field.scalar is not BOOLEAN else None
    return None


def _has_index(field: FieldDef) -> bool:
    """Does it have an index? The server's own fields count, since no model declares them."""
    return field.indexed or field.unique or field.name in SERVER_FIELDS


def _advice(resource: ResourceDef, field: FieldDef, rule: str) -> str:
    file, line = location_of(resource.cls, field.attr)
    column = f"{resource.name}.{field.attr}" + (f" ({file}:{line})" if line else "")
    fix = f"Write {field.attr}: {_with_index(resource.cls, field)}"
    return f"{column} is compared in the rule {resource.name}.{rule} and has no index. {fix}"


def _with_index(cls: type, field: FieldDef) -> str:
    """The type of a field as written in the model file, with `Index()` added."""
    hint = next(line.hint for line in annotated(cls) if line.attr == field.attr)
    text = hint if isinstance(hint, str) else hint.__name__ if isinstance(hint, type) else "…"
    if text.startswith("Annotated[") and text.endswith("]"):
        return f"{text[:-1]}, Index()]"
    return f"Annotated[{text}, Index()]"
