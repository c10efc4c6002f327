"""A request, translated by a view: what it asks for, and the values that it gives.

A request that a role may not send has no translation in its view. The view of trusted code has a name for everything
in the model, so there it can still be understood, and what hides each of its names can be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from diptych.api.graphql.document import check_document, check_roots, check_variables, read_document
from diptych.api.graphql.http import Parameters
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.translate import translate as translate_graphql
from diptych.api.rest.translate import (
    Target,
    check_target,
    find_target,
    read_query,
    translate_call,
    translate_changes,
    translate_write,
    write_inputs,
)
from diptych.api.rest.translate import translate as translate_rest
from diptych.ask.asked import Asked, Limits
from diptych.ask.nodes import Assign, Change
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.check.limits import Checks
from diptych.check.values import Binder
from diptych.errors import Code, Refusal
from diptych.model.defs import ActionDef, QueryDef
from diptych.model.model import Model
from diptych.model.view import View, not_yours

_VERBS: Mapping[str, Change] = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
_LIMITS = Limits(page=10**9)
_CHECKS = Checks(_LIMITS)
"""What a value may be, where nothing is run by it."""


class Rest(NamedTuple):
    """A request in the resource style: its body is JSON that was read."""

    method: str
    path: str
    query: str = ""
    body: Any = None


Sent = Parameters | Rest
"""A request of either style."""
Values = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What a request asks for, by the view that translated it."""

    view: View
    reads: tuple[Wish, Values]
    """The Asks that one statement answers, with the values of their slots."""
    deeds: tuple[tuple[WriteWish | CallWish, Values], ...] = ()
    """Changes, and calls of the model's own code, in their order; each with its values."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """Where the values of each of these were found."""
    bare: bool = False
    """Are the values of changes left out? Then only their names are known, and their rows."""
    watch: tuple[WatchWish, Values] | None = None
    """The changes that are followed, with their values."""


def understand(sent: Sent, model: Model, view: View, *, bare: bool = False) -> Wanted:
    """A request as a view has it; a Refusal if it may not be sent so, or is wrong.

    With `bare`, the body of a request in the resource style is not looked at.
    """
    return _from_rest(sent, model, view, bare) if isinstance(sent, Rest) else _from_graphql(sent, model, view)


def interpret(sent: Sent, model: Model, view: View) -> tuple[Wanted, Refusal | None]:
    """A request as its viewer may send it; or, with the Refusal that it meets, as trusted code could.

    What nobody could send raises the Refusal.
    """
    try:
        return understand(sent, model, view), None
    except Refusal as refusal:
        trusted = model.trusted(view.signature.has_id)
        with suppress(Refusal):
            return understand(sent, model, trusted), refusal
        if refusal.code not in (Code.FORBIDDEN, Code.UNAUTHENTICATED):
            raise
        try:
            return understand(sent, model, trusted, bare=True), refusal  # forbidden, whatever its body is
        except Refusal:
            raise refusal from None


def _from_graphql(sent: Parameters, model: Model, view: View) -> Wanted:
    given = sent.variables or {}
    asked = Asked("graphql", model.anonymous)
    document, operation = read_document(sent.query or "", sent.operationName, asked, _CHECKS)
    check_roots(document, operation, view)
    schema = build_schema(view)
    sound = check_document(document, operation, schema)
    check_variables(sound, given, schema)
    found = translate_graphql(document, operation, given, view)
    if found.watch is not None:
        return _followed(view, found.watch, given)
    return _wanted(view, found.wish, [(each, given) for each in (*found.writes, *found.calls)], given)


def _from_rest(sent: Rest, model: Model, view: View, bare: bool) -> Wanted:
    target = find_target(sent.path, model)
    if target is None:
        raise Refusal(Code.NOT_FOUND, f"There is no path {sent.path}.")
    query = read_query(sent.query, target)
    query.fields()
    if target.call:
        return _from_call(sent, target, model, view, bare)
    if sent.method == "GET":
        check_target(target, view)
        if target.changes:
            return _followed(view, translate_changes(target, query, view), query.inputs)
        return _wanted(view, translate_rest(target, query, view), [], query.inputs)
    verb = _VERBS.get(sent.method)
    if verb is None or target.relation or target.changes or (verb == "create") != (target.id is None):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    each = view.resources.get(target.resource)
    if each is None or not each.may(verb):
        raise not_yours(view)
    deeds: list[tuple[WriteWish | CallWish, Mapping[str, Any]]] = []
    for body in _bodies(sent, verb):
        wish = translate_write(verb, target, query, body, None, view, answer=verb != "delete")
        deeds.append((wish, write_inputs(target, body, None)))
    return _wanted(view, Wish((), (), ()), deeds, {}, bare)


def _bodies(sent: Rest, verb: Change) -> list[Any]:
    """Several new rows may come at once. What a JSON Patch changes is known only when it meets its row."""
    if isinstance(sent.body, list):
        return sent.body or [{}] if verb == "create" else [{}]
    return [{} if sent.body is None else sent.body]


def _from_call(sent: Rest, target: Target, model: Model, view: View, bare: bool) -> Wanted:
    definition = model.resources[target.resource].call(target.call)
    reading = isinstance(definition, QueryDef)
    if sent.method != ("GET" if reading else "POST"):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    if definition.root not in view.calls:
        raise not_yours(view)
    query = read_query(sent.query, target)
    body = sent.body if isinstance(sent.body, dict) else {}
    wish = translate_call(target, definition, query, body if isinstance(definition, ActionDef) else None, view)
    inputs = query.inputs if reading else write_inputs(target, body, None)
    return _wanted(view, Wish((), (), ()), [(wish, inputs)], {}, bare)


def _followed(view: View, wish: WatchWish, inputs: Mapping[str, Any]) -> Wanted:
    values = Binder(wish.slots, wish.sources, _LIMITS, Code.BAD_USER_INPUT)(inputs)
    return Wanted(view, (Wish((), (), ()), []), watch=(wish, values))


def _wanted(
    view: View, reads: Wish, deeds: list[tuple[WriteWish | CallWish, Mapping[str, Any]]], inputs: Mapping[str, Any],
    bare: bool = False,
) -> Wanted:  # fmt: skip
    deeds = [(_bare(wish), given) for wish, given in deeds] if bare else deeds
    bound = tuple((wish, _bound(wish, given)) for wish, given in deeds)
    values = Binder(reads.slots, reads.sources, _LIMITS, Code.BAD_USER_INPUT)(inputs)
    return Wanted(view, (reads, values), bound, tuple(given for _, given in deeds), bare)


def _bound(wish: WriteWish | CallWish, inputs: Mapping[str, Any]) -> Values:
    if wish.faults:
        raise Refusal(wish.code, "Some values are not valid.", wish.faults)
    return Binder(wish.slots, wish.sources, _LIMITS, wish.code)(inputs)


def _bare(wish: WriteWish | CallWish) -> WriteWish | CallWish:
    """The same without its values: which row, and the names of what is given."""
    if wish.ask.id is None:
        return replace(wish, ask=replace(wish.ask, values=(), pick=()), slots=(), sources=(), faults=())
    key, source = replace(wish.ask.id, index=0), wish.sources[wish.ask.id.index]
    if isinstance(wish, CallWish):
        call = replace(wish.ask, id=key, values=(), pick=())
        return replace(wish, ask=call, slots=(key,), sources=(source,), faults=())
    names = tuple(Assign(each.name, None) for each in wish.ask.values)
    write = replace(wish.ask, id=key, values=names, version=None, pick=())
    return replace(wish, ask=write, slots=(key,), sources=(source,), faults=())
