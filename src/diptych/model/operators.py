"""The filter operators: one table of what each takes and means, for both styles and their documents.

A negated operator is no node of an expression: `ne` is `Not(Compare("eq", …))` (`api/filters.py`).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

MAX_SEARCHED = 256
"""The longest text in a search (`contains`, `startsWith`, `ieq` …), in characters."""


class Operator(Struct, frozen=True):
    """A filter operator: does it take one value, a list of values, or true and false?"""

    takes: Literal["value", "list", "truth"]
    meaning: str


OPERATORS = {
    "eq": Operator("value", "Equals this."),
    "ne": Operator("value", "Does not equal this; null does not."),
    "lt": Operator("value", "Is less than this."),
    "lte": Operator("value", "Is at most this."),
    "gt": Operator("value", "Is greater than this."),
    "gte": Operator("value", "Is at least this."),
    "in": Operator("list", "Is one of these, up to {most}."),
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


def takes_list(operator: str) -> bool:
    """Does an operator take a list of values?"""
    return OPERATORS[operator].takes == "list"
