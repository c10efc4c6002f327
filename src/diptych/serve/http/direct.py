"""The direct path: a complete request is answered without ASGI (decision 0031)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from msgspec import Struct

from diptych.api.reply import Reply
from diptych.serve.http.deadlines import Deadlines
from diptych.serve.http.head_traits import HeadTraits


class CompleteRequest(Struct, eq=False, gc=False):
    """A request whose body has arrived."""

    method: str
    url: bytes
    headers: dict[bytes, bytes]
    peer: tuple[str, int] | None
    body: bytes = b""
    lag: float = 0.0
    """Seconds for which it waited for the event loop."""
    traits: HeadTraits | None = None
    """What its headers say, if requests with this head came before, and all of them are harmless."""


class DirectApp(Protocol):
    """An application that answers complete requests without ASGI."""

    deadlines: Deadlines

    def respond(self, arrived: CompleteRequest) -> Reply | Awaitable[Reply]:
        """Answer a request: the reply, or, if it has to wait, an awaitable of it.

        The task that awaits it is to be in `deadlines`.
        """
        ...

    async def stream(self, reply: Reply, scope: Any, receive: Any, send: Any) -> None:
        """Send a streaming reply by ASGI."""
        ...
