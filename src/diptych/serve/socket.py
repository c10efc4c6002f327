"""GraphQL over WebSocket: one socket, with many operations at a time.

    connect → token, path → accept → connection_init → ack → subscribe … next … complete

Operations run in tasks of their own while they are understood and answered; a subscription that is open has none. The
token is proven anew for every operation, and when it does not hold any more, the socket is closed with 4403: clients
come again then, with a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from diptych.api.graphql.http import Parameters
from diptych.api.graphql.socket import (
    ACK,
    AFTER_RESULT,
    FORBIDDEN,
    INIT_SECONDS,
    INIT_TIMEOUT,
    INTERNAL,
    MAX_OPERATIONS,
    MAX_WAITING,
    RESTART,
    SILENT,
    TOO_MANY_INITS,
    TRY_AGAIN,
    UNAUTHORIZED,
    Closing,
    Complete,
    Init,
    Ping,
    Subscribe,
    already_there,
    bad_message,
    before_result,
    complete,
    error,
    errors_of,
    ping,
    pong,
    read_message,
    read_payload,
    refused,
    slow_reader,
    token_of,
)
from diptych.errors import Code, Refusal
from diptych.identity.viewer import Caller, InvalidToken
from diptych.serve.deadline import Deadlines
from diptych.serve.graphql import Outcome
from diptych.serve.handler import internal
from diptych.serve.outbox import Outbox, Streams
from diptych.serve.sse import Subscribed
from diptych.serve.wires import FrameWire, Send, frame_wire
from diptych.watch import ReadyWatch

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_IN_A_ROW = 32
_AT_ONCE = 8
"""Operations of one socket that run at the same time; the others wait, as their answers would."""


class Service(Protocol):
    """What a socket asks of the service."""

    async def caller(self, sent: bytes | None) -> Caller:
        """Who it is, or InvalidToken."""
        ...

    async def run(self, parameters: Parameters, caller: Caller) -> Outcome: ...

    async def subscribe(
        self, ready: ReadyWatch, inputs: Mapping[str, Any], caller: Caller, sink: Operation
    ) -> Subscribed: ...


class Operation:
    """One operation of a socket; the Sink of a subscription."""

    __slots__ = ("after", "before", "cursor", "name", "socket", "subscription", "task")

    def __init__(self, socket: Socket, name: str) -> None:
        self.socket = socket
        self.name = name
        self.cursor = ""
        self.before = self.after = b""
        """What goes around each change."""
        self.subscription: Subscribed | None = None
        self.task: asyncio.Task[None] | None = None

    def put(self, cursor: str, body: bytes) -> None:
        if self.socket.has(self):
            self.socket.tell((self.before, body, self.after), self, cursor)

    def beat(self, cursor: str) -> None:
        if self.socket.is_behind:
            return
        first, self.cursor = not self.cursor, cursor
        if first:  # the subscription holds from here on
            self.socket.tell((ping({self.name: cursor}),))
        else:
            self.socket.beat()

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        if not self.socket.is_behind:
            self.cursor = cursor
        if isinstance(refusal, InvalidToken):
            self.socket.close(*FORBIDDEN)
        elif refusal is not None:
            self.socket.finish(self, refused(self.name, refusal, self.cursor))

    def has_room(self) -> bool:
        return self.socket.has_room()

    async def room(self) -> None:
        await self.socket.room()

    def stop(self) -> None:
        """Nothing more of it is wanted."""
        if self.task is not None:
            self.task.cancel()
        if self.subscription is not None:
            self.subscription.close()


class Socket(Outbox):
    """One connection that was accepted."""

    __slots__ = (
        "__weakref__", "_acknowledged", "_deadlines", "_heard", "_held", "_init", "_operations", "_pinged", "_sent",
        "_service", "_tasks", "_turns",
    )  # fmt: skip

    def __init__(self, service: Service, streams: Streams, deadlines: Deadlines, sent: bytes | None) -> None:
        super().__init__(streams)
        self._service = service
        self._deadlines = deadlines
        self._sent = sent
        """The Authorization that holds for this socket."""
        self._acknowledged = False
        self._operations: dict[str, Operation] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = 0
        """Bytes of operations that are not answered yet."""
        self._turns: asyncio.Semaphore | None = None
        self._heard = self._pinged = asyncio.get_running_loop().time()
        self._init: asyncio.TimerHandle | None = None

    async def drive(self, receive: Receive, send: Send) -> None:
        """Serve it until it is closed."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self.wire = frame_wire(send, self)
        self._init = loop.call_later(INIT_SECONDS, self.close, *INIT_TIMEOUT)
        self.streams.enter(self)
        try:
            count = 0
            while not self.is_over:
                message = await receive()
                if message["type"] != "websocket.receive":
                    break
                self._heard = loop.time()
                await self._take(message)
                count += 1
                if count % _IN_A_ROW == 0:
                    await asyncio.sleep(0)  # messages that have come already keep no one else waiting
        except Closing as closing:
            self.close(closing.code, closing.reason)
        except Refusal as refusal:
            self.close(TRY_AGAIN, refusal.message[:100])
        except Exception:
            self.close(INTERNAL, internal("a message of a WebSocket").message)
        except asyncio.CancelledError:
            if not self.is_over:
                raise
            task.uncancel()  # by the wire, which has sent the close frame
        finally:
            self._release()

    async def _take(self, message: MutableMapping[str, Any]) -> None:
        """What the client says."""
        text = message.get("text")
        if text is None:
            raise bad_message("Messages are text")
        sent = text.encode()
        told = read_message(sent)
        if isinstance(told, Subscribe):
            self._subscribe(told, len(sent))
        elif isinstance(told, Complete):
            operation = self._operations.pop(told.id, None)
            if operation is not None:
                operation.stop()
        elif isinstance(told, Ping):
            self.tell((pong(told.payload),))
        elif isinstance(told, Init):
            await self._start(told)

    async def _start(self, told: Init) -> None:
        if self._init is None:
            raise Closing(*TOO_MANY_INITS)
        self._init.cancel()
        self._init = None
        given = token_of(told.payload)
        if given is not None:
            if self._sent not in (None, given):
                raise bad_message("The handshake and the payload name two tokens")
            self._sent = given
            try:
                await self._in_time(lambda: self._service.caller(given))
            except InvalidToken:
                raise Closing(*FORBIDDEN) from None
        self._acknowledged = True
        self.tell((ACK,))

    # operations

    def _subscribe(self, told: Subscribe, size: int) -> None:
        if not self._acknowledged:
            raise Closing(*UNAUTHORIZED)
        if told.id in self._operations:
            raise already_there(told.id)
        if len(self._operations) >= MAX_OPERATIONS or len(self._tasks) >= MAX_OPERATIONS:
            most = f"A socket may have {MAX_OPERATIONS} operations at a time."
            self.tell((refused(told.id, Refusal(Code.TOO_COMPLEX, most)),))
            return
        crowded = self._crowded(size)
        if crowded is not None:
            self.tell((refused(told.id, crowded),))
            return
        operation = self._operations[told.id] = Operation(self, told.id)
        task = asyncio.get_running_loop().create_task(self._run(operation, told.payload))
        operation.task = task
        self._tasks.add(task)
        self._held += size
        self.streams.held += size
        task.add_done_callback(partial(self._answered, size))

    def _crowded(self, size: int) -> Refusal | None:
        """Why an operation of this size cannot even wait."""
        if self._held + size > MAX_WAITING:
            most = f"Operations of a socket that are not answered yet may have {MAX_WAITING} bytes together."
            return Refusal(Code.TOO_COMPLEX, most)
        if self.streams.held + size > self.streams.most_held:
            return Refusal(Code.UNAVAILABLE, "Too many operations wait here; try again.")
        return None

    def _answered(self, size: int, task: asyncio.Task[None]) -> None:
        """An operation is answered, has begun to follow something, or was given up."""
        self._tasks.discard(task)
        self._held -= size
        self.streams.held -= size

    async def _run(self, operation: Operation, payload: msgspec.Raw) -> None:
        try:
            outcome, caller = await self._answer(payload)
            if outcome.watch is None:
                await self.room_for(len(outcome.body))
                self._result(operation, outcome.body)
                return
            first, last = outcome.pieces
            operation.before, operation.after = before_result(operation.name) + first, last + AFTER_RESULT
            operation.subscription = await self._service.subscribe(outcome.watch, outcome.inputs, caller, operation)
            if not self.has(operation):  # it ended meanwhile
                operation.subscription.close()
        except InvalidToken:
            self.close(*FORBIDDEN)
        except Closing as closing:
            self.close(closing.code, closing.reason)
        except Refusal as refusal:
            self.finish(operation, refused(operation.name, refusal))
        except asyncio.CancelledError:
            if self.has(operation):
                raise
        except Exception:
            self.finish(operation, refused(operation.name, internal("an operation of a WebSocket")))
        finally:
            operation.task = None

    async def _answer(self, payload: msgspec.Raw) -> tuple[Outcome, Caller]:
        """The outcome of an operation, in its time."""
        if self._turns is None:
            self._turns = asyncio.Semaphore(_AT_ONCE)
        async with self._turns:
            await self.room()
            parameters = read_payload(payload)
            return await self._in_time(lambda: self._outcome(parameters))

    async def _outcome(self, parameters: Parameters) -> tuple[Outcome, Caller]:
        caller = await self._service.caller(self._sent)
        return await self._service.run(parameters, caller), caller

    async def _in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        """What work gives, in the time of a request, unless there are too many of them."""
        if self._deadlines.is_full:
            raise Refusal(Code.UNAVAILABLE, "Too many requests are under way; try again.")
        task = self._deadlines.begin()
        try:
            return await work()
        except asyncio.CancelledError:
            if not self._deadlines.is_over(task):
                raise
            raise Refusal(Code.TIMEOUT, "The request took too long.") from None
        finally:
            self._deadlines.end(task)

    def _result(self, operation: Operation, body: bytes) -> None:
        errors = errors_of(body)
        if errors is not None:
            self.finish(operation, error(operation.name, errors))
        elif self.has(operation):
            self.tell((before_result(operation.name), body, AFTER_RESULT))
            self.finish(operation, complete(operation.name))

    def has(self, operation: Operation) -> bool:
        """Is it still under way?"""
        return self._operations.get(operation.name) is operation

    def finish(self, operation: Operation, last: bytes) -> None:
        """The last message of an operation, unless the client wants nothing more of it."""
        if self.has(operation):
            del self._operations[operation.name]
            self.tell((last,))

    # time

    def beat(self) -> None:
        """A heart-beat of a subscription: one `ping` tells the cursors of all."""
        now = asyncio.get_running_loop().time()
        if now - self._pinged >= self.streams.heartbeat / 2:
            self._pinged = now
            self.tell((ping(self._cursors()),))

    def attend(self, now: float) -> None:
        """Ask a socket that is silent whether anyone is there, and close it if no one is."""
        if now - self._heard > 2 * self.streams.heartbeat + self.streams.timeout:
            self.close(*SILENT)
        elif now - self._pinged >= self.streams.heartbeat * 1.25:
            self._pinged = now
            if not self.is_behind:
                self.tell((ping({}),))

    def leave(self) -> None:
        """The server goes away."""
        self.close(*RESTART)

    def overrun(self) -> None:
        cursors = set(self._cursors().values())
        self.close(*slow_reader(cursors.pop() if len(cursors) == 1 else ""))

    def _cursors(self) -> dict[str, str]:
        return {name: each.cursor for name, each in self._operations.items() if each.cursor}

    # the end

    def close(self, code: int, reason: str) -> None:
        """Close the socket. What was not handed over is not sent any more; a last `ping` tells where to go on."""
        if self.is_over:
            return
        cursors = self._cursors()
        self._release()
        assert isinstance(self.wire, FrameWire)
        self.wire.close(code, reason, ping(cursors) if cursors else b"")

    def _release(self) -> None:
        self.shut()
        self.streams.exit(self)
        if self._init is not None:
            self._init.cancel()
            self._init = None
        operations, self._operations = self._operations, {}
        for operation in operations.values():
            with suppress(Exception):
                operation.stop()
