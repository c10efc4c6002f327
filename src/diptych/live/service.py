"""Live changes of one service: subscriptions, and the change log.

    subscribe → replay, if a cursor was given → a group → changes as they are committed, until it is closed

A subscription with a cursor replays missed changes page by page, as fast as the client reads, and joins its group when
it has caught up. Nothing is buffered for a subscription: its state is a position in the feed.

Groups rest (`topics.py`) until a change may concern them. Then they are scheduled fairly, and so are replays
(`evaluations.py`); what changed is evaluated and sent to them (`delivery.py`). Requests for the change log do not wait
for that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from diptych.ask.change_cursor import FeedPosition, ForeignFeed
from diptych.config import Config
from diptych.db.feed import mark_at
from diptych.db.store import FeedHead
from diptych.engine.rate_limiter import SPENDER
from diptych.engine.watch import BoundWatch, Change, PreparedWatch, WatchEngine, WatchMemory
from diptych.errors import Code, Fault, Refusal
from diptych.fair.caller import CALLER
from diptych.identity.viewer import Caller, Context
from diptych.live.delivery import Delivery
from diptych.live.evaluations import Evaluations
from diptych.live.group import Group, Subscription, check_kept, gap
from diptych.live.heartbeats import Heartbeats
from diptych.live.log_page import LogPage, log_page
from diptych.live.rated_sink import RatedSink
from diptych.live.retention import Retention
from diptych.live.shares import CallerAccount, Shares
from diptych.live.sink import Sink
from diptych.live.tail import Tail, Touched, is_another
from diptych.live.token_watch import TokenWatch
from diptych.live.topics import RestingGroups, Topics

log = logging.getLogger("diptych")
_position = msgspec.json.Decoder(tuple[int, int])
_LATE = 30.0
"""The most seconds of lag with which a caller may open another stream."""
_REPLAYED = 50
"""Changes that a replay reads at a time."""


class LiveService:
    def __init__(self, watch_engine: WatchEngine, context: Context, config: Config) -> None:
        self.watch_engine = watch_engine
        self.shares = Shares(config.max_streams, config.stream_memory, config.stream_share, config.evaluation_share)
        engine = watch_engine.engine
        self._store = engine.store
        self._groups: dict[object, Group] = {}
        self._members: dict[Subscription, None] = {}
        self._evaluations = Evaluations(self.shares, max(1, engine.store.places * 3 // 4))
        self.tail = Tail(engine.store, engine.secret, self._advance)
        self._topics = Topics(self.tail.notices.digest if engine.store.numbers else None)
        self._delivery = Delivery(self.tail, self._topics, self._evaluations, self.shares, self)
        self._heartbeats = Heartbeats(config.heartbeat, self._beat)
        self._token_watch = TokenWatch(context, self.end_stream)
        self._retention = Retention.of(engine, config)
        self._tasks: set[asyncio.Task[None]] = set()
        """Tasks that replay to one subscription, or send many changes to a group."""
        self.is_closing = False
        self._listener: Callable[[Touched], None] | None = None

    @property
    def sent(self) -> int:
        """Changes that were sent to streams."""
        return self._delivery.sent

    @property
    def group_count(self) -> int:
        """Groups of equal streams."""
        return len(self._groups)

    async def start(self) -> None:
        await self.tail.start()
        self._topics.end = self.tail.end
        self._token_watch.start()
        self._retention.start()

    async def close(self) -> None:
        """Shut down: end every subscription with its cursor, and accept no new one."""
        self.is_closing = True
        for member in tuple(self._members):
            self.end_stream(member, None)

    async def stop(self) -> None:
        await self.close()
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._evaluations.stop()
        await self._retention.stop()
        self._heartbeats.stop()
        await self._token_watch.stop()
        await self.tail.stop()

    def listen(self, listener: Callable[[Touched], None] | None) -> None:
        """Set the callback that runs whenever the feed has advanced, or None."""
        self._listener = listener
        self.tail.follow(listener is not None or bool(self._members))

    # streams

    async def subscribe(
        self, prepared: PreparedWatch, inputs: Mapping[str, Any], caller: Caller, sink: Sink, last: str = ""
    ) -> Subscription:
        """Subscribe to changes: from the cursor of the request, or from now on.

        A client that reconnects sends `last`, the cursor of the last event, which takes precedence.
        """
        name = CALLER.get()
        self._check_open(self.shares.account(name))
        following = self.watch_engine.follow(prepared, inputs, caller.viewer)
        if (spending := SPENDER.get()) is not None:
            sink = RatedSink(sink, spending, following.price)
        await self.tail.refresh()
        start = await self._begin(following, last)
        account = self.shares.account(name)  # the one before may be idle, and forgotten by now
        self._check_open(account, following.held)
        member = Subscription(sink, caller, start, account, following.held, self._leave)
        self.shares.take(account, member.held)
        self._members[member] = None
        self.tail.follow(True)
        self._heartbeats.add(member)
        self._token_watch.add(member)
        sink.beat(self.tail.change_cursors.seal(start))  # nothing is lost from here on, if the connection breaks
        if not self._joined(member, following):
            self.start_task(self._replay(member, following))
        return member

    def _check_open(self, account: CallerAccount, held: WatchMemory | None = None) -> None:
        if self.is_closing:
            raise Refusal(Code.UNAVAILABLE, "The service is shutting down; try again.")
        self.shares.check(account, held)
        if account.lag(time.monotonic()) > _LATE:
            raise self.shares.out_of_time(account)

    async def _begin(self, following: BoundWatch, last: str) -> FeedPosition:
        """The start position of a stream."""
        if last:
            try:
                return await self._resumed(last)
            except ValueError as error:
                fault = Fault(("header", "Last-Event-ID"), str(error))
                raise Refusal(Code.BAD_REQUEST, "Last-Event-ID is not valid.", [fault]) from None
        return self.tail.end if following.after is None else await self._requested(following, following.after)

    def _joined(self, member: Subscription, following: BoundWatch) -> bool:
        """Join the group, if the subscription has reached the position of the group; returns whether it has."""
        group = self._groups.get(following.key)
        if group is None and member.reached.position >= self.tail.head.position:
            group = self._groups[following.key] = Group(following, member.reached, self._topics, self._delivery)
            self._topics.let_rest(group)
        if group is None or group.position.position != member.reached.position:
            return False
        group.join(member)
        self._evaluations.move(group)
        return True

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replay(self, member: Subscription, following: BoundWatch) -> None:
        """Send missed changes as fast as the client reads, until the subscription can join its group.

        Nothing is buffered while the client does not read: changes without room are read again.
        """
        at = member.reached.position
        try:
            while not member.closed:
                await member.sink.room()
                if member.closed or self._joined(member, following):
                    return
                group = self._groups.get(following.key)
                upto = self.tail.end if group is None else group.position
                if group is not None and upto.position < at:
                    await self._wait_for(group, member)
                elif upto.position > at:
                    batch = await self._evaluations.run_once(
                        member.account, partial(following.changes, at, upto.position, _REPLAYED)
                    )
                    check_kept(at, batch)
                    at = batch.upto if self._send(member, batch.changes) else member.reached.position
                if at == upto.position:
                    member.reached = upto
                elif at > member.reached.position:
                    await self._note_reached(member, at)
        except Refusal as refusal:
            self.end_stream(member, refusal)
        except Exception:
            log.exception("a stream cannot be resumed")
            self.end_stream(member, Refusal(Code.INTERNAL, "Something went wrong."))

    async def _note_reached(self, member: Subscription, position: int) -> None:
        """Note how far a replay has come without a change to send, so that its client need not begin there again."""
        mark = await mark_at(self._store, position)
        if mark is not None:
            member.reached = FeedPosition(position, mark)

    async def _wait_for(self, group: Group, member: Subscription) -> None:
        """Wait until a group has advanced. It may be charged to this subscription's caller, if its members have no
        budget."""
        group.want(member.account)
        self._evaluations.move(group)
        waiting = asyncio.get_running_loop().create_future()
        group.waiting.append(waiting)
        try:
            await waiting
        finally:
            group.unwant(member.account)

    def _send(self, member: Subscription, changes: Iterable[Change]) -> bool:
        """Send changes while there is room; returns whether all were sent."""
        for change in changes:
            if member.closed or not member.sink.has_room():
                return False
            cursor = self.tail.change_cursors.seal(change.feed_position)
            member.reached = change.feed_position
            member.sink.put(cursor, change.body(cursor))
            self._delivery.sent += 1
        return True

    def detach(self, member: Subscription) -> None:
        """Detach a slow reader from its group; it replays on its own from here."""
        group = member.group
        assert group is not None
        member.reached = member.sent_up_to()
        self._drop(member, group)
        self.start_task(self._replay(member, group.following))

    def _drop(self, member: Subscription, group: Group) -> None:
        group.drop(member)
        if not group.members:
            del self._groups[group.following.key]
            self._topics.remove(group)
            self._evaluations.drop(group)
            group.let_in()

    def _leave(self, member: Subscription) -> None:
        self._members.pop(member, None)
        if not self._members:
            self.tail.follow(self._listener is not None)
        self._heartbeats.remove(member)
        self._token_watch.remove(member)
        if member.group is not None:
            self._drop(member, member.group)
        self.shares.give(member.account, member.held)

    def end_stream(self, member: Subscription, refusal: Refusal | None) -> None:
        """End a subscription, with its cursor."""
        if not member.closed:
            cursor = self.tail.change_cursors.seal(member.sent_up_to())
            member.close()
            member.sink.end(refusal, cursor)

    def _beat(self, members: list[Subscription]) -> None:
        cursors: dict[FeedPosition, str] = {}
        for member in members:
            position = member.sent_up_to()
            cursor = cursors.get(position)
            if cursor is None:
                cursor = cursors[position] = self.tail.change_cursors.seal(position)
            member.sink.beat(cursor)

    # changes

    def _advance(self, before: FeedHead, after: FeedHead, touched: Touched) -> None:
        """Schedule all groups that the new changes may concern."""
        upto = FeedPosition(after.position, after.mark)
        if is_another(before, after):
            for member in tuple(self._members):
                self.end_stream(member, gap())
            self._topics.end = upto
        elif upto.position > before.position:
            for rest in self._topics.advance(touched, upto):
                self._evaluations.put_all(self._woken(rest))
        if self._listener is not None:
            self._listener(touched)

    def _woken(self, rest: RestingGroups) -> Iterator[Group]:
        while rest.groups:
            group, _ = rest.groups.popitem()
            assert isinstance(group, Group)
            self._topics.wake(group)
            yield group

    # the log

    def cursor(self, position: bytes | None) -> str:
        """The change cursor for the feed position that a read returned: `[position, mark]`."""
        return self.tail.change_cursors.seal(FeedPosition(*_position.decode(position or b"[0,0]")))

    async def log(self, prepared: PreparedWatch, inputs: Mapping[str, Any], caller: Caller, size: int) -> LogPage:
        """A page of the change log: from the cursor of the request, or from the oldest retained change."""
        following = self.watch_engine.follow(prepared, inputs, caller.viewer, size)
        await self.tail.refresh()
        end, change_cursors = self.tail.end, self.tail.change_cursors
        oldest = max(self.tail.head.oldest - 1, 0)
        position = (
            FeedPosition(oldest, 0) if following.after is None else await self._requested(following, following.after)
        )
        sent: list[Change] = []
        bodies: list[bytes] = []
        cursor = ""
        while position.position < end.position:
            batch = await following.changes(position.position, end.position, size + 1 - len(sent))
            if following.after is not None or sent:
                check_kept(position.position, batch)
            for change in batch.changes:
                if len(sent) == size:
                    return log_page(bodies, sent, cursor, cursor)
                cursor = change_cursors.seal(change.feed_position)
                sent.append(change)
                bodies.append(change.body(cursor))
            position = FeedPosition(batch.upto, 0)
        return log_page(bodies, sent, None, change_cursors.seal(max(position, end)))

    async def _requested(self, following: BoundWatch, cursor: str) -> FeedPosition:
        """The position of the cursor in a request."""
        slot = following.prepared.ask.after
        assert slot is not None
        try:
            return await self._resumed(cursor)
        except ValueError as error:
            raise following.prepared.binder.fault(slot.index, str(error)) from None

    async def _resumed(self, cursor: str) -> FeedPosition:
        """The position of a cursor, if all later changes are retained; raises ValueError for an invalid cursor."""
        try:
            position = self.tail.change_cursors.open(cursor)
        except ForeignFeed:
            raise gap() from None
        if position.position > self.tail.head.position:
            raise gap()
        if position.position == 0:
            if self.tail.head.oldest > 1:
                raise gap()
        elif await mark_at(self._store, position.position) != position.mark:
            raise gap()
        return position
