"""Translates a REST request into Asks: target, query string, body and a View in, a Wish out.

    target, query string, body → understand_read | _changes | _write | _call → a Wish

The endpoints, `diptych explain` and the errors of `diptych dev` all use it, so they cannot differ; the same for
GraphQL is `graphql/understand.py`. The order of checks is part of the contract: grammar, then what the role may send,
then types, then values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.api.rest.target import Target, check_target
from diptych.api.rest.translate import Query, translate_call, translate_changes, translate_write, write_inputs
from diptych.api.rest.translate import translate as translate_rest
from diptych.ask.nodes import WriteVerb
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Fault, Refusal
from diptych.model.defs import CallDef
from diptych.model.view import View, not_yours

METHOD_VERBS: Mapping[str, WriteVerb] = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
"""What a method does to a resource."""
MAX_MEMBERS = 1_000
"""Most members of a body: no resource has more fields."""
Versions = tuple[int, ...] | None


def understand_read(target: Target, query: Query, view: View) -> Wish:
    """GET on a resource, a collection or a relation."""
    check_target(target, view)
    return translate_rest(target, query, view)


def understand_changes(target: Target, query: Query, view: View) -> WatchWish:
    """GET on the changes of a collection."""
    check_target(target, view)
    return translate_changes(target, query, view)


def understand_write(
    verb: WriteVerb, target: Target, query: Query, body: Any, versions: Versions, view: View, *, answer: bool = True
) -> tuple[WriteWish, Mapping[str, Any]]:
    """POST, PUT, PATCH or DELETE on a resource; also returns the inputs of its slots."""
    check_write(verb, target, view)
    if isinstance(body, dict) and len(body) > MAX_MEMBERS:
        fault = Fault(("body",), f"expected at most {MAX_MEMBERS} members, got {len(body)}")
        raise Refusal(Code.BAD_USER_INPUT, "The body is not valid.", [fault])
    wish = translate_write(verb, target, query, body, versions, view, answer=answer)
    return wish, write_inputs(target, body, versions)


def check_write(verb: WriteVerb, target: Target, view: View) -> None:
    """Refuse a verb that this role never has."""
    resource = view.resources.get(target.resource)
    if resource is None or not resource.may(verb):
        raise not_yours(view)


def check_call(definition: CallDef, view: View) -> None:
    """Refuse a call that other roles may send and this one may not."""
    if definition.root not in view.calls:
        raise not_yours(view)


def understand_call(target: Target, definition: CallDef, query: Query, body: Any, view: View) -> CallWish:
    """GET on a query of the model's own code, or POST on an action, which has a body."""
    check_call(definition, view)
    return translate_call(target, definition, query, body, view)
