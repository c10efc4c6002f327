"""Which groups a change concerns, without a look at any of them.

Groups that were told everything rest, by what they follow: a table, or one row of it. Where they stand is where the
feed ends, so nothing is done for them when that moves on. A change takes all who rest at its table, and at its row, in
one step: from then on they stand where the feed ended before it, until each was told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from diptych.ask.bookmark import Place


class Resting(Protocol):
    """A group, as far as this is concerned."""

    topic: Topic
    rest: Rest | None
    at: int
    """Up to where it was evaluated, if it does not rest."""
    stands: Place
    """Up to where it was told, then."""


class Rest:
    """Groups that were told everything up to the same place: where the feed ends, or where it did."""

    __slots__ = ("at", "groups")

    def __init__(self) -> None:
        self.at: Place | None = None
        """Where the feed ended before something concerned them, if it did."""
        self.groups: dict[Resting, None] = {}


class Topic:
    """A table, or one row of it, and the groups that follow it."""

    __slots__ = ("count", "only", "rest", "table", "touched")

    def __init__(self, table: str, only: str | None) -> None:
        self.table = table
        self.only = only
        self.rest = Rest()
        self.touched = 0
        """Up to where there may be changes of it."""
        self.count = 0

    def touch(self, before: Place, upto: Place) -> Rest:
        """Something of it changed: those who rested there are to be told."""
        self.touched = upto.position
        rest, self.rest = self.rest, Rest()
        rest.at = before
        return rest


class Topics:
    """All topics of the groups of a service, and where the feed ends."""

    def __init__(self) -> None:
        self.end = Place(0, 0)
        self._tables: dict[str, dict[str | None, Topic]] = {}

    def add(self, table: str, only: str | None) -> Topic:
        """The topic of one more group."""
        topics = self._tables.setdefault(table, {})
        topic = topics.get(only)
        if topic is None:
            topic = topics[only] = Topic(table, only)
        topic.count += 1
        return topic

    def remove(self, group: Resting) -> None:
        """A group is no more."""
        if group.rest is not None:
            group.rest.groups.pop(group, None)
        topic = group.topic
        topic.count -= 1
        if not topic.count:
            topics = self._tables[topic.table]
            del topics[topic.only]
            if not topics:
                del self._tables[topic.table]

    def place(self, group: Resting) -> Place:
        """Up to where a group was told."""
        rest = group.rest
        return group.stands if rest is None else rest.at or self.end

    def let_rest(self, group: Resting) -> bool:
        """Was a group told all that may concern it? Then it rests."""
        topic = group.topic
        if topic.touched > group.at:
            return False
        group.rest = topic.rest
        topic.rest.groups[group] = None
        return True

    def wake(self, group: Resting) -> None:
        """A group is to be told: it stands where it was when it rested."""
        if group.rest is not None:
            group.stands = self.place(group)
            group.at = group.stands.position
            group.rest.groups.pop(group, None)
            group.rest = None

    def advance(self, touched: Mapping[str, set[str]] | None, upto: Place) -> list[Rest]:
        """The feed ends elsewhere: who is to be told? `touched` are the ids of what changed by table, None for any."""
        before, self.end = self.end, upto
        rests = (topic.touch(before, upto) for topic in self._concerned(touched))
        return [rest for rest in rests if rest.groups]

    def _concerned(self, touched: Mapping[str, set[str]] | None) -> Iterator[Topic]:
        if touched is None:
            for topics in self._tables.values():
                yield from topics.values()
            return
        for table, rows in touched.items():
            topics = self._tables.get(table, {})
            if None in topics:
                yield topics[None]
            for row in rows if len(rows) < len(topics) else topics.keys() & rows:
                if row is not None and row in topics:
                    yield topics[row]
