"""Every rule of oasdiff that is an error is found here too, for all that the documents of Diptych can say.

oasdiff is a program in Go that no package registry has, so its rules are a table here, by their ids (`checker/rules.go`):
for each the change that breaks it. Rules about words that the documents never have are listed with those words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from diptych.api.openapi.document import build_openapi
from diptych.contract.openapi_diff import openapi_changes
from diptych.demo.model import model as demo
from tests.support.edge_cases import model as edge_cases

Document = dict[str, Any]
_FIELDS = {
    "text": {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^a"},
    "free": {"type": "string"},
    "number": {"type": "integer", "minimum": 1, "maximum": 9, "exclusiveMinimum": 0, "exclusiveMaximum": 10},
    "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 9},
    "kind": {"type": "string", "enum": ["a", "b"]},
    "null": {"type": ["string", "null"]},
    "fixed": {"const": "x"},
    "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "all": {"allOf": [{"type": "object"}]},
    "bytes": {"type": "string", "contentMediaType": "image/png"},
}
OLD: Document = {
    "paths": {
        "/items": {
            "get": {
                "parameters": [
                    *({"in": "query", "name": name, "schema": schema} for name, schema in _FIELDS.items()),
                    {"in": "query", "name": "first", "schema": {"type": "integer", "default": 20}},
                    {"in": "header", "name": "if-match", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "headers": {"etag": {"required": True, "schema": {"type": "string"}}},
                        "content": {
                            "application/json": {
                                "schema": {"type": "object", "properties": _FIELDS, "required": [*_FIELDS]}
                            },
                            "text/csv": {"schema": {"type": "string"}},
                        },
                    }
                },
            },
            "post": {
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"type": "object", "properties": _FIELDS}},
                        "text/csv": {"schema": {"type": "string"}},
                    }
                },
                "responses": {"201": {}},
            },
            "delete": {"responses": {"204": {}}},
        },
        "/others": {"get": {"responses": {"200": {}}}},
    },
}


def asked(new: Document, name: str) -> Any:
    """The schema of a parameter."""
    return next(parameter for parameter in new["paths"]["/items"]["get"]["parameters"] if parameter["name"] == name)[
        "schema"
    ]


def body(new: Document) -> Any:
    return new["paths"]["/items"]["post"]["requestBody"]


def sent(new: Document) -> Any:
    """The schema of a body."""
    return body(new)["content"]["application/json"]["schema"]


def answer(new: Document) -> Any:
    return new["paths"]["/items"]["get"]["responses"]["200"]


def received(new: Document) -> Any:
    """The schema of a response."""
    return answer(new)["content"]["application/json"]["schema"]


def new_parameter(new: Document, place: str) -> None:
    parameter = {"in": place, "name": "more", "required": True, "schema": {}}
    new["paths"]["/items"]["get"]["parameters"].append(parameter)


NARROWED: dict[str, tuple[str, Document]] = {
    "became-enum": ("free", {"enum": ["a"]}),
    "enum-value-removed": ("kind", {"enum": ["a"]}),
    "became-not-nullable": ("null", {"type": "string"}),
    "max-items-decreased": ("list", {"maxItems": 8}),
    "min-items-increased": ("list", {"minItems": 2}),
    "max-length-decreased": ("text", {"maxLength": 8}),
    "min-length-increased": ("text", {"minLength": 3}),
    "max-decreased": ("number", {"maximum": 8}),
    "min-increased": ("number", {"minimum": 2}),
    "exclusive-max-decreased": ("number", {"exclusiveMaximum": 9}),
    "exclusive-min-increased": ("number", {"exclusiveMinimum": 1}),
    "pattern-added": ("free", {"pattern": "^x"}),
    "type-changed": ("free", {"type": "integer"}),
    "const-added": ("free", {"const": "y"}),
    "const-changed": ("fixed", {"const": "y"}),
    "one-of-removed": ("either", {"oneOf": [{"type": "string"}]}),
    "any-of-removed": ("any", {"anyOf": [{"type": "string"}]}),
    "all-of-added": ("all", {"allOf": [{"type": "object"}, {"type": "string"}]}),
    "list-of-types-narrowed": ("null", {"type": ["null"]}),
    "content-media-type-changed": ("bytes", {"contentMediaType": "image/gif"}),
}
"""What narrows a schema: the field, and what it becomes."""
WIDENED: dict[str, tuple[str, Document]] = {
    "became-nullable": ("text", {"type": ["string", "null"]}),
    "const-removed": ("fixed", {"const": None}),
    "const-changed": ("fixed", {"const": "y"}),
    "type-changed": ("free", {"type": "integer"}),
    "type-generalized": ("number", {"type": "number"}),
    "one-of-added": ("either", {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}),
    "list-of-types-widened": ("text", {"type": ["string", "integer"]}),
}
BOUNDS: dict[str, tuple[str, Document]] = {
    "max-increased": ("number", {"maximum": 99}),
    "exclusive-max-increased": ("number", {"exclusiveMaximum": 99}),
    "max-length-increased": ("text", {"maxLength": 99}),
    "max-length-unset": ("text", {"maxLength": None}),
    "min-decreased": ("number", {"minimum": 0}),
    "exclusive-min-decreased": ("number", {"exclusiveMinimum": -1}),
    "min-items-decreased": ("list", {"minItems": 0}),
    "min-items-unset": ("list", {"minItems": None}),
    "min-length-decreased": ("text", {"minLength": 0}),
    "content-media-type-changed": ("bytes", {"contentMediaType": "image/gif"}),
}
"""Bounds of what clients receive, which become wider: an error of oasdiff, and dangerous here."""
OTHERS: dict[str, Callable[[Document], object]] = {
    "api-path-removed-without-deprecation": lambda new: new["paths"].pop("/others"),
    "api-removed-without-deprecation": lambda new: new["paths"]["/items"].pop("delete"),
    "added-required-request-body": lambda new: new["paths"]["/items"]["delete"].update(
        requestBody={"required": True, "content": {}}
    ),
    "new-required-request-parameter": lambda new: new_parameter(new, "query"),
    "new-required-request-header-property": lambda new: new_parameter(new, "header"),
    "request-parameter-become-required": lambda new: new["paths"]["/items"]["get"]["parameters"][0].update(
        required=True
    ),
    "request-parameter-default-value-changed": lambda new: asked(new, "first").update(default=50),
    "request-parameter-default-value-added": lambda new: asked(new, "free").update(default="x"),
    "request-parameter-default-value-removed": lambda new: asked(new, "first").pop("default"),
    "request-header-property-became-required": lambda new: new["paths"]["/items"]["get"]["parameters"][-1].update(
        required=True
    ),
    "request-body-media-type-removed": lambda new: body(new)["content"].pop("text/csv"),
    "request-body-removed": lambda new: new["paths"]["/items"]["post"].pop("requestBody"),
    "request-body-became-required": lambda new: body(new).update(required=True),
    "request-body-type-changed": lambda new: sent(new).update(type="array"),
    "request-property-became-required": lambda new: sent(new).update(required=["text"]),
    "new-required-request-property": lambda new: (
        sent(new)["properties"].update(more={"type": "string"}),
        sent(new).update(required=["more"]),
    ),
    "response-media-type-removed": lambda new: answer(new)["content"].pop("text/csv"),
    "response-property-became-optional": lambda new: received(new).update(required=[]),
    "response-required-property-removed": lambda new: received(new)["properties"].pop("text"),
    "response-body-type-changed": lambda new: received(new).update(type="array"),
    "response-success-status-removed": lambda new: new["paths"]["/items"]["delete"]["responses"].pop("204"),
    "required-response-header-removed": lambda new: answer(new)["headers"].pop("etag"),
    "response-header-became-optional": lambda new: answer(new)["headers"]["etag"].pop("required"),
    "response-header-type-changed": lambda new: answer(new)["headers"]["etag"]["schema"].update(type="integer"),
    "response-header-became-nullable": lambda new: answer(new)["headers"]["etag"]["schema"].update(
        type=["string", "null"]
    ),
}
UNUSED = (
    *("prefixItems", "if", "then", "else", "contains", "minContains", "maxContains", "dependentRequired"),
    *("dependentSchemas", "patternProperties", "unevaluatedItems", "contentEncoding", "x-extensible-enum"),
)
"""Words of JSON Schema that have rules, and that no document of Diptych has."""


def altered(schema: Document, change: Document) -> None:
    for key, value in change.items():
        if value is None:
            schema.pop(key)
        else:
            schema[key] = value


def found(change: Callable[[Document], object], *, breaking: bool = True) -> list[str]:
    old, new = (json.loads(json.dumps(OLD)) for _ in range(2))  # nothing of them is shared
    change(new)
    return [str(each) for each in openapi_changes(old, new) if each.breaking is breaking]


def test_a_document_is_as_itself() -> None:
    assert found(lambda new: None) == found(lambda new: None, breaking=False) == []


@pytest.mark.parametrize("rule", NARROWED)
def test_what_is_sent_may_not_become_narrower(rule: str) -> None:
    name, change = NARROWED[rule]
    assert found(lambda new: altered(asked(new, name), change)), f"request-parameter-{rule}"
    assert found(lambda new: altered(sent(new)["properties"][name], change)), f"request-property-{rule}"


@pytest.mark.parametrize("rule", WIDENED)
def test_what_is_received_may_not_become_wider(rule: str) -> None:
    name, change = WIDENED[rule]
    assert found(lambda new: altered(received(new)["properties"][name], change)), f"response-property-{rule}"


@pytest.mark.parametrize("rule", BOUNDS)
def test_wider_bounds_of_what_is_received_are_dangerous(rule: str) -> None:
    name, change = BOUNDS[rule]

    def change_it(new: Document) -> None:
        altered(received(new)["properties"][name], change)

    assert found(change_it, breaking=False), f"response-property-{rule}"
    assert found(change_it) == []


@pytest.mark.parametrize("rule", OTHERS)
def test_each_other_rule(rule: str) -> None:
    assert found(OTHERS[rule]), rule


def test_the_documents_have_no_other_words() -> None:
    """A rule about a word that is used from now on needs a line above."""
    for model in (demo, edge_cases):
        for role in model.role_names:
            document = build_openapi(model.view_as(role), server="http://localhost", issuer="http://localhost")
            assert words(document["components"]["schemas"], named=True) & {*UNUSED} == set(), role


def words(node: Any, *, named: bool = False) -> set[str]:
    """The words of JSON Schema in a part of a document; below `properties` are names."""
    if isinstance(node, list):
        return {word for item in node for word in words(item)}
    if not isinstance(node, dict):
        return set()
    own = set() if named else {*node}
    return own.union(*(words(value, named=not named and key == "properties") for key, value in node.items()))
