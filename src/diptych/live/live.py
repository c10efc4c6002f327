"""Live changes of one service: streams, and the log.

    subscribe → history, if a cursor was given → a group → whatever is committed, until it is closed

Whoever comes with a cursor is told what it missed page by page, as fast as it takes it, and joins its group where that
stands. Nothing is kept for anyone: all that there is to a follower is a place in the feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from diptych.ask.bookmark import ForeignFeed, Place
from diptych.asking import ASKER
from diptych.db.feed import Head
from diptych.errors import Code, Fault, Refusal
from diptych.identity.viewer import Caller, Context
from diptych.live.beats import Beats
from diptych.live.group import Group, Subscription, check_kept, gap
from diptych.live.sink import Sink
from diptych.live.tail import Tail
from diptych.live.trimmer import Trimmer
from diptych.live.watchman import Watchman
from diptych.watch import Change, Following, ReadyWatch, Watcher

log = logging.getLogger("diptych")
_place = msgspec.json.Decoder(tuple[int, int])
_TOUCHED = 1_000
"""Rows whose changes are known by id; of more at a time, everyone is asked."""
_FAILURES = 20
"""How often a group may fail before its members are let go."""
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
    seconds, and how many of them."""

    heartbeat: float = 15.0
    streams: int = 20_000
    keep: float = 7 * 86_400.0
    rows: int = 1_000_000


class Live:
    """The followers of one service."""

    def __init__(self, watcher: Watcher, context: Context, settings: LiveSettings) -> None:
        self.watcher = watcher
        self.settings = settings
        self._groups: dict[object, Group] = {}
        self._behind: dict[Group, None] = {}
        """Groups that could not be told all that they should know."""
        self._members: dict[Subscription, None] = {}
        engine = watcher.engine
        self._store = engine.store
        self.tail = Tail(engine.store, engine.secret, self._advance)
        self._beats = Beats(settings.heartbeat, self._beat)
        self._watchman = Watchman(context, self._let_go)
        self._trimmer = Trimmer(engine.store, settings.keep, settings.rows)
        self._replays: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self) -> None:
        await self.tail.start()
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
        for task in tuple(self._replays):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
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
        self._check_open()
        following = self.watcher.follow(ready, inputs, caller.viewer)
        await self.tail.refresh()
        place = await self._begin(following, last)
        self._check_open()
        member = Subscription(sink, caller, place, self._leave)
        self._members[member] = None
        self.tail.follow(True)
        self._beats.add(member)
        self._watchman.add(member)
        sink.beat(self.tail.bookmarks.seal(place))  # from here on nothing is lost, whatever happens to the connection
        if not self._joined(member, following):
            self._go_alone(member, following)
        return member

    def _check_open(self) -> None:
        if self._closing:
            raise Refusal(Code.UNAVAILABLE, "The service is going away; try again.")
        if len(self._members) >= self.settings.streams:
            raise Refusal(Code.UNAVAILABLE, "Too many follow changes here; try again.")

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
            group = self._groups[following.key] = Group(following, member.place)
        if group is None or group.place.position != member.place.position:
            return False
        group.members[member] = None
        member.group = group
        self.tail.wake()
        return True

    def _go_alone(self, member: Subscription, following: Following) -> None:
        task = asyncio.create_task(self._replay(member, following))
        self._replays.add(task)
        task.add_done_callback(self._replays.discard)

    async def _replay(self, member: Subscription, following: Following) -> None:
        """Tell a follower what it missed, as fast as it reads, until it can join its group. Nothing is held for it
        while it does not read: what it had no room for is asked for again."""
        ASKER.set(member.asker)  # it may have left its group, which is told by the service itself
        at = member.place.position
        try:
            while not member.closed:
                await member.sink.room()
                if member.closed or self._joined(member, following):
                    return
                group = self._groups.get(following.key)
                upto = self.tail.place if group is None else group.place
                if upto.position < at:  # the group has yet to come so far
                    await self.tail.refresh()
                elif upto.position > at:
                    found = await following.changes(at, upto.position, _REPLAYED)
                    check_kept(at, found)
                    at = found.upto if self._told(member, found.changes) else member.place.position
                if at == upto.position:
                    member.place = upto
        except Refusal as refusal:
            self._let_go(member, refusal)
        except Exception:
            log.exception("a stream cannot be resumed")
            self._let_go(member, Refusal(Code.INTERNAL, "Something went wrong."))

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
        member.place, member.group = member.told(), None
        self._drop(member, group)
        self._go_alone(member, group.following)

    def _drop(self, member: Subscription, group: Group) -> None:
        group.drop(member)
        if not group.members and self._groups.get(group.following.key) is group:
            del self._groups[group.following.key]
            self._behind.pop(group, None)

    def _leave(self, member: Subscription) -> None:
        self._members.pop(member, None)
        if not self._members:
            self.tail.follow(False)
        self._beats.remove(member)
        self._watchman.remove(member)
        if member.group is not None:
            self._drop(member, member.group)

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

    async def _advance(self, before: Head, after: Head) -> None:
        """Tell all groups what was committed."""
        if _is_another(before, after):
            for member in tuple(self._members):
                self._let_go(member, gap())
            return
        upto = Place(after.position, after.mark)
        if after.position > before.position:
            touched = await self._touched(before, after)
            for group in tuple(self._groups.values()):
                if group.place.position == before.position and not _concerns(touched, group.following):
                    group.place = upto
        told: set[Group] = set()
        while late := [each for each in self._late(before, upto) if each not in told]:
            for group in late:
                told.add(group)
                await self._tell(group, upto)

    def _late(self, before: Head, upto: Place) -> list[Group]:
        """The groups that were not told everything up to this place; also those that came meanwhile."""
        if upto.position == before.position:
            return list(self._behind)
        return [group for group in self._groups.values() if group.place.position < upto.position]

    async def _touched(self, before: Head, after: Head) -> dict[str, set[str]] | None:
        """The ids of what was changed, by table; None if there are too many to tell."""
        if not self._groups:
            return {}
        pairs = await self._store.touched(before.position, after.position, _TOUCHED)
        if pairs is None:
            return None
        found: dict[str, set[str]] = {}
        for table, row in pairs:
            found.setdefault(table, set()).add(row)
        return found

    async def _tell(self, group: Group, upto: Place) -> None:
        """What fails is tried again from where it stands, unless it goes on failing."""
        try:
            await group.tell(upto, self.tail.bookmarks, self._apart)
        except Exception as error:
            passing = isinstance(error, Refusal) and error.code in (Code.UNAVAILABLE, Code.TIMEOUT)
            group.failures += 1
            if passing and group.failures < _FAILURES:
                self._behind[group] = None
                return
            if not isinstance(error, Refusal):
                log.exception("changes cannot be told")
                error = Refusal(Code.INTERNAL, "Something went wrong.")
            for member in tuple(group.members):
                self._let_go(member, error)
        else:
            group.failures = 0
            self._behind.pop(group, None)

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


def _concerns(touched: Mapping[str, set[str]] | None, following: Following) -> bool:
    """May a follower have to be told of one of these?"""
    if touched is None:
        return True
    rows = touched.get(following.resource.table)
    return rows is not None and (following.only is None or following.only in rows)

