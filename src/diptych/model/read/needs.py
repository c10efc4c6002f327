"""Checks computed fields in plain Python: the form of the function, and the fields that it needs.

@computed(needs="body")                     one row, with the needed fields
def minutes(self) -> int:

@computed(needs="body", batch=True)         all rows of a request at once, returns a value for each
@staticmethod
async def minutes(posts: Sequence[Post]) -> Sequence[int]:
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from msgspec.structs import replace

from diptych.model.declare.computed import Computed
from diptych.model.defs import ResourceDef
from diptych.model.naming import NameFault
from diptych.model.read.annotations import Annotation, Wrong, unwrap, weight_fault
from diptych.model.read.public_ages import field_fault
from diptych.model.read.unknown_names import no_field


def form_fault(attr: str, computed: Computed[Any]) -> NameFault | None:
    """The fault in the declaration of a computed field; None if it is valid."""
    needs: Any = computed.needs
    if computed.weight is not None and (fault := weight_fault(computed.weight)):
        return f"weight={computed.weight!r} {fault}", "Write @computed(weight=5)"
    if computed.public is not None and (aged := field_fault(computed.public)):
        return f"public={computed.public!r} {aged[0]}", f"Write @computed(public=5){aged[1]}"
    if computed.needs is None:
        return _traced_fault(computed)
    if not isinstance(needs, tuple) or not all(isinstance(name, str) for name in needs):
        return f"needs={needs!r} names no fields", 'Write needs="body", or needs=("body", "title")'
    if computed.batch and not isinstance(computed.member, staticmethod):
        return "a batch takes all rows of a request, and is no method of one", "Write @staticmethod below @computed"
    if not computed.batch and isinstance(computed.member, staticmethod | classmethod):
        return "it is no method of a row", "Write batch=True, or remove the decorator below @computed"
    if not computed.batch and inspect.iscoroutinefunction(computed.function):
        return "it is async, and called for one row after the other", "Write batch=True, and @staticmethod"
    if len(inspect.signature(computed.function).parameters) != 1:
        takes = "rows: Sequence[Post]" if computed.batch else "self"
        return f"it takes other things than its {'rows' if computed.batch else 'row'}", f"Write def {attr}({takes})"
    return None


def _traced_fault(computed: Computed[Any]) -> NameFault | None:
    if computed.batch:
        return "a batch without needs", 'Write @computed(needs="…", batch=True)'
    if isinstance(computed.member, staticmethod | classmethod):
        return "it is no method of a row", "Remove the decorator below @computed"
    return None


def one_of_batch(line: Annotation, wrong: Wrong) -> Annotation | None:
    """The type of one value of a batch: `Sequence[int]` → `int`."""
    if get_origin(line.type) not in (Sequence, list) or line.optional:
        wrong("a batch gives a value for each row", "Write -> Sequence[…]")
        return None
    item = unwrap(line.attr, get_args(line.type)[0], line.default, line.description)
    return replace(item, markers=(*line.markers, *item.markers))


def needed(resource: ResourceDef, needs: Sequence[str], wrong: Wrong) -> tuple[str, ...]:
    """The needed fields by their names on the wire; for a to-one relation, its key."""
    names = []
    for attr in dict.fromkeys(needs):
        field = next((member for member in resource.fields.values() if member.attr == attr), None)
        relation = next((member for member in resource.relations.values() if member.attr == attr), None)
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
            wrong(no_field(resource, attr), "Name a field of this class")
    return tuple(names)
