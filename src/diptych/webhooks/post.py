"""Sends one message by HTTP POST, to an address that was checked, over connections that are kept for the next ones.

    await Sender(endpoint, resolver).post(headers, body)          Outcome(status=204)

TLS is verified for the name of the host. Redirects are not followed: they are failures. Of a response only the status
and `Retry-After` count; its body is read up to a limit and thrown away. All of it has to happen within ten seconds.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import Sequence

import httptools
from msgspec import Struct

from diptych.webhooks.address import Endpoint, RefusedAddress, Resolver

TIMEOUT = 10.0
"""Seconds for one message, from the name to the end of the response."""
LARGEST = 65_536
"""Bytes of a response that are read."""
_PIECE = 16_384
_KEPT_FOR = 60.0
"""Seconds for which a connection is used: then the name is resolved and checked again."""
_IDLE_FOR = 4.0
"""Seconds after which an idle connection is not used again: many servers close them after five."""
_LONGEST_WAIT = 3_600


class PostOutcome(Struct, frozen=True):
    """What became of a message: the status of the response, or 0 and why there is none."""

    status: int
    fault: str = ""
    retry_after: int = 0

    @property
    def is_delivered(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.fault or f"the response is {self.status}"


class _Response:
    """A response, filled by httptools while it parses."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.retry_after = 0
        self.is_whole = self.is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after" and len(value) < 9 and value.isdigit():
            self.retry_after = min(int(value), _LONGEST_WAIT)

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_message_complete(self) -> None:
        self.is_whole = self.status >= 200
        self.is_kept = self.parser.should_keep_alive()


class _Connection:
    """A connection to one checked address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.opened_at = self.used_at = time.monotonic()
        self.is_new = True

    @property
    def is_usable(self) -> bool:
        now = time.monotonic()
        young = now < self.opened_at + _KEPT_FOR and now < self.used_at + _IDLE_FOR
        return young and not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        self.writer.transport.abort()


class Sender:
    """The connections to the endpoint of one webhook."""

    def __init__(self, endpoint: Endpoint, resolver: Resolver) -> None:
        self._endpoint = endpoint
        self._resolver = resolver
        self._idle: list[_Connection] = []

    async def post(self, headers: Sequence[tuple[str, str]], body: bytes) -> PostOutcome:
        """Send a message; never raises but CancelledError."""
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._post(headers, body)
        except TimeoutError:
            return PostOutcome(0, f"there was no response within {TIMEOUT:.0f} seconds")
        except RefusedAddress as error:
            return PostOutcome(0, f"the address is refused: {error}")
        except ssl.SSLError as error:
            return PostOutcome(0, f"TLS failed: {error.reason or 'the certificate is not valid'}")
        except (OSError, ValueError, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            return PostOutcome(0, f"it cannot be reached: {type(error).__name__}")

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _post(self, headers: Sequence[tuple[str, str]], body: bytes) -> PostOutcome:
        while True:
            connection = self._take() or await self._open()
            try:
                response = await self._exchange(connection, headers, body)
            except (OSError, EOFError):
                connection.close()
                if connection.is_new:
                    raise OSError("the connection was closed") from None
                continue  # the server had closed an idle connection
            except BaseException:
                connection.close()
                raise
            return PostOutcome(response.status, "", response.retry_after)

    async def _exchange(self, connection: _Connection, headers: Sequence[tuple[str, str]], body: bytes) -> _Response:
        lines = (
            f"POST {self._endpoint.path} HTTP/1.1",
            f"Host: {self._endpoint.authority}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "User-Agent: diptych-webhooks",
            "Accept-Encoding: identity",
            *(f"{name}: {value}" for name, value in headers),
        )
        connection.writer.write("\r\n".join((*lines, "", "")).encode("ascii") + body)
        await connection.writer.drain()
        response, size = _Response(), 0
        while not response.is_whole and size <= LARGEST:
            piece = await connection.reader.read(_PIECE)
            if not piece:
                break
            size += len(piece)
            response.parser.feed_data(piece)
        if response.status < 200:
            if size > LARGEST:
                raise ValueError("the head of the response is too long")
            raise EOFError
        if response.is_whole and response.is_kept:
            connection.used_at, connection.is_new = time.monotonic(), False
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _open(self) -> _Connection:
        address = await self._resolver.resolve(self._endpoint)
        if self._endpoint.scheme == "https":
            pair = await asyncio.open_connection(
                address, self._endpoint.port, ssl=_trust(), server_hostname=self._endpoint.host
            )
        else:
            pair = await asyncio.open_connection(address, self._endpoint.port)
        return _Connection(*pair)


@functools.cache
def _trust() -> ssl.SSLContext:
    """The TLS context with the certificate authorities of this machine."""
    return ssl.create_default_context()
