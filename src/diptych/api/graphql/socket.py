"""GraphQL over WebSocket: the messages of the protocol graphql-transport-ws, in and out, as plain values and bytes.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md. A client sends

    {"type": "connection_init", "payload": {"authorization": "Bearer …"}}
    {"type": "subscribe", "id": "1", "payload": {"query": "subscription { postChanged { cursor kind } }"}}

and is answered by `connection_ack`, then by `next` as often as there is something, by `complete`, or by `error`. What
is no message of the protocol closes the socket: a Closing says with which code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from diptych.api.graphql.http import DocumentRefusal, Parameters
from diptych.api.json import check_keys
from diptych.api.reply import graphql_errors
from diptych.errors import Refusal

PROTOCOL = "graphql-transport-ws"
MAX_MESSAGE = 65_536
"""Bytes of one message of a client."""
MAX_OPERATIONS = 100
"""Operations of one socket at a time, subscriptions among them."""
MAX_WAITING = 1_048_576
"""Bytes of the operations of one socket that are not answered yet."""
INIT_SECONDS = 3.0
"""How long a socket waits for `connection_init`."""
_MAX_REASON = 123
"""Bytes of a reason, as a close frame can hold them."""
_MAX_ID = 128
_TOKEN_KEYS = ("authorization", "Authorization")


class Closing(Exception):
    """The socket is to be closed, with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason.encode()[:_MAX_REASON].decode(errors="ignore")


def bad_message(why: str) -> Closing:
    return Closing(4400, why)


UNAUTHORIZED = 4401, "Unauthorized"
FORBIDDEN = 4403, "Forbidden"
NOT_ACCEPTABLE = 4406, "Subprotocol not acceptable"
INIT_TIMEOUT = 4408, "Connection initialisation timeout"
TOO_MANY_INITS = 4429, "Too many initialisation requests"
RESTART = 1012, "Service Restart"
INTERNAL = 4500
TRY_AGAIN = 1013
TOO_LARGE = 1009, f"A message may have {MAX_MESSAGE} bytes"
SILENT = 1013, "No pong came"


def already_there(name: str) -> Closing:
    return Closing(4409, f"Subscriber for {name} already exists")


# in


class Init(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="connection_init"):
    payload: dict[str, Any] | None = None


class Subscribe(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="subscribe"):
    id: str
    payload: msgspec.Raw
    """Parameters, as they were sent: an operation may wait, and what was read takes many times as much memory."""


class Complete(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="complete"):
    id: str


class Ping(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="ping"):
    payload: dict[str, Any] | None = None


class Pong(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="pong"):
    payload: dict[str, Any] | None = None


Message = Init | Subscribe | Complete | Ping | Pong
_decode = msgspec.json.Decoder(Message).decode
_decode_parameters = msgspec.json.Decoder(Parameters).decode


def read_message(text: bytes) -> Message:
    """A message of a client, or a Closing."""
    if len(text) > MAX_MESSAGE:
        raise Closing(*TOO_LARGE)
    with _closing():
        found: Message = _decode(text)
        check_keys(text, found, None if isinstance(found, Subscribe | Complete) else found.payload)
    if isinstance(found, Subscribe | Complete) and not 0 < len(found.id) <= _MAX_ID:
        raise bad_message(f"An id has 1 to {_MAX_ID} characters")
    return found


def read_payload(payload: msgspec.Raw) -> Parameters:
    """What an operation asks for, or a Closing."""
    text = bytes(payload)
    with _closing():
        found = _decode_parameters(text)
        check_keys(text, found, [found.variables, found.extensions])
    return found


@contextmanager
def _closing() -> Iterator[None]:
    """What cannot be read closes the socket."""
    try:
        yield
    except (RecursionError, Refusal):
        raise bad_message("The message is nested too deeply") from None
    except ValueError as error:  # what msgspec raises is one, too
        raise bad_message(f"Invalid message: {error}") from None


def token_of(payload: Mapping[str, Any] | None) -> bytes | None:
    """The Authorization in the payload of `connection_init`, if there is one."""
    given = [payload[key] for key in _TOKEN_KEYS if key in payload] if payload else []
    given = [each for each in given if each is not None]
    if not given:
        return None
    if len(given) > 1 or not isinstance(given[0], str):
        raise bad_message("The payload takes one authorization, which is a text")
    return given[0].encode()


# out

ACK = b'{"type":"connection_ack"}'
PONG = b'{"type":"pong"}'
AFTER_RESULT = b"}"


def before_result(name: str) -> bytes:
    """What stands before a result."""
    return b'{"id":%b,"type":"next","payload":' % msgspec.json.encode(name)


def complete(name: str) -> bytes:
    return b'{"id":%b,"type":"complete"}' % msgspec.json.encode(name)


def errors_of(result: bytes) -> bytes | None:
    """The errors of a result that has nothing else: it was refused before it ran."""
    return result[len(_ERRORS) : -1] if result.startswith(_ERRORS) else None


_ERRORS = b'{"errors":'


def error(name: str, errors: bytes) -> bytes:
    return b'{"id":%b,"type":"error","payload":%b}' % (msgspec.json.encode(name), errors)


def refused(name: str, refusal: Refusal, cursor: str = "") -> bytes:
    """An operation is refused, or ends for a reason; the cursor says where another could go on."""
    found: list[dict[str, Any]] = refusal.errors if isinstance(refusal, DocumentRefusal) else graphql_errors(refusal)
    if cursor:
        for each in found:
            each["extensions"]["cursor"] = cursor
    return error(name, msgspec.json.encode(found))


def pong(payload: Mapping[str, Any] | None) -> bytes:
    return b'{"type":"pong","payload":%b}' % msgspec.json.encode(payload) if payload is not None else PONG


def ping(cursors: Mapping[str, str]) -> bytes:
    """A heart-beat with the cursor of each subscription; with one for all, if that holds for all of them."""
    if not cursors:
        return b'{"type":"ping"}'
    payload: dict[str, Any] = {"cursors": cursors}
    if len(set(cursors.values())) == 1:
        payload = {"cursor": next(iter(cursors.values())), **payload}
    return b'{"type":"ping","payload":%b}' % msgspec.json.encode(payload)


def slow_reader(cursor: str) -> tuple[int, str]:
    """How a socket is closed whose client reads too slowly: try again later, from this cursor."""
    told = msgspec.json.encode({"code": "SLOW_READER", "cursor": cursor})
    if len(told) > _MAX_REASON:
        told = b'{"code":"SLOW_READER"}'
    return 1013, told.decode()
