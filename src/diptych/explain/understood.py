"""Translates a request through a view of the model: its Asks and their values.

A request that a role may not send has no translation in the role's view. The trusted view has every name of the model,
so it still has a translation there, and explain can say what hides each of its names.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from graphql import GraphQLSchema
from msgspec import Struct
from msgspec.structs import replace

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.understand import read_operation, translate_operation
from diptych.api.links import has_links, link_rows, writes_links
from diptych.api.rest.precondition import preferences, versions
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target, cancelling, find_target
from diptych.api.rest.translate import write_inputs
from diptych.api.understand import (
    METHOD_VERBS,
    understand_bulk,
    understand_call,
    understand_changes,
    understand_read,
    understand_writes,
    verb_of,
)
from diptych.ask.measures import Limits, RequestMeasures
from diptych.ask.nodes import Assign, WriteVerb
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Refusal
from diptych.model.call_defs import ActionDef, QueryDef
from diptych.model.model import Model
from diptych.model.view import View
from diptych.policy.limits import Checks
from diptych.policy.values import Binder

_ANY = 10**9
_LIMITS = Limits(page=_ANY, offset=_ANY, in_list=_ANY, bulk=_ANY)
_CHECKS = Checks(_LIMITS)
"""The limits of a request that is only explained: any values, and the usual limits of a document."""


class RestRequest(NamedTuple):
    """A REST request; its body is decoded JSON, and the names of its headers are in lower case."""

    method: str
    path: str
    query: str = ""
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def versions(self) -> tuple[int, ...] | None:
        """The versions of its `If-Match`, one of which the row must have."""
        sent = self.headers.get("if-match")
        return None if sent is None else versions(sent.encode("latin-1", "replace"), None)

    @property
    def wants_row(self) -> bool:
        """Does it ask for the row of a deletion (`Prefer: return=representation`)?"""
        return "return=representation" in preferences(self.headers.get("prefer", "").encode("latin-1", "replace"))


Sent = Parameters | RestRequest
"""A request of either style."""
BoundValues = list[Any]


class Wanted(Struct, frozen=True, eq=False):
    """A translated request, with the view that translated it."""

    view: View
    reads: tuple[Wish, BoundValues]
    """The reads, which one statement answers, with the values of their slots."""
    read_inputs: Mapping[str, Any] = MappingProxyType({})
    """What these values were bound from."""
    ops: tuple[tuple[WriteWish | CallWish, BoundValues], ...] = ()
    """Writes and calls, in their order, each with its values."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """The inputs that the values of each of these were bound from."""
    nests: tuple[tuple[int, bool], ...] = ()
    """For each of `ops`: how many of the same nested write follow, and is it a part that is not answered?"""
    bare: bool = False
    """Are the values of writes left out? Then only their rows and field names are known."""
    watch: tuple[WatchWish, BoundValues] | None = None
    """The subscription, with its values."""


def understand(sent: Sent, model: Model, view: View, *, bare: bool = False) -> Wanted:
    """Translate a request through a view; raises a Refusal if the view does not allow it, or if it is invalid.

    With `bare`, the body of a REST request is ignored.
    """
    return _from_rest(sent, model, view, bare) if isinstance(sent, RestRequest) else _from_graphql(sent, model, view)


def interpret(sent: Sent, model: Model, view: View) -> tuple[Wanted, Refusal | None]:
    """Translate a request through its viewer's view; if that refuses it, through the trusted view, with the Refusal.

    Raises the Refusal if the trusted view refuses it too.
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


@functools.lru_cache(maxsize=2)
def _schema_of(view: View) -> GraphQLSchema:
    """The schema of a view; those of the last viewer and of the trusted view are kept."""
    return build_schema(view)


def _from_graphql(sent: Parameters, model: Model, view: View) -> Wanted:
    variables = sent.variables or {}
    schema = _schema_of(view)
    document = read_operation(sent, RequestMeasures("graphql", model.anonymous), _CHECKS, view, lambda: schema)
    operation = translate_operation(document, variables, view, schema)
    if operation.watch is not None:
        return _followed(view, operation.watch, variables)
    ops: list[tuple[WriteWish | CallWish, Mapping[str, Any]]] = [
        (wish, variables) for wish in (*operation.parts, *operation.calls)
    ]
    return replace(_wanted(view, operation.wish, ops, variables), nests=operation.nests)


def _from_rest(sent: RestRequest, model: Model, view: View, bare: bool) -> Wanted:
    target = find_target(sent.path, model)
    if target is None:
        raise Refusal(Code.NOT_FOUND, f"There is no path {sent.path}.")
    if writes_links(sent.method, target):
        return _from_links(sent, target, model, view, bare)
    query = read_query(sent.query, target)
    query.fields()
    if (cancelled := cancelling(sent.method, target, model)) != target:
        sent, target = sent._replace(method="POST"), cancelled
    if target.call:
        return _from_call(sent, target, model, view, bare)
    if sent.method == "GET" and not (target.batch or target.restore):
        if target.changes:
            return _followed(view, understand_changes(target, query, view), query.inputs)
        return _wanted(view, understand_read(target, query, view), [], query.inputs)
    if sent.method not in METHOD_VERBS or (target.restore and sent.method != "POST"):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    verb = verb_of(sent.method, target, query, model.resources)
    if verb in ("update", "delete") and target == Target(target.resource):
        body = sent.body if isinstance(sent.body, dict) else {}
        return _wanted(view, Wish((), (), ()), [understand_bulk(verb, target, query, body, view)], {}, bare)
    if target.relation or target.changes or (verb == "create") != (target.id is None):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    answer = verb not in ("delete", "purge") or sent.wants_row
    if verb == "create" and "by" in query.parameters:
        verb = "upsert"
    ops: list[tuple[WriteWish | CallWish, Mapping[str, Any]]] = []
    nests: list[tuple[int, bool]] = []
    for body in _bodies(sent, verb):
        writes, head = understand_writes(verb, target, query, body, view, sent.versions, answer=answer)
        ops += writes
        nests += [(len(writes) - 1 - index, index != head) for index in range(len(writes))]
    return replace(_wanted(view, Wish((), (), ()), ops, {}, bare), nests=tuple(nests))


def _from_links(sent: RestRequest, target: Target, model: Model, view: View, bare: bool) -> Wanted:
    """Links by their path: of two rows, or all of one row."""
    if sent.method not in ("PUT", "DELETE") or not has_links(target, model):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    whole = target.other is None and not isinstance(sent.body, list)
    rows = link_rows(sent.method, target, [] if whole else sent.body, view, _LIMITS)
    nests = tuple((len(rows) - 1 - index, index > 0) for index in range(len(rows)))
    ops: list[tuple[WriteWish | CallWish, Mapping[str, Any]]] = [(row.wish(view), row.inputs) for row in rows]
    return replace(_wanted(view, Wish((), (), ()), ops, {}, bare), nests=nests)


def _bodies(sent: RestRequest, verb: WriteVerb) -> list[Any]:
    """The bodies of a request: one for each new row. What a JSON Patch changes is known only with its row."""
    if isinstance(sent.body, list):
        return sent.body or [{}] if verb in ("create", "upsert") else [{}]
    return [{} if sent.body is None else sent.body]


def _from_call(sent: RestRequest, target: Target, model: Model, view: View, bare: bool) -> Wanted:
    definition = model.resources[target.resource].call(target.call)
    reading = isinstance(definition, QueryDef)
    if sent.method != ("GET" if reading else "POST"):
        raise Refusal(Code.METHOD_NOT_ALLOWED, f"{sent.method} is no method of {sent.path}.")
    query = read_query(sent.query, target)
    body = sent.body if isinstance(sent.body, dict) else {}
    wish = understand_call(target, definition, query, body if isinstance(definition, ActionDef) else None, view)
    inputs = query.inputs if reading else write_inputs(target, body, None)
    return _wanted(view, Wish((), (), ()), [(wish, inputs)], {}, bare)


def _followed(view: View, wish: WatchWish, inputs: Mapping[str, Any]) -> Wanted:
    values = Binder(wish.slots, wish.sources, _LIMITS, Code.BAD_USER_INPUT)(inputs)
    return Wanted(view, (Wish((), (), ()), []), watch=(wish, values))


def _wanted(
    view: View,
    reads: Wish,
    ops: list[tuple[WriteWish | CallWish, Mapping[str, Any]]],
    inputs: Mapping[str, Any],
    bare: bool = False,
) -> Wanted:
    ops = [(_bare(wish), sources) for wish, sources in ops] if bare else ops
    bound = tuple((wish, _bound(wish, sources)) for wish, sources in ops)
    values = Binder(reads.slots, reads.sources, _LIMITS, Code.BAD_USER_INPUT)(inputs)
    return Wanted(view, (reads, values), inputs, bound, tuple(sources for _, sources in ops), bare=bare)


def _bound(wish: WriteWish | CallWish, inputs: Mapping[str, Any]) -> BoundValues:
    if wish.faults:
        raise Refusal(wish.code, "Some values are not valid.", wish.faults)
    return Binder(wish.slots, wish.sources, _LIMITS, wish.code)(inputs)


def _bare(wish: WriteWish | CallWish) -> WriteWish | CallWish:
    """The same without its values: the row, and the names of the written fields."""
    if wish.ask.id is None:
        return replace(wish, ask=replace(wish.ask, values=(), pick=()), slots=(), sources=(), faults=())
    key, source = replace(wish.ask.id, index=0), wish.sources[wish.ask.id.index]
    if isinstance(wish, CallWish):
        call = replace(wish.ask, id=key, values=(), pick=())
        return replace(wish, ask=call, slots=(key,), sources=(source,), faults=())
    names = tuple(Assign(assign.name, None) for assign in wish.ask.values)
    write = replace(wish.ask, id=key, values=names, version=None, pick=(), rows=None, parts=())
    return replace(wish, ask=write, slots=(key,), sources=(source,), faults=())
