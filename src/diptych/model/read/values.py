"""Reads a class of value objects: its annotations → members → the type of a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diptych.model.declare.declared import MISSING, annotated, evaluate
from diptych.model.declare.value import Value
from diptych.model.naming import attribute_fault, camel
from diptych.model.read.annotations import Annotation, Wrong, check_bounds, check_markers, check_use, unwrap
from diptych.model.read.fields import constraints_of, default_of, value_markers
from diptych.model.read.name_clashes import RESERVED_TYPES
from diptych.model.scalars import Member, Scalar
from diptych.model.value_scalar import value_of

ScalarOf = Callable[[Annotation, Wrong], Scalar | None]


def read_value(kind: type[Value], scalar_of: ScalarOf, wrong: Wrong) -> Scalar | None:
    """The type of a class of value objects; None, with the mistakes reported, if it has some."""
    faults: list[str] = []

    def report(cause: str, fix: str) -> None:
        faults.append(cause)
        wrong(cause, fix)

    if kind.__name__ in RESERVED_TYPES:
        report(f"the type {kind.__name__} is also that of Diptych itself", "Rename one")
    members = [member for line in annotated(kind) if (member := _member(kind, line, scalar_of, report)) is not None]
    if not members and not faults:
        report(f"{kind.__name__} has no fields", f"Write class {kind.__name__}(Value): city: str")
    return None if faults else value_of(kind, {member.name: member for member in members})


def _member(kind: type[Value], line: Any, scalar_of: ScalarOf, wrong: Wrong) -> Member | None:
    if line.is_class_variable:
        return None

    def report(cause: str, fix: str) -> None:
        wrong(f"{kind.__name__}.{line.attr}: {cause}", fix)

    fault = attribute_fault(line.attr, line.attr)
    if fault or camel(line.attr) == "isNull":
        report(*(fault or ("the name isNull is a word of filters", "Rename it")))
        return None
    try:
        hint = evaluate(line.hint, line.base, {})
    except Exception as error:
        report(f"its type cannot be read: {error}", "Import or define what it names")
        return None
    part = unwrap(line.attr, hint, line.default)
    scalar = scalar_of(part, report)
    if scalar is None:
        return None
    if scalar.is_json:
        report(f"a value cannot hold {scalar.name}", "Use a scalar, or declare the field as Json")
        return None
    check_markers(part, report)
    check_use(part, value_markers(scalar), f"a member of type {scalar.name}", report)
    check_bounds(part, report)
    required = part.default is MISSING and not part.optional
    default = default_of(part, scalar, report)
    constraints = constraints_of(part)
    return Member(camel(line.attr), line.attr, scalar, part.optional, required, default, constraints)
