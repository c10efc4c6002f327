"""GraphQL over HTTP: the parameters of a request, and the bytes of an answer.

https://graphql.github.io/graphql-over-http: POST with a JSON body, GET with query parameters; the answer is
`application/graphql-response+json` for those who ask for it, with a status that tells of errors, and
`application/json` for everybody else, whose well-formed requests are always answered by 200.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from graphql import GraphQLError

from diptych.api.json import HIDDEN, check_keys, parse_json
from diptych.api.limits import MAX_NESTING, MAX_VALUES, check_commas, too_deep
from diptych.api.reply import NO_STORE, STATUS, Header, Reply, challenge, graphql_errors, shortened
from diptych.api.rest.query import bad, parse_query
from diptych.errors import Code, Fault, Refusal

RESPONSE = "application/graphql-response+json"
LEGACY = "application/json"
OFFERS = (LEGACY, RESPONSE)
MALFORMED = (Code.BAD_REQUEST, Code.METHOD_NOT_ALLOWED, Code.UNSUPPORTED_MEDIA_TYPE, Code.PAYLOAD_TOO_LARGE,
              Code.NOT_ACCEPTABLE, Code.PERSISTED_QUERY_HASH_MISMATCH, Code.RATE_LIMITED, Code.INTERNAL,
              Code.UNAVAILABLE, Code.TIMEOUT)  # fmt: skip
"""What is no well-formed GraphQL request, or no fault of it: these have their status for everybody."""


class Parameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a GraphQL request says."""

    query: str | None = None
    operationName: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None
    documentId: str | None = None
    """The name of a document, in place of its text."""


class DocumentRefusal(Refusal):
    """A document, or its variables, that graphql-core refuses, with its errors."""

    def __init__(self, code: Code, errors: list[GraphQLError], faults: Iterable[Fault] = ()) -> None:
        super().__init__(code, errors[0].message, faults)
        self.errors = [
            {**error.formatted, "message": shortened(error.message), "extensions": {"code": code.value}}
            for error in errors
        ]


_decode = msgspec.json.Decoder(Parameters).decode
_encode = msgspec.json.Encoder().encode


def read_body(body: bytes) -> Parameters:
    """The parameters in the body of a POST."""
    if body.count(b",") >= MAX_VALUES:
        check_commas(body)
    try:
        found = _decode(body)
        colons = body.count(b":")  # the most usual, at a glance: as many keys as came back, and too few to nest deep
        if colons + body.count(b"[") >= MAX_NESTING or body.find(HIDDEN) >= 0 or colons != _encode(found).count(b":"):
            check_keys(body, found, [found.variables, found.extensions])
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:  # what msgspec raises is one, too
        raise Refusal(Code.BAD_REQUEST, f"The body is not a GraphQL request: {error}.") from None
    return found


def read_query(raw: str) -> Parameters:
    """The parameters in the query string of a GET."""
    given = parse_query(raw)
    for name in given:
        if name not in Parameters.__struct_fields__:
            raise bad(name, "there is no such parameter here")
    operation = given.get("operationName") or None
    variables, extensions = _object(given, "variables"), _object(given, "extensions")
    return Parameters(given.get("query"), operation, variables, extensions, given.get("documentId"))


def _object(given: Mapping[str, str], name: str) -> dict[str, Any] | None:
    if not given.get(name):
        return None
    try:
        found = parse_json(given[name].encode())
    except ValueError as error:
        raise bad(name, f"expected a JSON object: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise bad(name, "expected a JSON object")
    return found


def error_reply(refusal: Refusal, media: str, headers: tuple[Header, ...] = ()) -> Reply:
    """A Refusal in the query style."""
    legacy = media == LEGACY
    errors = refusal.errors if isinstance(refusal, DocumentRefusal) else graphql_errors(refusal)
    if refusal.path:  # it was running: there is data, and it is null
        head = ((b"content-type", f"{media}; charset=utf-8".encode()), *NO_STORE, *headers)
        return Reply(200, head, msgspec.json.encode({"data": None, "errors": errors}))
    status = 200 if legacy and refusal.code not in MALFORMED else STATUS[refusal.code]
    head = ((b"content-type", f"{media}; charset=utf-8".encode()), *NO_STORE, *headers)
    if status in (401, 429, 503):
        head = (*head, *challenge(refusal))
    return Reply(status, head, msgspec.json.encode({"errors": errors}))
