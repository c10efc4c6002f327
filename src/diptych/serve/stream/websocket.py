"""GraphQL over WebSocket (graphql-transport-ws): one socket with many concurrent operations.

    connect → token, path → accept → connection_init → ack → subscribe … next … complete

An operation has a task while it is executed; one that waits has none, nor has an open subscription. The token is
verified for each operation. When it is not valid any more, the socket is closed with 4403, and clients connect anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from diptych.api.graphql import socket as messages
from diptych.api.graphql.http import Parameters
from diptych.errors import Code, Refusal
from diptych.fair.admission import BUSY
from diptych.fair.caller import CALLER
from diptych.identity.viewer import Caller, InvalidToken
from diptych.live.group import Subscription
from diptych.serve.asgi import Receive, Send
from diptych.serve.endpoint.graphql import Outcome
from diptych.serve.handler import Handler
from diptych.serve.http.deadlines import Deadlines
from diptych.serve.http.request import Request
from diptych.serve.http.websocket_protocol import SocketProtocol
from diptych.serve.refusals import internal
from diptych.serve.stream.send_queue import SendQueue, StreamLimits
from diptych.serve.stream.transports import AsgiFrames, DirectFrames, FrameTransport

T = TypeVar("T")
_BATCH = 32
"""Messages that are handled before the event loop may run something else."""
_AT_ONCE = 8
"""Operations of one socket that run concurrently; further ones wait, without a task."""


class Service:
    """The service behind a socket: its handler, on behalf of one peer."""

    __slots__ = ("_caller", "_peer", "handler", "request")

    def __init__(self, handler: Handler, peer: str, request: Request) -> None:
        self.handler = handler
        self.request = request
        self._peer = self._caller = peer

    async def admit(self, work: Coroutine[Any, Any, None], lag: float) -> None:
        if lag > BUSY:
            await self.handler.admission.run(self._caller, work)
        else:
            await work

    async def caller(self, sent: bytes | None) -> Caller:
        context = self.handler.context
        CALLER.set(self._peer)
        caller = context.caller(sent) or await context.find(sent or b"")
        self._caller = caller.fairness_key or self._peer
        CALLER.set(self._caller)
        return caller


class SocketOperation:
    """One operation of a socket; for a subscription, it is the Sink."""

    __slots__ = ("after", "before", "cursor", "name", "socket", "subscription", "task")

    def __init__(self, socket: Socket, name: str) -> None:
        self.socket = socket
        self.name = name
        self.cursor = ""
        self.before = self.after = b""
        """The bytes of a message around the JSON of a change."""
        self.subscription: Subscription | None = None
        self.task: asyncio.Task[None] | None = None

    def put(self, cursor: str, body: bytes) -> None:
        if self.socket.has(self):
            self.socket.send((self.before, body, self.after), self, cursor)

    def beat(self, cursor: str) -> None:
        if self.socket.is_behind:
            return
        first, self.cursor = not self.cursor, cursor
        if first:  # confirms the subscription, with its first cursor
            self.socket.send((messages.ping({self.name: cursor}),))
        else:
            self.socket.beat()

    def end(self, refusal: Refusal | None, cursor: str) -> None:
        if not self.socket.is_behind:
            self.cursor = cursor
        if isinstance(refusal, InvalidToken):
            self.socket.close(*messages.FORBIDDEN)
        elif refusal is not None:
            self.socket.finish(self, messages.error_message(self.name, refusal, self.cursor))

    def has_room(self) -> bool:
        return self.socket.has_room()

    async def room(self) -> None:
        await self.socket.room()

    def stop(self) -> None:
        """Cancel the operation, and let go of what refers to it: no reference cycle is left behind."""
        task, self.task = self.task, None
        subscription, self.subscription = self.subscription, None
        if task is not None:
            task.cancel()
        if subscription is not None:
            subscription.close()


class Socket(SendQueue):
    """One accepted WebSocket."""

    __slots__ = (
        "__weakref__",
        "_acknowledged",
        "_deadlines",
        "_heard",
        "_held",
        "_init",
        "_operations",
        "_pending",
        "_pinged",
        "_sent",
        "_service",
        "_tasks",
    )

    def __init__(self, service: Service, streams: StreamLimits, deadlines: Deadlines, sent: bytes | None) -> None:
        super().__init__(streams)
        self._service = service
        self._deadlines = deadlines
        self._sent = sent
        """The Authorization of this socket, by its handshake or connection_init."""
        self._acknowledged = False
        self._operations: dict[str, SocketOperation] = {}
        self._pending: deque[tuple[SocketOperation, msgspec.Raw, int]] = deque()
        """Operations that wait for others of this socket, with their size."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = 0
        """Bytes of pending and running operations."""
        self._heard = self._pinged = asyncio.get_running_loop().time()
        self._init: asyncio.TimerHandle | None = None

    async def drive(self, receive: Receive, send: Send) -> None:
        """Serve the socket until it is closed."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        owner = getattr(send, "__self__", None)
        self.transport = DirectFrames(owner, self) if type(owner) is SocketProtocol else AsgiFrames(send, self)
        self._init = loop.call_later(messages.INIT_SECONDS, self.close, *messages.INIT_TIMEOUT)
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
                if count % _BATCH == 0:
                    await asyncio.sleep(0)  # do not block the event loop with buffered messages
        except messages.Closing as closing:
            self.close(closing.code, closing.reason)
        except Refusal as refusal:
            self.close(messages.TRY_AGAIN, refusal.message[:100])
        except Exception:
            self.close(messages.INTERNAL, internal("a message of a WebSocket").message)
        except asyncio.CancelledError:
            if not self.is_over:
                raise
            task.uncancel()  # cancelled by the transport, after the close frame was sent
        finally:
            self._release()

    async def _take(self, event: MutableMapping[str, Any]) -> None:
        """Handle one message of the client."""
        text = event.get("text")
        if text is None:
            raise messages.bad_message("Messages must be text")
        sent = text.encode()
        message = messages.read_message(sent)
        if isinstance(message, messages.Subscribe):
            self._subscribe(message, len(sent))
        elif isinstance(message, messages.Complete):
            operation = self._operations.pop(message.id, None)
            if operation is not None:
                operation.stop()
        elif isinstance(message, messages.Ping):
            self.send((messages.pong(message.payload),))
        elif isinstance(message, messages.Init):
            await self._start(message)

    async def _start(self, init: messages.Init) -> None:
        if self._init is None:
            raise messages.Closing(*messages.TOO_MANY_INITS)
        self._init.cancel()
        self._init = None
        token = messages.token_of(init.payload)
        if token is not None:
            if self._sent not in (None, token):
                raise messages.bad_message("The handshake and the payload contain different tokens")
            self._sent = token
            try:
                await self._in_time(lambda: self._service.caller(token))
            except InvalidToken:
                raise messages.Closing(*messages.FORBIDDEN) from None
        self._acknowledged = True
        self.send((messages.ACK,))

    # operations

    def _subscribe(self, message: messages.Subscribe, size: int) -> None:
        if not self._acknowledged:
            raise messages.Closing(*messages.UNAUTHORIZED)
        if message.id in self._operations:
            raise messages.already_there(message.id)
        waiting = len(self._pending) + len(self._tasks)
        if max(len(self._operations), waiting) >= messages.MAX_SOCKET_OPERATIONS:
            most = f"A socket may have {messages.MAX_SOCKET_OPERATIONS} concurrent operations."
            self.send((messages.error_message(message.id, Refusal(Code.TOO_COMPLEX, most)),))
            return
        crowded = self._crowded(size)
        if crowded is not None:
            self.send((messages.error_message(message.id, crowded),))
            return
        operation = self._operations[message.id] = SocketOperation(self, message.id)
        self._hold(size)
        self._pending.append((operation, message.payload, size))
        self._run_next()

    def _run_next(self) -> None:
        """Run pending operations, unless enough are running."""
        while self._pending and len(self._tasks) < _AT_ONCE:
            operation, payload, size = self._pending.popleft()
            if not self.has(operation):  # it was cancelled meanwhile
                self._hold(-size)
                continue
            task = asyncio.get_running_loop().create_task(self._run(operation, payload, time.monotonic()))
            operation.task = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._answered, size))

    def _hold(self, size: int) -> None:
        self._held += size
        self.streams.held += size

    def _crowded(self, size: int) -> Refusal | None:
        """The refusal for an operation of this size, if too many bytes of operations are pending."""
        if self._held + size > messages.MAX_WAITING:
            most = f"The pending operations of a socket may have {messages.MAX_WAITING} bytes together."
            return Refusal(Code.TOO_COMPLEX, most)
        if self.streams.held + size > self.streams.most_held:
            return Refusal(Code.UNAVAILABLE, "Too many operations are pending; try again.")
        return None

    def _answered(self, size: int, task: asyncio.Task[None]) -> None:
        """Uncount an operation that was answered, has become an open subscription, or was cancelled."""
        self._tasks.discard(task)
        self._hold(-size)
        self._run_next()

    async def _run(self, operation: SocketOperation, payload: msgspec.Raw, received: float) -> None:
        try:
            await self._service.admit(self._perform(operation, payload), time.monotonic() - received)
        except InvalidToken:
            self.close(*messages.FORBIDDEN)
        except messages.Closing as closing:
            self.close(closing.code, closing.reason)
        except Refusal as refusal:
            self.finish(operation, messages.error_message(operation.name, refusal))
        except asyncio.CancelledError:
            if self.has(operation):
                raise
        except Exception:
            self.finish(operation, messages.error_message(operation.name, internal("an operation of a WebSocket")))
        finally:
            operation.task = None

    async def _perform(self, operation: SocketOperation, payload: msgspec.Raw) -> None:
        outcome, caller = await self._answer(payload)
        if outcome.watch is None:
            await self.room_for(len(outcome.body))
            self._result(operation, outcome.body)
            return
        first, last = outcome.pieces
        operation.before, operation.after = messages.before_result(operation.name) + first, last + messages.AFTER_RESULT
        live = self._service.handler.live
        subscription = await live.subscribe(outcome.watch, outcome.inputs, caller, operation)
        if self.has(operation):
            operation.subscription = subscription
        else:  # it was cancelled meanwhile
            subscription.close()

    async def _answer(self, payload: msgspec.Raw) -> tuple[Outcome, Caller]:
        """Execute an operation, with the request timeout."""
        await self.room()
        parameters = messages.read_payload(payload)
        return await self._in_time(lambda: self._outcome(parameters))

    async def _outcome(self, parameters: Parameters) -> tuple[Outcome, Caller]:
        caller = await self._service.caller(self._sent)
        await self._service.handler.spend(self._service.request, caller)
        return await self._service.handler.run_operation(parameters, caller), caller

    async def _in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` with the request timeout, unless too many requests are running."""
        if self._deadlines.is_full:
            raise Refusal(Code.UNAVAILABLE, "Too many requests are running; try again.")
        task = self._deadlines.enter()
        try:
            return await work()
        except asyncio.CancelledError:
            if not self._deadlines.is_over(task):
                raise
            raise Refusal(Code.TIMEOUT, "The request took too long.") from None
        finally:
            self._deadlines.leave(task)

    def _result(self, operation: SocketOperation, body: bytes) -> None:
        errors = messages.errors_of(body)
        if errors is not None:
            self.finish(operation, messages.error(operation.name, errors))
        elif self.has(operation):
            self.send((messages.before_result(operation.name), body, messages.AFTER_RESULT))
            self.finish(operation, messages.complete_message(operation.name))

    def has(self, operation: SocketOperation) -> bool:
        """Is this operation still running or subscribed?"""
        return self._operations.get(operation.name) is operation

    def finish(self, operation: SocketOperation, last: bytes) -> None:
        """Send the last message of an operation, unless the client has cancelled it."""
        if self.has(operation):
            del self._operations[operation.name]
            operation.subscription = None
            self.send((last,))

    # timers

    def beat(self) -> None:
        """Send the heartbeat of all subscriptions: one `ping` with their cursors."""
        now = asyncio.get_running_loop().time()
        if now - self._pinged >= self.streams.heartbeat / 2:
            self._pinged = now
            self.send((messages.ping(self._cursors()),))

    def keep_alive(self, now: float) -> None:
        """Ping an idle socket, and close it if the client does not respond."""
        if now - self._heard > 2 * self.streams.heartbeat + self.streams.timeout:
            self.close(*messages.SILENT)
        elif now - self._pinged >= self.streams.heartbeat * 1.25:
            self._pinged = now
            if not self.is_behind:
                self.send((messages.ping({}),))

    def restart(self) -> None:
        """Close the socket: the server is shutting down."""
        self.close(*messages.RESTART)

    def overrun(self) -> None:
        cursors = set(self._cursors().values())
        self.close(*messages.slow_reader(cursors.pop() if len(cursors) == 1 else ""))

    def _cursors(self) -> dict[str, str]:
        return {name: operation.cursor for name, operation in self._operations.items() if operation.cursor}

    # closing

    def close(self, code: int, reason: str) -> None:
        """Close the socket and drop queued messages; a last `ping` has the cursors from which to resume."""
        if self.is_over:
            return
        cursors = self._cursors()
        self._release()
        assert isinstance(self.transport, FrameTransport)
        self.transport.close(code, reason, messages.ping(cursors) if cursors else b"")

    def _release(self) -> None:
        self.discard()
        self.streams.exit(self)
        if self._init is not None:
            self._init.cancel()
            self._init = None
        operations, self._operations = self._operations, {}
        for operation in operations.values():
            with suppress(Exception):
                operation.stop()
        self._run_next()  # drops what is pending
