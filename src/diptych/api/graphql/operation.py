"""A translated GraphQL operation: its Asks, and its root fields."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from diptych.ask.wish import CallWish, NestWish, WatchWish, Wish, WriteWish


class Root(Struct, frozen=True):
    """A root field: its key in the response, and how it is answered."""

    label: str
    kind: Literal["ask", "call", "constant", "introspection"]
    constant: bytes = b""
    types: int = 1
    """The number of Asks that look for the row, one for each type that it may have."""
    many: bool = False
    """Does each of these Asks look for several rows?"""


class TranslatedOperation(Struct, frozen=True, eq=False):
    """A translated operation: its Asks, and its root fields in the order of the request."""

    wish: Wish
    roots: tuple[Root, ...]
    writes: tuple[WriteWish | NestWish | CallWish, ...] = ()
    calls: tuple[CallWish, ...] = ()
    watch: WatchWish | None = None
    """The Ask of a subscription."""

    @property
    def parts(self) -> list[WriteWish | CallWish]:
        """The writes with all parts of nested ones, in the order in which they are made."""
        return [part for wish in self.writes for part in (wish.parts if isinstance(wish, NestWish) else (wish,))]

    @property
    def nests(self) -> tuple[tuple[int, bool], ...]:
        """For each of `parts`: how many of the same nested write follow, and is it one that is not answered? Empty if
        there is no nested write."""
        if not any(isinstance(wish, NestWish) for wish in self.writes):
            return ()
        places: list[tuple[int, bool]] = []
        for wish in self.writes:
            count, head = (len(wish.parts), wish.head) if isinstance(wish, NestWish) else (1, 0)
            places += [(count - 1 - index, index != head) for index in range(count)]
        return tuple(places)
