"""Services of the default model in this process, for tests with several nodes on one loop.

node = Node(primary.url(), (standby.url(),))
await node.start()
status, headers, body = await node.send("GET", "/users?first=2")
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.handler import Handler
from diptych.serve.http.request import Request


class Node:
    """One service, in this process."""

    def __init__(self, database: str, replicas: tuple[str, ...] = (), **settings: Any) -> None:
        self.app = Diptych(model, config=Config(database=database, replicas=replicas, **settings))
        self.handler: Handler

    async def start(self) -> None:
        self.handler = await self.app.start()

    def token(self, *roles: str) -> str:
        """An access token for an hour."""
        return self.handler.context.tokens.make(None, roles, None, 3600)

    async def send(
        self, method: str, url: str, token: str = "", body: Any = None, **headers: str
    ) -> tuple[int, Mapping[str, str], Any]:
        """A request; `read_token="…"` is a header."""
        path, _, query = url.partition("?")
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        if token:
            sent[b"authorization"] = f"Bearer {token}".encode()
        raw = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            sent[b"content-type"] = b"application/json"

        async def read(_: int) -> bytes:
            return raw

        reply = await self.handler.handle(Request(method, path, query, sent, read))
        found = {name.decode(): value.decode() for name, value in reply.headers}
        return reply.status, found, json.loads(reply.body) if reply.body else None
