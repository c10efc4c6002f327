"""GraphQL over HTTP: parses the parameters of a request, and encodes errors.

https://graphql.github.io/graphql-over-http: POST with a JSON body, GET with query parameters. The response is
`application/graphql-response+json` if the client accepts it, with a status that reflects errors, and otherwise
`application/json`, with status 200 for every well-formed request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from diptych.api.json import HIDDEN, MAX_NESTING, check_commas, check_keys, parse_json, too_deep
from diptych.api.query_string import bad_parameter, parse_query
from diptych.api.reply import NO_STORE, STATUS, Header, Reply, challenge, graphql_errors
from diptych.errors import Code, Refusal

RESPONSE = "application/graphql-response+json"
LEGACY = "application/json"
OFFERS = (LEGACY, RESPONSE)
TRANSPORT_CODES = (
    Code.BAD_REQUEST,
    Code.METHOD_NOT_ALLOWED,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.PAYLOAD_TOO_LARGE,
    Code.NOT_ACCEPTABLE,
    Code.PERSISTED_QUERY_HASH_MISMATCH,
    Code.RATE_LIMITED,
    Code.INTERNAL,
    Code.UNAVAILABLE,
    Code.TIMEOUT,
)
"""Codes of requests that are not well-formed, or that failed for other reasons: always sent with their status."""


class Parameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of a GraphQL request."""

    query: str | None = None
    operationName: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None
    documentId: str | None = None
    """The name of a persisted document, instead of its text."""


_BATCH = (
    "An array of requests is not accepted: batching is off. Send each request by itself, or one document with several "
    "root fields, which is one statement."
)
_decode = msgspec.json.Decoder(Parameters).decode
_encode = msgspec.json.Encoder().encode


def read_body(body: bytes) -> Parameters:
    """The parameters in the body of a POST."""
    check_commas(body)
    try:
        parameters = _decode(body)
        colons = body.count(b":")  # fast path: as many keys as came back, and too few to nest deep
        if (
            colons + body.count(b"[") >= MAX_NESTING
            or body.find(HIDDEN) >= 0
            or colons != _encode(parameters).count(b":")
        ):
            check_keys(body, parameters, [parameters.variables, parameters.extensions])
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:  # errors of msgspec are ValueErrors
        if body.lstrip()[:1] == b"[":
            raise Refusal(Code.BAD_REQUEST, _BATCH) from None
        raise Refusal(Code.BAD_REQUEST, f"The body is not a GraphQL request: {error}.") from None
    return parameters


def read_parameters(raw: str) -> Parameters:
    """The parameters in the query string of a GET."""
    pairs = parse_query(raw)
    for name in pairs:
        if name not in Parameters.__struct_fields__:
            raise bad_parameter(name, "there is no such parameter here")
    operation = pairs.get("operationName") or None
    variables, extensions = _object(pairs, "variables"), _object(pairs, "extensions")
    return Parameters(pairs.get("query"), operation, variables, extensions, pairs.get("documentId"))


def _object(pairs: Mapping[str, str], name: str) -> dict[str, Any] | None:
    if not pairs.get(name):
        return None
    try:
        value = parse_json(pairs[name].encode())
    except ValueError as error:
        raise bad_parameter(name, f"expected a JSON object: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise bad_parameter(name, "expected a JSON object")
    return value


def error_reply(refusal: Refusal, media: str, headers: tuple[Header, ...] = ()) -> Reply:
    """A Refusal as a GraphQL response."""
    errors = graphql_errors(refusal)
    head = ((b"content-type", f"{media}; charset=utf-8".encode()), *NO_STORE, *headers)
    if refusal.path:  # it was running: there is data, and it is null
        return Reply(200, head, msgspec.json.encode({"data": None, "errors": errors}))
    status = 200 if media == LEGACY and refusal.code not in TRANSPORT_CODES else STATUS[refusal.code]
    if status in (401, 415, 429, 503):
        head = (*head, *challenge(refusal))
    return Reply(status, head, msgspec.json.encode({"errors": errors}))
