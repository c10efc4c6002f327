"""Bytes to a server and back, each connection by hand."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any, NamedTuple

from tests.support.running import Client

PATIENCE = 20.0
QUERY = b'{"query":"{ __typename }"}'
ANSWER = b'{"data":{"__typename":"Query"}}'


class Told(NamedTuple):
    """One answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        found: Any = json.loads(self.body)
        return str(found["code"] if "code" in found else found["errors"][0]["extensions"]["code"])


def connect(client: Client) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def drain(connection: socket.socket) -> bytes:
    """All that comes until the server ends the connection, in whatever way."""
    parts = []
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def told(raw: bytes) -> list[Told]:
    """The answers in some bytes, which must be nothing else."""
    found = []
    while raw:
        head, separator, rest = raw.partition(b"\r\n\r\n")
        assert separator, raw[:200]
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
        size = int(headers.get("content-length", 0))
        found.append(Told(int(line.split()[1]), headers, rest[:size]))
        raw = rest[size:]
    return found


def exchange(client: Client, *pieces: bytes) -> list[Told]:
    """The answers to some bytes, sent piece by piece, until the server ends the connection."""
    with connect(client) as connection:
        for piece in pieces:
            with suppress(ConnectionError):
                connection.sendall(piece)
        return told(drain(connection))


def get(target: str = "/health/live", *headers: str, close: bool = True) -> bytes:
    """A plain request."""
    last = ["Connection: close"] if close else []
    return "\r\n".join((f"GET {target} HTTP/1.1", "Host: x", *headers, *last, "", "")).encode("latin-1")


def post(*headers: str, body: bytes = QUERY, close: bool = True) -> bytes:
    """A query, with the headers that say how long it is."""
    last = ["Connection: close"] if close else []
    lines = ("POST /graphql HTTP/1.1", "Host: x", "Content-Type: application/json", *headers, *last, "", "")
    return "\r\n".join(lines).encode("latin-1") + body


SIZED = f"Content-Length: {len(QUERY)}"
CHUNKED = b"5\r\n" + QUERY[:5] + b"\r\n15\r\n" + QUERY[5:] + b"\r\n0\r\n\r\n"
