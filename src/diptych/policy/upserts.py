"""The parts of an upsert: the key that finds its row, and the creation and the update that it may become.

    upsertUser(by: email, input: {name: "Zoe", email: "z@x.org"})

    the row with this email, if the viewer may read it and its email     → an update of the name, by its rules
    otherwise                                                            → a creation, by its rules

A row that the viewer may not read, or whose key is hidden, is treated as if it were not there. So the creation fails as
any other that conflicts with it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from diptych.ask.nodes import Write
from diptych.model.defs import Resources
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.view import View
from diptych.policy.bulk import each_of


class UpsertKey(Struct, frozen=True):
    """The condition that a row has the key, and whether the viewer may know that."""

    resource: str
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    has: Expr
    seen: Expr


def key_of_upsert(write: Write, view: View) -> UpsertKey:
    """The key of an upsert."""
    resource = view.resources[write.resource]
    fields = resource.resource.unique_keys[write.key]
    assigned = {assign.name: assign.value for assign in write.values}
    equal: list[Expr] = []
    for name in fields:
        value = write.id if name == "id" else assigned[name]
        assert value is not None
        equal.append(Compare("eq", Col((name,)), value))
    seen = and_(resource.read, *(resource.fields[name].rule for name in fields))
    columns = tuple(resource.resource.fields[name].column for name in fields)
    among = TRUE if fields == ("id",) else resource.resource.present  # no two rows ever have one id
    return UpsertKey(write.resource, fields, columns, and_(*equal, among), seen)


def possible_writes(write: Write, resources: Resources) -> tuple[Write, ...]:
    """The changes of one row that a Write can become: of an upsert these are an update and a creation."""
    if write.rows is not None:
        return (each_of(write),)
    if write.verb != "upsert":
        return (without_key(write),)
    fields = resources[write.resource].unique_keys.get(write.key, ())
    return (as_create(write),) if write.keep else (as_update(write, fields), as_create(write))


def without_key(write: Write) -> Write:
    """The deletion of a row that is found by its key; any other Write as it is."""
    return replace(write, values=(), key="") if write.verb == "delete" and write.key else write


def as_create(write: Write) -> Write:
    """The creation that an upsert becomes if there is no row."""
    return replace(write, verb="create", key="", keep=False)


def as_update(write: Write, key: tuple[str, ...]) -> Write:
    """The update that an upsert becomes if there is a row: its key has these values already."""
    values = tuple(assign for assign in write.values if assign.name not in key)
    return replace(write, verb="update", values=values, key="", keep=False)
