"""GraphQL over WebSocket: parses and encodes the messages of the graphql-transport-ws protocol.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md. A client sends

    {"type": "connection_init", "payload": {"authorization": "Bearer …"}}
    {"type": "subscribe", "id": "1", "payload": {"query": "subscription { postChanged { cursor kind } }"}}

and gets `connection_ack`, then `next` for every result, and `complete` or `error`. A malformed message closes the
socket: a Closing has the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from diptych.api.graphql.http import Parameters
from diptych.api.json import check_keys
from diptych.api.reply import graphql_errors
from diptych.errors import Refusal

PROTOCOL = "graphql-transport-ws"
MAX_MESSAGE = 65_536
"""Largest message of a client, in bytes."""
MAX_SOCKET_OPERATIONS = 100
"""Operations of one socket at a time, subscriptions among them."""
MAX_WAITING = 1_048_576
"""Bytes of the pending operations of one socket."""
INIT_SECONDS = 3.0
"""Timeout for `connection_init`, in seconds."""
_MAX_REASON = 123
"""Longest reason of a close frame, in bytes."""
_MAX_ID = 128
_HEADER_KEYS = ("authorization", "Authorization")
_TOKEN_KEY = "authToken"
"""A token without its scheme, as in the examples of Apollo Client."""
_CREDENTIAL = re.compile(r"auth|token|jwt|bearer|secret|password|cookie|session|api[-_ ]?key", re.IGNORECASE)
LEGACY_PROTOCOL = "graphql-ws"
"""The subprotocol of subscriptions-transport-ws, which the package graphql-ws does not speak."""


class Closing(Exception):
    """Close the socket, with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason.encode()[:_MAX_REASON].decode(errors="ignore")


def bad_message(why: str) -> Closing:
    return Closing(4400, why)


UNAUTHORIZED = 4401, "Unauthorized"
FORBIDDEN = 4403, "Forbidden"
NOT_ACCEPTABLE = 4406, "Subprotocol not acceptable"
LEGACY = 4406, "graphql-ws is the subprotocol of subscriptions-transport-ws; use graphql-transport-ws instead"
LEGACY_ERROR = msgspec.json.encode({"type": "connection_error", "payload": {"message": LEGACY[1]}}).decode()
"""The message by which clients of that protocol learn that they are refused."""
INIT_TIMEOUT = 4408, "Connection initialisation timeout"
TOO_MANY_INITS = 4429, "Too many initialisation requests"
RESTART = 1012, "Service Restart"
INTERNAL = 4500
TRY_AGAIN = 1013
MESSAGE_TOO_LARGE = 1009, f"A message may have at most {MAX_MESSAGE} bytes"
SILENT = 1013, "No pong came"


def already_there(name: str) -> Closing:
    return Closing(4409, f"Subscriber for {name} already exists")


# in


class Init(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="connection_init"):
    payload: dict[str, Any] | None = None


class Subscribe(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="subscribe"):
    id: str
    payload: msgspec.Raw
    """Parameters, not parsed yet: an operation may have to wait, and parsed it takes many times as much memory."""


class Complete(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="complete"):
    id: str


class Ping(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="ping"):
    payload: dict[str, Any] | None = None


class Pong(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="pong"):
    payload: dict[str, Any] | None = None


ClientMessage = Init | Subscribe | Complete | Ping | Pong
_decode = msgspec.json.Decoder(ClientMessage).decode
_decode_parameters = msgspec.json.Decoder(Parameters).decode


def read_message(text: bytes) -> ClientMessage:
    """Parse a message of a client; Closing if it is malformed."""
    if len(text) > MAX_MESSAGE:
        raise Closing(*MESSAGE_TOO_LARGE)
    with _closing():
        message: ClientMessage = _decode(text)
        check_keys(text, message, None if isinstance(message, Subscribe | Complete) else message.payload)
    if isinstance(message, Subscribe | Complete) and not 0 < len(message.id) <= _MAX_ID:
        raise bad_message(f"An id has 1 to {_MAX_ID} characters")
    return message


def read_payload(payload: msgspec.Raw) -> Parameters:
    """Parse the payload of `subscribe`; Closing if it is malformed."""
    text = bytes(payload)
    with _closing():
        parameters = _decode_parameters(text)
        check_keys(text, parameters, [parameters.variables, parameters.extensions])
    return parameters


@contextmanager
def _closing() -> Iterator[None]:
    """Turn errors of parsing into a Closing."""
    try:
        yield
    except (RecursionError, Refusal):
        raise bad_message("The message is nested too deeply") from None
    except ValueError as error:  # errors of msgspec are ValueErrors
        raise bad_message(f"Invalid message: {error}") from None


def token_of(payload: Mapping[str, Any] | None) -> bytes | None:
    """The Authorization in the payload of `connection_init`, if there is one.

    It is `authorization` or `Authorization`, itself or in `headers`; or `authToken`, a token without its scheme. Any
    other key that seems to be a credential is refused, since its sender would be anonymous without knowing it.
    """
    if not payload:
        return None
    headers = payload.get("headers")
    inner = headers if isinstance(headers, dict) else {}
    found = [part[key] for part in (payload, inner) for key in _HEADER_KEYS if part.get(key) is not None]
    token = payload.get(_TOKEN_KEY)
    if token is not None:
        found.append(f"Bearer {token}" if isinstance(token, str) and not token.startswith("Bearer ") else token)
    if not found:
        _refuse_credentials(payload, inner)
        return None
    if len(found) > 1 or not isinstance(found[0], str):
        raise bad_message("The payload takes one authorization, which is a text")
    return found[0].encode()


def _refuse_credentials(payload: Mapping[str, Any], headers: Mapping[str, Any]) -> None:
    """Refuse a payload with a credential that is not understood."""
    for key in (*payload, *headers):
        if key not in (*_HEADER_KEYS, _TOKEN_KEY) and _CREDENTIAL.search(key):
            raise bad_message(f"{key[:20]!r} is not understood; send {{authorization: 'Bearer <token>'}}")


# out

ACK = b'{"type":"connection_ack"}'
PONG = b'{"type":"pong"}'
AFTER_RESULT = b"}"


def before_result(name: str) -> bytes:
    """The bytes before a result."""
    return b'{"id":%b,"type":"next","payload":' % msgspec.json.encode(name)


def complete_message(name: str) -> bytes:
    return b'{"id":%b,"type":"complete"}' % msgspec.json.encode(name)


def errors_of(result: bytes) -> bytes | None:
    """The errors of a result that has nothing else: the operation was refused before it ran."""
    return result[len(_ERRORS) : -1] if result.startswith(_ERRORS) else None


_ERRORS = b'{"errors":'


def error(name: str, errors: bytes) -> bytes:
    return b'{"id":%b,"type":"error","payload":%b}' % (msgspec.json.encode(name), errors)


def error_message(name: str, refusal: Refusal, cursor: str = "") -> bytes:
    """An `error` message: an operation is refused or ended; the cursor says where to resume."""
    errors = graphql_errors(refusal)
    if cursor:
        for detail in errors:
            detail["extensions"]["cursor"] = cursor
    return error(name, msgspec.json.encode(errors))


def pong(payload: Mapping[str, Any] | None) -> bytes:
    return b'{"type":"pong","payload":%b}' % msgspec.json.encode(payload) if payload is not None else PONG


def ping(cursors: Mapping[str, str]) -> bytes:
    """A heartbeat with the cursor of each subscription, and one for all if they are equal."""
    if not cursors:
        return b'{"type":"ping"}'
    payload: dict[str, Any] = {"cursors": cursors}
    if len(set(cursors.values())) == 1:
        payload = {"cursor": next(iter(cursors.values())), **payload}
    return b'{"type":"ping","payload":%b}' % msgspec.json.encode(payload)


def slow_reader(cursor: str) -> tuple[int, str]:
    """Close code and reason for a client that reads too slowly: try again later, from this cursor."""
    reason = msgspec.json.encode({"code": "SLOW_READER", "cursor": cursor})
    if len(reason) > _MAX_REASON:
        reason = b'{"code":"SLOW_READER"}'
    return 1013, reason.decode()
