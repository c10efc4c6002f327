"""Answers, read as strictly as h11 does: bytes of a connection → answers, or a ValueError that says what is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import h11


@dataclass
class Answer:
    """One answer; header names are in lower case. `is_whole` if its body came to its end."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    is_whole: bool = False
    method: bytes = b"GET"
    rest: bytes = field(default=b"", repr=False)
    """What came after the head of an answer that changes the protocol."""

    def header(self, name: bytes) -> bytes:
        return b", ".join(value for key, value in self.headers if key == name)

    @property
    def kind(self) -> str:
        """Its media type."""
        return self.header(b"content-type").partition(b";")[0].decode("latin-1")

    @property
    def closes(self) -> bool:
        return b"close" in self.header(b"connection").lower()

    def json(self) -> Any:
        return json.loads(self.body)


def read_answers(raw: bytes, methods: Sequence[bytes], *, ended: bool) -> list[Answer]:
    """The answers to requests of these methods, in their order; `ended` if nothing more comes."""
    found: list[Answer] = []
    while raw:
        method = methods[len(found)] if len(found) < len(methods) else b"GET"
        try:
            answer, raw = _read(raw, method, ended)
        except h11.RemoteProtocolError as error:
            raise ValueError(f"answer {len(found) + 1} is no HTTP: {error}") from None
        if answer is None:
            break
        found.append(answer)
        if not answer.is_whole or answer.status == 101:
            break
    return found


def _read(raw: bytes, method: bytes, ended: bool) -> tuple[Answer | None, bytes]:
    """The first answer, if its head is there, and what is left."""
    connection = h11.Connection(h11.CLIENT)
    offer = (
        [("host", "x"), ("connection", "upgrade"), ("upgrade", "websocket")] if method == b"GET" else [("host", "x")]
    )
    asked = b"HEAD" if method == b"HEAD" else b"GET"
    connection.send(h11.Request(method=asked, target="/", headers=offer))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    answer: Answer | None = None
    while True:
        event = connection.next_event()
        if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
            answer = Answer(101, list(event.headers), is_whole=True, method=method)
            answer.rest = bytes(connection.trailing_data[0])
            return answer, b""
        if isinstance(event, h11.Response):
            answer = Answer(event.status_code, list(event.headers), method=method)
        elif isinstance(event, h11.Data) and answer is not None:
            answer.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and answer is not None:
            answer.is_whole = True
            return answer, bytes(connection.trailing_data[0])
        elif event is h11.NEED_DATA:
            if not ended or (answer is None and not connection.trailing_data[0]):  # no more than 100 Continue
                return answer, b""
            ended = False
            connection.receive_data(b"")  # so that h11 refuses a body that was cut
        elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return answer, b""
