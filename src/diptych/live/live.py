"""Live changes of one service: streams, and the log.

    subscribe → history, if a cursor was given → a group → whatever is committed, until it is closed

Whoever comes with a cursor is told what it missed page by page, as fast as it takes it, and joins its group where that
stands. Nothing is kept for anyone: all that there is to a follower is a place in the feed.

Groups rest (`topics.py`) until something changes that may concern them. Then each waits for its turn, and so does one
who is told what it missed (`evaluations.py`). Nobody else waits for that: the log asks for itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from diptych.ask.bookmark import ForeignFeed, Place
from diptych.asking import ASKER
from diptych.db.feed import Head
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller, Context
from diptych.live.beats import Beats
from diptych.live.evaluations import Evaluations
from diptych.live.group import PAGE, Group, Subscription, check_kept, gap
from diptych.live.shares import Account, Held, Shares
from diptych.live.sink import Sink
from diptych.live.tail import Tail, Touched
from diptych.live.topics import Rest, Topics
from diptych.live.trimmer import Trimmer
from diptych.live.watchman import Watchman
from diptych.watch import Change, Following, ReadyWatch, Watcher

log = logging.getLogger("diptych")
_place = msgspec.json.Decoder(tuple[int, int])
_FAILURES = 20
"""How often a group may fail before its members are let go."""
_AGAIN = 0.25
"""Seconds until the next try."""
_LATE = 30.0
"""Seconds by which the streams of a caller may be late, when it wants another one."""
_REPLAYED = 50
"""Changes that are read at a time for one follower alone."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the log: changes with their cursors, the cursor that leads on if there is more, and the one up to which
    this is all. `told` are the same changes without cursors."""

    changes: tuple[bytes, ...]
    next: str | None
    last: str
    told: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How streams are kept: seconds between heart-beats, and how many there may be; how long changes are kept, in
    seconds, and how many of them. Of streams, and of bytes that their values may take, the part that one caller may
    have of what is free, and of all time, the part in which what it follows may be evaluated."""

    heartbeat: float = 15.0
    streams: int = 20_000
    keep: float = 7 * 86_400.0
    rows: int = 1_000_000
    share: float = 0.25
    memory: int = 64 << 20
    time_share: float = 0.2


class Live:
    """The followers of one service."""

    def __init__(self, watcher: Watcher, context: Context, settings: LiveSettings) -> None:
        self.watcher = watcher
        self.shares = Shares(settings.streams, settings.memory, settings.share, settings.time_share)
        engine = watcher.engine
        self._store = engine.store
        self._groups: dict[object, Group] = {}
        self._members: dict[Subscription, None] = {}
        self._topics = Topics()
        self._evaluations = Evaluations(self.shares, max(1, engine.store.places * 3 // 4))
        self.tail = Tail(engine.store, engine.secret, self._advance)
        self._beats = Beats(settings.heartbeat, self._beat)
        self._watchman = Watchman(context, self._let_go)
        self._trimmer = Trimmer(engine.store, settings.keep, settings.rows)
        self._tasks: set[asyncio.Task[None]] = set()
        """Those that tell one follower what it missed, or a group what takes a while."""
        self._closing = False

    async def start(self) -> None:
        await self.tail.start()
        self._topics.end = self.tail.place
        self._watchman.start()
        self._beats.start()
        self._trimmer.start()

    async def close(self) -> None:
        """The server goes away: every follower gets its cursor, and nobody is let in any more."""
        self._closing = True
        for member in tuple(self._members):
            self._let_go(member, None)

    async def stop(self) -> None:
        await self.close()
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._evaluations.stop()
        await self._trimmer.stop()
        await self._beats.stop()
        await self._watchman.stop()
        await self.tail.stop()

    # streams

    async def subscribe(
        self, ready: ReadyWatch, inputs: Mapping[str, Any], caller: Caller, sink: Sink, last: str = ""
    ) -> Subscription:
        """Follow changes: from the cursor that was given, or from now on. One that comes back by itself sends the last
        cursor that it got, to the same address as before: so that holds."""
        account = self.shares.account(ASKER.get())
        self._check_open(account)
        following = self.watcher.follow(ready, inputs, caller.viewer)
        await self.tail.refresh()
        place = await self._begin(following, last)
        self._check_open(account, following.held)
        member = Subscription(sink, caller, place, account, following.held, self._leave)
        self.shares.take(account, member.held)
        self._members[member] = None
        self.tail.follow(True)
        self._beats.add(member)
        self._watchman.add(member)
        sink.beat(self.tail.bookmarks.seal(place))  # from here on nothing is lost, whatever happens to the connection
        if not self._joined(member, following):
            self._start(self._replay(member, following))
        return member

    def _check_open(self, account: Account, held: Held | None = None) -> None:
        if self._closing:
            raise Refusal(Code.UNAVAILABLE, "The service is going away; try again.")
        self.shares.check(account, held)
        if account.lag(time.monotonic()) > _LATE:
            raise self.shares.out_of_time(account)

    async def _begin(self, following: Following, last: str) -> Place:
        """Where a stream begins."""
        if last:
            try:
                return await self._resumed(last)
            except ValueError as error:
                fault = Fault(("header", "Last-Event-ID"), str(error))
                raise Refusal(Code.BAD_REQUEST, "Last-Event-ID is not valid.", [fault]) from None
        return self.tail.place if following.after is None else await self._given(following, following.after)

    def _joined(self, member: Subscription, following: Following) -> bool:
        """Is the follower told all that its group was told, and so a member of it?"""
        group = self._groups.get(following.key)
        if group is None and member.place.position >= self.tail.head.position:
            group = self._groups[following.key] = Group(following, member.place, self._topics, self)
            self._topics.let_rest(group)
        if group is None or group.place.position != member.place.position:
            return False
        group.join(member)
        self._evaluations.move(group)
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replay(self, member: Subscription, following: Following) -> None:
        """Tell a follower what it missed, as fast as it reads, until it can join its group. Nothing is held for it
        while it does not read: what it had no room for is asked for again."""
        at = member.place.position
        try:
            while not member.closed:
                await member.sink.room()
                if member.closed or self._joined(member, following):
                    return
                group = self._groups.get(following.key)
                upto = self.tail.place if group is None else group.place
                if group is not None and upto.position < at:
                    await self._wait_for(group, member)
                elif upto.position > at:
                    found = await self._evaluations.turn(
                        member.account, partial(following.changes, at, upto.position, _REPLAYED)
                    )
                    check_kept(at, found)
                    at = found.upto if self._told(member, found.changes) else member.place.position
                if at == upto.position:
                    member.place = upto
        except Refusal as refusal:
            self._let_go(member, refusal)
        except Exception:
            log.exception("a stream cannot be resumed")
            self._let_go(member, Refusal(Code.INTERNAL, "Something went wrong."))

    async def _wait_for(self, group: Group, member: Subscription) -> None:
        """Wait until a group was told more. It is evaluated in this follower's time, if its members have none."""
        group.want(member.account)
        self._evaluations.move(group)
        waiting = asyncio.get_running_loop().create_future()
        group.waiting.append(waiting)
        try:
            await waiting
        finally:
            group.unwant(member.account)

    def _told(self, member: Subscription, changes: Iterable[Change]) -> bool:
        """Tell a follower of changes, as long as it has room. Did it have room for all?"""
        for change in changes:
            if member.closed or not member.sink.has_room():
                return False
            cursor = self.tail.bookmarks.seal(change.place)
            member.place = change.place
            member.sink.put(cursor, change.body(cursor))
        return True

    def _apart(self, member: Subscription) -> None:
        """One that reads too slowly for its group goes on by itself, from where that is."""
        group = member.group
        assert group is not None
        member.place = member.told()
        self._drop(member, group)
        self._start(self._replay(member, group.following))

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
            self.tail.follow(False)
        self._beats.remove(member)
        self._watchman.remove(member)
        if member.group is not None:
            self._drop(member, member.group)
        self.shares.give(member.account, member.held)

    def _let_go(self, member: Subscription, refusal: Refusal | None) -> None:
        """End a follower's stream, with its cursor."""
        if not member.closed:
            cursor = self.tail.bookmarks.seal(member.told())
            member.close()
            member.sink.end(refusal, cursor)

    def _beat(self, members: list[Subscription]) -> None:
        cursors: dict[Place, str] = {}
        for member in members:
            if member.group is not None:
                place = member.told()
                cursor = cursors.get(place)
                if cursor is None:
                    cursor = cursors[place] = self.tail.bookmarks.seal(place)
                member.sink.beat(cursor)

    # changes

    def _advance(self, before: Head, after: Head, touched: Touched) -> None:
        """The feed ends elsewhere: have all groups evaluated that this may concern."""
        upto = Place(after.position, after.mark)
        if _is_another(before, after):
            for member in tuple(self._members):
                self._let_go(member, gap())
            self._topics.end = upto
        elif upto.position > before.position:
            for rest in self._topics.advance(touched, upto):
                self._evaluations.put_all(self._woken(rest))

    def _woken(self, rest: Rest) -> Iterator[Group]:
        while rest.groups:
            group, _ = rest.groups.popitem()
            assert isinstance(group, Group)
            self._topics.wake(group)
            yield group

    async def evaluate(self, group: Group) -> None:
        """Find what changed for a group, and tell it."""
        at, upto = group.at, self.tail.place
        try:
            found = await group.following.changes(at, upto.position, PAGE)
            check_kept(at, found)
        except Exception as error:
            self._fail(group, error)
            return
        group.failures = 0
        left = group.tell_at_once(found.changes, self.tail.bookmarks)
        if left:
            self._start(self._tell(group, left, found.upto, upto))
        else:
            self._go_on(group, found.upto, upto)

    async def _tell(self, group: Group, changes: Sequence[Change], at: int, upto: Place) -> None:
        """Tell a group what takes a while; nobody else waits for that."""
        await group.tell(changes, self.tail.bookmarks, self._apart)
        self._go_on(group, at, upto)

    def _go_on(self, group: Group, at: int, upto: Place) -> None:
        """A group was told up to a position: it rests, or there is more."""
        if not group.members:
            return
        group.at = at
        if at == upto.position:
            group.stands = upto
        if not self._topics.let_rest(group):
            self._evaluations.put(group)
        group.let_in()

    def _fail(self, group: Group, error: Exception) -> None:
        """What fails is tried again from where it stands, unless it goes on failing."""
        passing = isinstance(error, Refusal) and error.code in (Code.UNAVAILABLE, Code.TIMEOUT)
        group.failures += 1
        if passing and group.failures < _FAILURES:
            asyncio.get_running_loop().call_later(_AGAIN, self._again, group)
            return
        if not isinstance(error, Refusal):
            log.error("changes cannot be told", exc_info=error)
            error = Refusal(Code.INTERNAL, "Something went wrong.")
        for member in tuple(group.members):
            self._let_go(member, error)

    def _again(self, group: Group) -> None:
        if group.members and not self._closing:
            self._evaluations.put(group)

    def give_up(self, group: Group) -> None:
        """None of those who follow has time left to evaluate what changed."""
        for member in tuple(group.members):
            self._let_go(member, self.shares.out_of_time(member.account))

    # the log

    def cursor(self, place: bytes | None) -> str:
        """The cursor of the end of the feed, as a read has told it: `[position, mark]`."""
        return self.tail.bookmarks.seal(Place(*_place.decode(place or b"[0,0]")))

    async def log(self, ready: ReadyWatch, inputs: Mapping[str, Any], caller: Caller, size: int) -> Page:
        """A page of changes: from the cursor that was given, or from the oldest that is kept."""
        following = self.watcher.follow(ready, inputs, caller.viewer, size)
        await self.tail.refresh()
        end, bookmarks = self.tail.place, self.tail.bookmarks
        oldest = max(self.tail.head.oldest - 1, 0)
        place = Place(oldest, 0) if following.after is None else await self._given(following, following.after)
        told: list[Change] = []
        bodies: list[bytes] = []
        cursor = ""
        while place.position < end.position:
            found = await following.changes(place.position, end.position, size + 1 - len(told))
            if following.after is not None or told:
                check_kept(place.position, found)
            for change in found.changes:
                if len(told) == size:
                    return _page(bodies, told, cursor, cursor)
                cursor = bookmarks.seal(change.place)
                told.append(change)
                bodies.append(change.body(cursor))
            place = Place(found.upto, 0)
        return _page(bodies, told, None, bookmarks.seal(max(place, end)))

    async def _given(self, following: Following, cursor: str) -> Place:
        """The place of the cursor that stands in a request."""
        slot = following.ready.ask.after
        assert slot is not None
        try:
            return await self._resumed(cursor)
        except ValueError as error:
            raise following.ready.binder.fault(slot.index, str(error)) from None

    async def _resumed(self, cursor: str) -> Place:
        """The place of a cursor, if all that came after it is kept; ValueError if it is none."""
        try:
            place = self.tail.bookmarks.open(cursor)
        except ForeignFeed:
            raise gap() from None
        if place.position > self.tail.head.position:
            raise gap()
        if place.position == 0:
            if self.tail.head.oldest > 1:
                raise gap()
        elif await self._store.mark_at(place.position) != place.mark:
            raise gap()
        return place


def _is_another(before: Head, after: Head) -> bool:
    """Has another database, or an older copy, taken the place of the one that was followed?"""
    same = after.position != before.position or after.mark == before.mark
    return after.feed != before.feed or after.position < before.position or not same


def _page(bodies: Sequence[bytes], told: Sequence[Change], following: str | None, last: str) -> Page:
    return Page(tuple(bodies), following, last, tuple(change.body("") for change in told))
