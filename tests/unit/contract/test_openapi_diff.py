"""Changes of an OpenAPI document: what breaks a client, and what does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from diptych.contract.openapi_diff import openapi_changes

Document = dict[str, Any]
OLD: Document = {
    "components": {
        "parameters": {"first": {"in": "query", "name": "first", "schema": {"type": "integer", "maximum": 100}}},
        "responses": {"Item": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}},
        "schemas": {
            "Item": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "parent": {"anyOf": [{"$ref": "#/components/schemas/Item"}, {"type": "null"}]},
                },
                "required": ["name"],
            }
        },
    },
    "paths": {
        "/items": {
            "parameters": [{"$ref": "#/components/parameters/first"}],
            "get": {
                "operationId": "listItems",
                "security": [{"bearer": []}, {}],
                "responses": {"200": {"$ref": "#/components/responses/Item"}, "default": {}},
            },
            "post": {
                "operationId": "createItem",
                "requestBody": {
                    "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}
                },
                "responses": {"201": {"$ref": "#/components/responses/Item"}},
            },
        }
    },
}


def changed(change: Callable[[Document], object]) -> list[str]:
    new = copy.deepcopy(OLD)
    change(new)
    return [str(found) for found in openapi_changes(OLD, new)]


def items(document: Document) -> Document:
    found: Document = document["paths"]["/items"]
    return found


def item(document: Document) -> Document:
    found: Document = document["components"]["schemas"]["Item"]
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda new: new["paths"].clear(), ["/items: is gone"]),
        (lambda new: items(new).pop("post"), ["POST /items: is gone"]),
        (lambda new: items(new)["get"].update(operationId="x"), ["GET /items: the operation listItems is now x"]),
        (lambda new: items(new)["get"].update(security=[{"bearer": []}]), ["GET /items: needs a token now"]),
        (
            lambda new: items(new)["get"].update(parameters=[{"in": "query", "name": "x", "required": True}]),
            ["GET /items: the parameter `x` is required now"],
        ),
        (
            lambda new: items(new)["get"].update(parameters=[{"in": "query", "name": "x"}]),
            [],
        ),
        (
            lambda new: items(new).pop("parameters"),
            ["GET /items: the parameter `first` is gone", "POST /items: the parameter `first` is gone"],
        ),
        (
            lambda new: new["components"]["parameters"]["first"]["schema"].update(maximum=50),
            [f"{method} /items, parameter `first`: maximum is 50; it was 100" for method in ("GET", "POST")],
        ),
        (lambda new: items(new)["post"].pop("requestBody"), ["POST /items: takes no body any more"]),
        (lambda new: items(new)["post"]["requestBody"].update(required=True), ["POST /items: needs a body now"]),
        (
            lambda new: items(new)["post"]["requestBody"]["content"]["application/json"]["schema"]["items"].update(
                type="integer"
            ),
            ["POST /items, body: a string is not taken any more"],
        ),
        (lambda new: items(new)["post"]["responses"].clear(), ["POST /items: does not answer 201 any more"]),
        (
            lambda new: new["components"]["responses"]["Item"]["content"].clear(),
            [
                "GET /items, response 200: application/json is gone",
                "POST /items, response 201: application/json is gone",
            ],
        ),
        (lambda new: item(new)["required"].clear(), ["Item in responses: `name` may be missing now"]),
        (lambda new: item(new)["properties"].update(more={"type": "string"}), []),
        (
            lambda new: item(new)["properties"]["name"].update(type=["string", "null"]),
            ["Item in responses, `name`: can be null now"],
        ),
        (lambda new: item(new)["properties"].pop("parent"), ["Item in responses: `parent` is gone"]),
    ],
)
def test_a_change_is_named_once_at_its_place(change: Callable[[Document], object], said: list[str]) -> None:
    assert [sentence for sentence in changed(change) if not sentence.startswith("Item in responses, `parent`")] == said
