"""The filter operators: one table of what each takes and means, for both styles. OpenAPI shows the meanings.

An `Op` compares two values in an expression. An operator of filters is an Op, or negates one: `ne` is
`Not(Compare("eq", …))`, so nothing after the translation knows it. `isNull` is a node of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

Op = Literal[
    "eq", "lt", "lte", "gt", "gte", "in", "contains", "startsWith", "endsWith", "ieq", "icontains", "istartsWith",
    "iendsWith", "has", "hasAny", "hasAll", "isEmpty",
]  # fmt: skip

MAX_SEARCHED = 256
"""The longest text in a search (`contains`, `startsWith`, `ieq` …), in characters."""


class Operator(Struct, frozen=True):
    """A filter operator: does it take one value, a list of values, or true and false?"""

    takes: Literal["value", "list", "truth"]
    meaning: str
    negates: Op | None = None
    """The operator whose complement it is: true where that is false, so also where the value is null."""
    by_index: bool = False
    """Does an index on the field find the rows, on both databases?"""


OPERATORS = {
    "eq": Operator("value", "Equals this.", by_index=True),
    "ne": Operator("value", "Does not equal this; null does not.", negates="eq"),
    "lt": Operator("value", "Is less than this.", by_index=True),
    "lte": Operator("value", "Is at most this.", by_index=True),
    "gt": Operator("value", "Is greater than this.", by_index=True),
    "gte": Operator("value", "Is at least this.", by_index=True),
    "in": Operator("list", "Is one of these, up to {most}.", by_index=True),
    "contains": Operator("value", "Contains this text, in the same case."),
    "startsWith": Operator("value", "Starts with this text, in the same case."),
    "endsWith": Operator("value", "Ends with this text, in the same case."),
    "ieq": Operator("value", "Equals this; case and accents do not count."),
    "icontains": Operator("value", "Contains this text; case and accents do not count."),
    "istartsWith": Operator("value", "Starts with this text; case and accents do not count."),
    "iendsWith": Operator("value", "Ends with this text; case and accents do not count."),
    "has": Operator("value", "Has this element."),
    "hasAny": Operator("list", "Has at least one of these elements, up to {most}."),
    "hasAll": Operator("list", "Has all of these elements, up to {most}."),
    "isEmpty": Operator("truth", "Has it no elements? Null is neither."),
    "isNull": Operator("truth", "Is it null?"),
}
EQUALITY = ("eq", "ne", "in", "isNull")
ORDERED = ("eq", "ne", "lt", "lte", "gt", "gte", "in", "isNull")
FOLDED = {"ieq": "eq", "icontains": "contains", "istartsWith": "startsWith", "iendsWith": "endsWith"}
"""Operators for which case and accents do not count, each with the operator that it is otherwise."""
SEARCHES = ("contains", "startsWith", "endsWith", *FOLDED)
"""Operators that search a text; what is searched for has at most MAX_SEARCHED characters."""
TEXTUAL = (*ORDERED, *SEARCHES)
SETS = ("has", "hasAny", "hasAll", "isEmpty", "isNull")
"""Operators of lists."""
NEGATIONS: Mapping[str, str] = {operator.negates: name for name, operator in OPERATORS.items() if operator.negates}
"""The operators that negate another, by that one: "eq" → "ne"."""
BY_INDEX = frozenset(name for name, operator in OPERATORS.items() if operator.by_index)
"""The operators whose rows an index on the field finds."""
_OPS: Mapping[str, Op] = {op: op for op in get_args(Op)}


def takes_list(operator: str) -> bool:
    """Does an operator take a list of values?"""
    return OPERATORS[operator].takes == "list"


def op_of(operator: str) -> Op:
    """The Op of an expression for an operator; for one that negates, the Op that it negates."""
    op = _OPS.get(OPERATORS[operator].negates or operator)
    if op is None:
        raise NotImplementedError(
            f"the operator {operator!r} has no Op: add it to Op in model/operators.py and its SQL to compile/where.py, "
            "or name the Op that it negates in OPERATORS"
        )
    return op
