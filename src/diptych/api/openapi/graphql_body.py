"""The bodies of requests to /graphql and of their responses, as OpenAPI describes them."""

from __future__ import annotations

from diptych.api.openapi.schemas import Schema

GRAPHQL_EXAMPLE = {"query": "query Hello { __typename }", "operationName": "Hello"}
GRAPHQL_REQUEST: Schema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "format": "graphql"},
        "operationName": {"type": ["string", "null"], "format": "graphql-operation"},
        "variables": {"type": ["object", "null"]},
        "extensions": {"type": ["object", "null"]},
    },
    "required": ["query"],
}
_ERROR: Schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
GRAPHQL_ANSWER: Schema = {
    "type": "object",
    "properties": {
        "data": {"type": ["object", "null"]},
        "errors": {"type": "array", "minItems": 1, "items": _ERROR},
        "extensions": {"type": "object"},
    },
    "additionalProperties": False,
}
