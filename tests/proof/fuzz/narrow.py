"""A schema for a tool that fills in everything it can: with fewer filters, one key for each sort, pages that are some, and ids
that are there.

hypothesis-graphql gives every argument and every field of an input, in any combination. A connection that is paged in both
directions, with a cursor of nowhere and a filter of sixty terms, is refused for the first of these, and teaches nothing about
the rest. So the types of some arguments are exchanged for scalars of our own, whose values are drawn here; what is sent
is GraphQL as before.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import graphql
import schemathesis
from hypothesis import strategies as st
from schemathesis.graphql import nodes

Introspection = dict[str, Any]
_FILTERS = ("title", "createdAt", "total", "status", "published", "eq", "in", "contains", "isNull")
"""What is kept of filters, and of comparisons. (What leads on is left out: it leads back, and takes most of the time.)"""
_PAGING = ("last", "before", "after")
_TIMES = (
    "2026-01-31T12:00:00Z",
    "2026-01-31T12:00:00.123456Z",
    "0001-01-01T00:00:00Z",
    "2026-01-31T12:00:00+01:00",
) * 4
_DECIMALS = ("12.50", "0.00", "-1.00", "99.9", "7") * 4
_NO_TIMES = ("2026-02-30T00:00:00Z", "2026-01-31", "", "9999-12-31T23:59:59-14:00")
_NO_DECIMALS = ("99999999999999999.99", "1e2", "1.234", "", "NaN", "٣.00")

schemathesis.graphql.scalar("DateTime", st.sampled_from(_TIMES + _NO_TIMES).map(nodes.String))
schemathesis.graphql.scalar("Decimal", st.sampled_from(_DECIMALS + _NO_DECIMALS).map(nodes.String))
schemathesis.graphql.scalar("PageSize", st.integers(1, 6).map(nodes.Int))
schemathesis.graphql.scalar("Offset", st.sampled_from((0, 0, 1, 5, 10_000)).map(nodes.Int))


def offer_rows(ids: Sequence[str]) -> None:
    """Let ids be those of rows, most of the time."""
    drawn = st.sampled_from((*ids, "x", "", ids[0].upper()))
    schemathesis.graphql.scalar("RowId", drawn.map(nodes.String))


def narrowed(whole: Mapping[str, Any]) -> Introspection:
    """What an introspection told, narrowed."""
    found: Introspection = copy.deepcopy(dict(whole))
    types = found["__schema"]["types"]
    for each in types:
        if each["name"].endswith("Order") and each["inputFields"]:
            each["inputFields"] = [_required(field) for field in each["inputFields"][:1]]
        elif each["kind"] == "INPUT_OBJECT" and each["name"].endswith("Where"):
            kept = [field for field in each["inputFields"] if field["name"] in _FILTERS]
            each["inputFields"] = kept
        for field in each["fields"] or ():
            field["args"] = [_argument(one) for one in field["args"] if one["name"] not in _PAGING]
        for one in each["inputFields"] or ():
            if one["name"].endswith("Id"):
                one["type"] = _exchanged(one["type"], "ID", "RowId")
    types += [_scalar(name) for name in ("PageSize", "Offset", "RowId")]
    graphql.build_client_schema(found)  # type: ignore[arg-type]  # still a schema
    return found


def _argument(one: dict[str, Any]) -> dict[str, Any]:
    for name, old, new in (("first", "Int", "PageSize"), ("offset", "Int", "Offset"), ("id", "ID", "RowId")):
        if one["name"] == name:
            return {**one, "type": _exchanged(one["type"], old, new), "defaultValue": None}
    return one


def _exchanged(kind: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if kind["name"] == old:
        return {**kind, "name": new}
    return {**kind, "ofType": _exchanged(kind["ofType"], old, new)} if kind["ofType"] else kind


def _required(field: dict[str, Any]) -> dict[str, Any]:
    return {**field, "type": {"kind": "NON_NULL", "name": None, "ofType": field["type"]}}


def _scalar(name: str) -> dict[str, Any]:
    return {
        "kind": "SCALAR",
        "name": name,
        "description": None,
        "fields": None,
        "inputFields": None,
        "interfaces": None,
        "enumValues": None,
        "possibleTypes": None,
        "specifiedByURL": None,
        "isOneOf": None,
    }
