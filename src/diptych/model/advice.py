"""What works and would work better: comparisons in read rules that no index helps.

A read rule is a condition of every list. Where it compares a column of the row itself with something that is the same
for all rows, an index on that column finds the rows; without one the database looks at each.

    return self.region == viewer.region          Post.region is compared … and has no index

Other parts of a rule find no rows and need no index: what is negated, a boolean (it would find half of the table), a
row that a relation leads to (it is found by its id), and whatever stands beside a comparison that an index does help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from diptych.model.declared import annotated
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.expr import And, Col, Compare, Const, Expr, Or, ViewerId, ViewerValue
from diptych.model.scalars import BOOLEAN
from diptych.model.source import place_of

_SEARCHED = ("eq", "in", "lt", "lte", "gt", "gte", "startsWith")


@dataclass(frozen=True, slots=True)
class Advice:
    """A column that an index would help: where it is declared, the rule that compares it, and what to write."""

    where: str
    rule: str
    fix: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        spot = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.where}{spot} is compared in the rule {self.rule} and has no index. {self.fix}"


def advise(resources: Mapping[str, ResourceDef]) -> list[Advice]:
    """For every column that a read rule searches by, and that has no index, the first such rule."""
    found: dict[str, Advice] = {}
    for resource in resources.values():
        for rule in resource.rules:
            if "read" in rule.verbs and not rule.fields:
                for field in _lacking(rule.expr, resource):
                    advice = _advice(resource, field, rule.name)
                    found.setdefault(advice.where, advice)
    return list(found.values())


def _lacking(expr: Expr, resource: ResourceDef) -> Iterator[FieldDef]:
    """The fields by which rows are searched in vain."""
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
    """Does an index find the rows for which it holds?"""
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
    """The field of the row itself that is compared with what is the same for all rows."""
    match (compare.left, compare.right):
        case (Col((name,)), other) | (other, Col((name,))) if isinstance(other, Const | ViewerId | ViewerValue):
            field = resource.fields[name]
            return field if compare.op in _SEARCHED and field.stored and field.scalar is not BOOLEAN else None
    return None


def _has_index(field: FieldDef) -> bool:
    """Has it one, or can it have none? (The server's own fields are declared by no model.)"""
    return field.indexed or field.unique or field.name in SERVER_FIELDS


def _advice(resource: ResourceDef, field: FieldDef, rule: str) -> Advice:
    fix = f"Write {field.attr}: {_with_index(resource.cls, field)}"
    file, line = place_of(resource.cls, field.attr)
    return Advice(f"{resource.name}.{field.attr}", f"{resource.name}.{rule}", fix, file, line)


def _with_index(cls: type, field: FieldDef) -> str:
    """The type of a field as it is written, with the marker."""
    hint = next(each.hint for each in annotated(cls) if each.attr == field.attr)
    text = hint if isinstance(hint, str) else hint.__name__ if isinstance(hint, type) else "…"
    if text.startswith("Annotated[") and text.endswith("]"):
        return f"{text[:-1]}, Index()]"
    return f"Annotated[{text}, Index()]"
