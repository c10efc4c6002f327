"""An index of idle groups by table and row: which of them a change concerns.

A group that is up to date rests under its topic: a table, or one row of it. Its position is the end of the feed, so it
costs nothing when the feed advances. A change takes all resting groups of its table and of its row in one step; their
position is then the end of the feed before that change, until they have been evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Protocol

from diptych.ask.change_cursor import FeedPosition


class Resting(Protocol):
    """What the index needs of a group."""

    topic: Topic
    rest: RestingGroups | None
    at: int
    """The position up to which it was evaluated, if it does not rest."""
    last_sent: FeedPosition
    """The position of the last change sent, then."""


class RestingGroups:
    """Groups at the same position: the end of the feed, or a former end."""

    __slots__ = ("at", "groups")

    def __init__(self) -> None:
        self.at: FeedPosition | None = None
        """The end of the feed before the change that concerns them; None while they rest."""
        self.groups: dict[Resting, None] = {}


class Topic:
    """A table, or one row of it, and the groups that follow it."""

    __slots__ = ("count", "digest", "only", "rest", "table", "touched")

    def __init__(self, table: str, only: str | None, digest: bytes | None) -> None:
        self.table = table
        self.only = only
        self.digest = digest
        """That of the row, under which notices of other nodes name it."""
        self.rest = RestingGroups()
        self.touched = 0
        """The position of the last change that may concern it."""
        self.count = 0

    def touch(self, before: FeedPosition, upto: FeedPosition) -> RestingGroups:
        """Note a change: take out all groups that rested here."""
        self.touched = upto.position
        rest, self.rest = self.rest, RestingGroups()
        rest.at = before
        return rest


class Topics:
    """All topics of the groups of a service, and where the feed ends."""

    def __init__(self, digest: Callable[[str, str], bytes] | None = None) -> None:
        self.end = FeedPosition(0, 0)
        self._digest = digest
        """The digest of a row by its table and id, where changes come with digests."""
        self._tables: dict[str, dict[str | bytes | None, Topic]] = {}

    def add(self, table: str, only: str | None) -> Topic:
        """Add a group to its topic."""
        topics = self._tables.setdefault(table, {})
        topic = topics.get(only)
        if topic is None:
            digest = None if only is None or self._digest is None else self._digest(table, only)
            topic = topics[only] = Topic(table, only, digest)
            if digest is not None:
                topics[digest] = topic
        topic.count += 1
        return topic

    def remove(self, group: Resting) -> None:
        """Remove a group."""
        if group.rest is not None:
            group.rest.groups.pop(group, None)
        topic = group.topic
        topic.count -= 1
        if not topic.count:
            topics = self._tables[topic.table]
            del topics[topic.only]
            if topic.digest is not None:
                topics.pop(topic.digest, None)
            if not topics:
                del self._tables[topic.table]

    def position_of(self, group: Resting) -> FeedPosition:
        rest = group.rest
        return group.last_sent if rest is None else rest.at or self.end

    def let_rest(self, group: Resting) -> bool:
        """Let a group rest, if it has seen all changes that may concern it; returns whether it has."""
        topic = group.topic
        if topic.touched > group.at:
            return False
        group.rest = topic.rest
        topic.rest.groups[group] = None
        return True

    def wake(self, group: Resting) -> None:
        """Take a group out of its rest, at the position it had there."""
        if group.rest is not None:
            group.last_sent = self.position_of(group)
            group.at = group.last_sent.position
            group.rest.groups.pop(group, None)
            group.rest = None

    def advance(self, touched: Mapping[str, Set[str | bytes]] | None, upto: FeedPosition) -> list[RestingGroups]:
        """Advance the end of the feed; returns the groups concerned. `touched` has changed ids by table, or their
        digests; None for any."""
        before, self.end = self.end, upto
        rests = (topic.touch(before, upto) for topic in self._concerned(touched))
        return [rest for rest in rests if rest.groups]

    def _concerned(self, touched: Mapping[str, Set[str | bytes]] | None) -> Iterator[Topic]:
        if touched is None:
            for topics in self._tables.values():
                yield from (topic for only, topic in topics.items() if not isinstance(only, bytes))
            return
        for table, rows in touched.items():
            topics = self._tables.get(table, {})
            if None in topics:
                yield topics[None]
            for row in rows if len(rows) < len(topics) else topics.keys() & rows:
                if row is not None and row in topics:
                    yield topics[row]
