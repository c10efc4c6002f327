"""Links of a many-to-many relation by their paths in REST, as the rows that a nested write would write.

    PUT    /posts/<id>/tags/<id>     connect one                  DELETE /posts/<id>/tags/<id>     disconnect one
    PUT    /posts/<id>/tags          set all: [{"id": …}]

The row itself is not written. The endpoint and `diptych explain` both use this.
"""

from __future__ import annotations

from typing import Any

from diptych.api.nest import Unfolder
from diptych.api.nested_row import NestedRow
from diptych.api.rest.target import OTHER_ID, PATH_ID, Target, check_target
from diptych.ask.measures import Limits
from diptych.ask.nodes import WriteVerb
from diptych.ask.slots import RawValue
from diptych.errors import Code, Fault, Refusal
from diptych.model.model import Model
from diptych.model.nesting import NestView, NestWord, all_nests, link_key
from diptych.model.view import View, not_yours

_PATH_ID, _OTHER_ID = ("path", PATH_ID), ("path", OTHER_ID)


def writes_links(method: str, target: Target) -> bool:
    """Is it a request that writes links by their path?"""
    return target.other is not None or (target.relation != "" and method == "PUT")


def has_links(target: Target, model: Model) -> bool:
    """Does the path of a relation take PUT: is there a link with a unique key over both rows?"""
    relation = model.resources[target.resource].relations[target.relation]
    return relation.link != "" and link_key(model.resources[relation.link], relation) != ""


def link_rows(method: str, target: Target, body: Any, view: View, limits: Limits) -> list[NestedRow]:
    """The rows of a request that writes links; `body` is None if it has none. The first one is answered."""
    check_target(target, view)
    nest = all_nests(view.resources[target.resource], view, "update")[target.relation]
    word: NestWord = "disconnect" if method == "DELETE" else "connect" if target.other is not None else "set"
    if word not in nest.words:
        raise not_yours(view)
    if word == "set":
        unfolder = Unfolder(view, limits, own_paths=True)
        here = RawValue(target.id, _PATH_ID)
        rows = unfolder.unfold_set(nest, view.resources[target.resource], RawValue(body, ("body",)), here)
        if unfolder.faults:
            raise _invalid(*unfolder.faults)
        return rows
    if word == "connect":
        return [_row("upsert", nest, _fields(body, nest), target, view)]
    return [_row("delete", nest, {}, target, view)]


def _fields(body: Any, nest: NestView) -> dict[str, Any]:
    """The fields of the link, if there are any."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise _invalid(Fault(("body",), "expected an object of fields"))
    clash = [Fault(("body", name), "it is in the path") for name in body if name in (nest.key, nest.theirs)]
    if clash:
        raise _invalid(*clash)
    return body


def _row(verb: WriteVerb, nest: NestView, body: dict[str, Any], target: Target, view: View) -> NestedRow:
    ends = {nest.key: RawValue(target.id, _PATH_ID), nest.theirs: RawValue(target.other, _OTHER_ID)}
    inputs = {**body, PATH_ID: target.id, OTHER_ID: target.other}
    link = view.resources[nest.relation.link]
    return NestedRow(verb, link, RawValue({**body, **ends}, ("body",)), ("body",), inputs, by=nest.by)


def of_links(refusal: Refusal) -> Refusal:
    """The refusal of a write of links: a row of the path that is not there, or not shown, is not found."""
    places = {fault.path[:1] for fault in refusal.faults}
    if refusal.code in (Code.CONFLICT, Code.BAD_USER_INPUT) and places == {("path",)}:
        return Refusal(Code.NOT_FOUND, "There is nothing here.")
    return refusal


def _invalid(*faults: Fault) -> Refusal:
    return Refusal(Code.BAD_USER_INPUT, "Some values are not valid.", faults)
