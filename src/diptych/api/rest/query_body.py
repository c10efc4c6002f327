"""The body of a QUERY request (RFC 10008): the parameters of a list as JSON, for those that do not fit into a URL.

    QUERY /orders      {"where": {"status": {"in": ["paid", "shipped"]}}, "sort": "-total", "first": 50}

It is the same Query, and so the same Ask, as that of GET /orders?where=…&sort=-total&first=50.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from diptych.api.query_string import LIST_PARAMETERS
from diptych.api.rest.query import Query, shape_of
from diptych.api.rest.target import PATH_ID, Target
from diptych.errors import Code, Fault, Refusal

_NUMBERS = ("first", "last", "offset")
_LISTS = ("fields", "sort", "by")
_TREES = ("where", "having")
_CURSORS = ("after", "before")
_INVALID = "Some values are not valid."


def read_query_body(body: Any, target: Target) -> Query:
    """The Query of a body. One Refusal has all faults of its members."""
    if not isinstance(body, dict):
        raise Refusal(Code.BAD_USER_INPUT, _INVALID, [Fault(("body",), "expected an object of parameters")])
    known = _parameters(target)
    faults = [Fault(("body", name), reason) for name, value in body.items() if (reason := _fault(name, value, known))]
    if faults:
        raise Refusal(Code.BAD_USER_INPUT, _INVALID, faults)
    parameters = {name: _text(value) for name, value in body.items() if name not in _TREES and value is not None}
    trees = {name: body[name] for name in _TREES if name in body}
    parameters |= dict.fromkeys(trees, "")  # their JSON is among the inputs
    inputs = {**parameters, **trees}
    return Query(parameters, {**inputs, PATH_ID: target.id}, shape_of(parameters, inputs))


def _parameters(target: Target) -> tuple[str, ...]:
    """The parameters of a path."""
    if target.numbers == "summary":
        return ("fields", "where", "search")
    return (*LIST_PARAMETERS, "by", "having") if target.numbers else LIST_PARAMETERS


def _fault(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Why a member is not valid; "" if it is. (`where` is checked as everywhere, and so are texts.)"""
    if name not in known:
        return f"there is no such parameter; there are {', '.join(known)}"
    if name in _NUMBERS:
        return "" if type(value) is int else "expected an integer"
    if name in _LISTS and isinstance(value, list):
        return "" if all(isinstance(item, str) for item in value) else "expected a list of texts"
    is_valid = name in _TREES or isinstance(value, str) or (name in _CURSORS and value is None)
    return "" if is_valid else "expected text"


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def in_body(refusal: Refusal) -> Refusal:
    """A refusal of parameters, as one of the body that they were sent in."""
    if refusal.code is not Code.BAD_REQUEST or not any(fault.path[:1] == ("query",) for fault in refusal.faults):
        return refusal
    faults = [replace(fault, path=("body", *fault.path[1:])) for fault in refusal.faults]
    return Refusal(Code.BAD_USER_INPUT, _INVALID, faults, more=refusal.more)
