"""Serves metrics and health to operators, on a port of its own and without a token.

    GET /metrics          for Prometheus
    GET /health/live      the process answers
    GET /health/ready     it can serve requests

The port listens on the loopback interface unless the setting says otherwise, and has nothing else: no data, no API.
"""

from __future__ import annotations

from typing import Protocol

from diptych.api.reply import JSON_TYPE, NO_STORE, Reply, method_reply, problem
from diptych.errors import Code, Refusal
from diptych.serve.asgi import Receive, Scope, Send
from diptych.serve.http.uvicorn_fast_path import send_reply

_METHODS = ("GET", "HEAD", "OPTIONS")


class Observed(Protocol):
    """What operators ask of an application."""

    def reply(self, accept: bytes) -> Reply:
        """All metrics, as text for Prometheus."""
        ...

    async def check_ready(self) -> None:
        """Raise a Refusal if it cannot serve requests."""
        ...


class OperatorPort:
    """The ASGI application of the operators' port."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            reply = method_reply(scope["method"], _METHODS) or await self._reply(scope)
        except Refusal as refusal:
            reply = problem(refusal)
        await send_reply(send, reply, b"" if scope["method"] == "HEAD" else reply.body)

    async def _reply(self, scope: Scope) -> Reply:
        path = scope["path"]
        if path == "/metrics":
            return self._observed.reply(dict(scope["headers"]).get(b"accept", b""))
        if path == "/health/ready":
            await self._observed.check_ready()
        elif path != "/health/live":
            raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        return Reply(200, ((b"content-type", JSON_TYPE), *NO_STORE), b'{"status":"ok"}')
