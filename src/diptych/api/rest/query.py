"""The query string of a REST request, parsed: its parameters, the JSON of `where` and `having`, and its shape.

    ?title[contains]=a&where={"id":{"in":[…]}}&sort=-createdAt&first=20

Only `count`, `fields`, `sort`, `by`, what is asked by true or false, and the structure of `where` and `having` shape
the Ask; every other parameter is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from diptych.api.query_string import Item, check_repeated, json_of, measure_fields, parse_fields, parse_lists
from diptych.api.rest.target import PATH_ID, Target
from diptych.api.shape import measure_filter, shape
from diptych.ask.measures import Checking, RequestMeasures
from diptych.lru import memo
from diptych.model.declare.roles import Viewer
from diptych.model.operators import OPERATORS

_SHAPING = ("fields", "sort", "count", "by", "onConflict", "deleted")
_TREES = ("where", "having")
_TRUTHS = tuple(f"[{name}]" for name, operator in OPERATORS.items() if operator.takes == "truth")
"""How the name of a parameter ends whose value, true or false, is part of the statement."""
_LISTS, _CHANGE_LISTS, _CALL_LISTS = ("fields", "sort", "by"), ("fields", "kinds"), ("fields",)
_SHORT = 512
"""Longest query string that is cached, in characters: clients repeat short ones."""


class Query(NamedTuple):
    """A parsed query string: its parameters, `where` as JSON, and the part that can change a statement."""

    parameters: Mapping[str, str]
    inputs: dict[str, Any]
    shape: tuple[Any, ...]

    def fields(self) -> tuple[Item, ...] | None:
        """The items of `fields`. (Needed only when the shape is new.)"""
        return parse_fields(self.parameters["fields"]) if "fields" in self.parameters else None

    def measure(self, operation: str, viewer: Viewer, checks: Checking) -> RequestMeasures:
        """Measure the request as far as its parameters say, and run the checks; malformed `fields` are refused."""
        measures = RequestMeasures("rest", viewer, operation)
        measures.sort_keys = self.parameters.get("sort", "").count(",") + 1
        measures.expanded = self.parameters.get("fields", "").count(",") + 1
        measure_filter(self.inputs.get("where"), measures)
        if "having" in self.inputs:
            measure_filter(self.inputs["having"], measures)
        checks(measures)
        measure_fields(self.fields() or (), measures)
        return checks(measures)


def read_query(raw: str, target: Target) -> Query:
    """Parse a query string and check its grammar (that of `fields` is checked when they are needed)."""
    if not raw:
        return Query({}, {PATH_ID: target.id}, ())
    parameters, inputs, key, repeated = _parse(raw)
    if repeated:
        check_repeated(repeated, _CHANGE_LISTS if target.changes else _CALL_LISTS if target.call else _LISTS)
    return Query(parameters, {**inputs, PATH_ID: target.id}, key)


@memo("query strings", 512, _SHORT, entry_bytes=32 << 10)
def _parse(raw: str) -> tuple[Mapping[str, str], Mapping[str, Any], tuple[Any, ...], tuple[str, ...]]:
    """The parameters, the same with `where` parsed, their shape, and those that occur several times."""
    parameters, repeated = parse_lists(raw)
    inputs: dict[str, Any] = dict(parameters)
    for name in _TREES:
        if name in parameters:
            inputs[name] = json_of(parameters[name], name)
    return parameters, inputs, shape_of(parameters, inputs), repeated


def shape_of(parameters: Mapping[str, str], inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of the parameters can change a statement."""
    return tuple(
        (
            name,
            shape(inputs[name]) if name in _TREES else value if name in _SHAPING or name.endswith(_TRUTHS) else 1,
        )
        for name, value in parameters.items()
    )
