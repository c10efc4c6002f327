"""Translates a REST request into Asks: target, query string, body and a View in, a Wish out.

    target, query string, body → understand_read | _changes | _write | _call → a Wish

The endpoints, `diptych explain` and the errors of `diptych dev` all use it, so they cannot differ; the same for
GraphQL is `graphql/understand.py`. The order of checks is part of the contract: grammar, then what the role may send,
then the shape of a body, then values. This module refuses the first two; the faults of the shape are part of the Wish,
and `WriteEngine.binder` raises them. Types and constraints are checked when values are bound (`policy/values.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from diptych.api.nest import Unfolder, follows, is_nested
from diptych.api.rest.query import Query
from diptych.api.rest.target import Target, check_target
from diptych.api.rest.translate import translate as translate_rest
from diptych.api.rest.translate import translate_bulk, translate_call, translate_changes, translate_write, write_inputs
from diptych.ask.measures import Limits
from diptych.ask.nodes import WriteVerb
from diptych.ask.slots import RawValue
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Fault, Refusal
from diptych.model.call_defs import CallDef
from diptych.model.defs import Resources
from diptych.model.view import View, not_yours

METHOD_VERBS: Mapping[str, WriteVerb] = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
"""What a method does to a resource."""
MAX_MEMBERS = 1_000
"""Most members of a body: no resource has more fields."""
Versions = tuple[int, ...] | None


def verb_of(method: str, target: Target, query: Query, model: Resources) -> WriteVerb:
    """What a request does to a resource."""
    if target.restore:
        return "restore"
    purges = method == "DELETE" and "deleted" in query.parameters and model[target.resource].trash
    return "purge" if purges else METHOD_VERBS[method]


def understand_read(target: Target, query: Query, view: View) -> Wish:
    """GET on a resource, a collection or a relation."""
    check_target(target, view)
    return translate_rest(target, query, view)


def understand_changes(target: Target, query: Query, view: View) -> WatchWish:
    """GET on the changes of a collection."""
    check_target(target, view)
    return translate_changes(target, query, view)


def understand_write(
    verb: WriteVerb,
    target: Target,
    query: Query,
    body: Any,
    versions: Versions,
    view: View,
    *,
    answer: bool = True,
    merge: bool = True,
) -> tuple[WriteWish, Mapping[str, Any]]:
    """POST, PUT, PATCH or DELETE on a resource; also returns the inputs of its slots."""
    check_write(verb, target, view)
    if isinstance(body, dict) and len(body) > MAX_MEMBERS:
        fault = Fault(("body",), f"expected at most {MAX_MEMBERS} members, got {len(body)}")
        raise Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [fault])
    wish = translate_write(verb, target, query, body, versions, view, answer=answer, merge=merge)
    return wish, write_inputs(target, body, versions)


def understand_writes(
    verb: WriteVerb,
    target: Target,
    query: Query,
    body: Any,
    view: View,
    versions: Versions = None,
    *,
    answer: bool = True,
) -> tuple[list[tuple[WriteWish, Mapping[str, Any]]], int]:
    """The writes of a request for one row, several if it is a nested write, each with the inputs of its slots; and the
    index of the one that is answered."""
    resource = view.resources.get(target.resource)
    if resource is None or verb not in ("create", "update") or not is_nested(body, resource):
        return [understand_write(verb, target, query, body, versions, view, answer=answer)], 0
    check_write(verb, target, view)
    unfolder = Unfolder(view, Limits(), own_paths=True)
    rows, head = unfolder.unfold("create" if verb == "create" else "update", resource, RawValue(body, ("body",)))
    writes: list[tuple[WriteWish, Mapping[str, Any]]] = []
    for index, row in enumerate(rows):
        if index != head:
            writes.append((row.wish(view), row.inputs))
            continue
        wish, inputs = understand_write(verb, target, query, row.values.value, versions, view, answer=answer)
        faults = (*wish.faults, *unfolder.faults)
        wish = replace(wish, faults=faults, depth=unfolder.depth, follows=follows(rows, head))
        writes.append((wish, inputs))
    return writes, head


def understand_bulk(
    verb: WriteVerb, target: Target, query: Query, body: Any, view: View
) -> tuple[WriteWish, Mapping[str, Any]]:
    """PATCH or DELETE of the rows of a collection that match; also returns the inputs of its slots."""
    check_write(verb, target, view)
    return translate_bulk(verb, target, query, body, view), write_inputs(target, body, None)


def check_write(verb: WriteVerb, target: Target, view: View) -> None:
    """Refuse a verb that this role never has."""
    resource = view.resources.get(target.resource)
    if resource is None or not resource.may("create" if verb == "upsert" else verb):
        raise not_yours(view)


def check_call(definition: CallDef, view: View) -> None:
    """Refuse a call that other roles may send and this one may not."""
    if definition.root not in view.calls:
        raise not_yours(view)


def understand_call(target: Target, definition: CallDef, query: Query, body: Any, view: View) -> CallWish:
    """GET on a query of the model's own code, or POST on an action, which has a body."""
    check_call(definition, view)
    return translate_call(target, definition, query, body, view)
