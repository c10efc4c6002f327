"""Computed fields that are plain Python: what they are made of, and in which form they are called.

    @computed(needs="body")                     one row, which has the fields that are needed
    def minutes(self) -> int:

    @computed(needs="body", batch=True)         all rows of a request at once, a value for each
    @staticmethod
    async def minutes(posts: Sequence[Post]) -> Sequence[int]:
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args, get_origin

from diptych.model.age import field_fault
from diptych.model.computed import Computed
from diptych.model.defs import ResourceDef
from diptych.model.lines import Line, Wrong, take_apart, weight_fault
from diptych.model.naming import Fault


def form_fault(attr: str, each: Computed[Any]) -> Fault | None:
    """What is wrong with how a computed field is declared."""
    needs: Any = each.needs
    if each.weight is not None and (fault := weight_fault(each.weight)):
        return f"weight={each.weight!r} {fault}", "Write @computed(weight=5)"
    if each.public is not None and (aged := field_fault(each.public)):
        return f"public={each.public!r} {aged[0]}", f"Write @computed(public=5){aged[1]}"
    if each.needs is None:
        return _traced_fault(each)
    if not isinstance(needs, tuple) or not all(isinstance(name, str) for name in needs):
        return f"needs={needs!r} names no fields", 'Write needs="body", or needs=("body", "title")'
    if each.batch and not isinstance(each.member, staticmethod):
        return "a batch takes all rows of a request, and is no method of one", "Write @staticmethod below @computed"
    if not each.batch and isinstance(each.member, staticmethod | classmethod):
        return "it is no method of a row", "Write batch=True, or remove what stands below @computed"
    if not each.batch and inspect.iscoroutinefunction(each.function):
        return "it is async, and called for one row after the other", "Write batch=True, and @staticmethod"
    if len(inspect.signature(each.function).parameters) != 1:
        takes = "rows: Sequence[Post]" if each.batch else "self"
        return f"it takes other things than its {'rows' if each.batch else 'row'}", f"Write def {attr}({takes})"
    return None


def _traced_fault(each: Computed[Any]) -> Fault | None:
    if each.batch:
        return "a batch without needs", 'Write @computed(needs="…", batch=True)'
    if isinstance(each.member, staticmethod | classmethod):
        return "it is no method of a row", "Remove what stands below @computed"
    return None


def one_of_batch(line: Line, wrong: Wrong) -> Line | None:
    """The type that a batch gives for each row: `Sequence[int]` → `int`."""
    if get_origin(line.type) not in (Sequence, list) or line.optional:
        wrong("a batch gives a value for each row", "Write -> Sequence[…]")
        return None
    item = take_apart(line.attr, get_args(line.type)[0], line.default, line.description)
    return replace(item, markers=(*line.markers, *item.markers))


def needed(found: ResourceDef, needs: Sequence[str], wrong: Wrong) -> tuple[str, ...]:
    """The fields that are needed, by their names on the wire; of a to-one relation it is the key."""
    names = []
    for attr in dict.fromkeys(needs):
        field = next((each for each in found.fields.values() if each.attr == attr), None)
        relation = next((each for each in found.relations.values() if each.attr == attr), None)
        if field is not None and field.relation:
            wrong(f"'{attr}' is the key of a relation", f'Write needs="{attr.removesuffix("_id")}"')
        elif field is not None and field.python is not None:
            wrong(f"'{attr}' is computed in Python too", "Name the fields that it is made of")
        elif field is not None:
            names.append(field.name)
        elif relation is not None and relation.kind == "one":
            names.append(relation.name + "Id")
        elif relation is not None:
            wrong(f"'{attr}' leads to many rows", "Name fields of the row itself")
        else:
            wrong(f"{found.name} has no field '{attr}'", "Name a field of this class")
    return tuple(names)
