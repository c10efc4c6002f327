"""The OpenAPI operation of `POST /batch`: several writes in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.api.openapi.components import SERVICE, JsonObject, answer, closed, errors, operation
from diptych.api.openapi.schemas import Schema

_ERRORS = (400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 429, 431, 503, 504)
_TEXT: Schema = {"type": "string", "pattern": "^[ -~]*$"}
_NAME: Schema = {
    "type": "string",
    "pattern": "^[_A-Za-z][_0-9A-Za-z]{0,63}$",
    "description": "The name by which later requests refer to its row: `$name`.",
}
_DESCRIPTION = (
    "The requests run in order in one transaction: all of them or none. `$name` in the place of an id is the row that "
    "the request with the id `name` wrote. If one is refused, the response is its error, and `request` says which."
)
_EXAMPLE: JsonObject = {"requests": [{"id": "gone", "method": "DELETE", "url": "/things/1"}]}


def batch_path(keys: Sequence[JsonObject]) -> JsonObject:
    """The path item; `keys` are the parameters for idempotency."""
    post = operation("Several writes in one transaction.", SERVICE, keys, _DESCRIPTION)
    content = {"application/json": {"schema": _request(), "example": _EXAMPLE}}
    post["requestBody"] = {"required": True, "content": content}
    ok = answer("The responses, in the order of the requests.", _response())
    return {"post": {"operationId": "batch", **post, "responses": {"200": ok, **errors(_ERRORS)}}}


def _request() -> Schema:
    one = closed(
        {
            "id": _NAME,
            "method": {"type": "string", "enum": ["POST", "PUT", "PATCH", "DELETE"]},
            "url": {"type": "string", "pattern": '^/[ -"$-~]*$', "description": "A path, with its query string."},
            "headers": {
                "type": "object",
                "properties": dict.fromkeys(("content-type", "if-match", "if-none-match", "prefer"), _TEXT),
                "additionalProperties": False,
            },
            "body": {},
        },
        *("id", "headers", "body"),
    )
    return closed({"requests": {"type": "array", "items": one, "minItems": 1}})


def _response() -> Schema:
    headers: Schema = {"type": "object", "additionalProperties": _TEXT}
    status: Schema = {"type": "integer", "enum": [200, 201, 204]}
    one = closed({"id": _NAME, "status": status, "headers": headers, "body": {}}, "id", "body")
    return closed({"responses": {"type": "array", "items": one}})
