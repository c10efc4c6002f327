"""A line in which callers wait fairly: whoever has much to ask for waits behind itself, and not before others.

    line.put("ann", a1); line.put("ann", a2); line.put("ben", b1)
    line.pop()  → ("ann", a1)       then ("ben", b1), then ("ann", a2)

Everyone's things come in the order in which they were put there, one of each caller in turn. What the service itself
wants, "", comes before all others. The line has an end, and nobody fills more than half of it.

Round-robin order is kept by turn numbers: a caller that comes, or that was served, gets the next number. Whoever takes
things on trial and puts some back gives their turn numbers back too, so the order is what it would be had these never
been taken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from diptych.errors import Code, Refusal

T = TypeVar("T", bound=Hashable)


class Taken(NamedTuple, Generic[T]):
    """A thing that was taken from a line, and the turn in which it was: it can be put back there."""

    who: str
    item: T
    turn: int


class _Own(OrderedDict[T, None]):
    """What one caller waits for, and the number of its turn."""

    __slots__ = ("turn",)

    def __init__(self, turn: int) -> None:
        super().__init__()
        self.turn = turn


class Line(Generic[T]):
    """Things that wait, by who wants them; each is there once."""

    __slots__ = ("_callers", "_count", "_each", "_most", "_turn")

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // 2)
        self._callers: OrderedDict[str, _Own[T]] = OrderedDict()
        """In the order of their turns."""
        self._count = 0
        self._turn = 0

    def __len__(self) -> int:
        return self._count

    def put(self, who: str, item: T, gone: Callable[[T], bool] | None = None) -> None:
        """Stand in line, or a Refusal. If there is no room, what its caller does not want any more is dropped first."""
        own = self._callers.get(who)
        if who and (self._count >= self._most or (own is not None and len(own) >= self._each)):
            if gone is None or own is None or not self._drop(who, [each for each in own if gone(each)]):
                raise Refusal(Code.UNAVAILABLE, "Too many wait for the database; try again.")
            return self.put(who, item)
        if own is None:
            own = self._callers[who] = _Own(self._next_turn() if who else 0)
            if not who:
                self._callers.move_to_end(who, last=False)
        own[item] = None
        self._count += 1
        return None

    def put_back(self, taken: Iterable[Taken[T]]) -> None:
        """Things that are still to be done, as if they had never been taken; in the order in which they were."""
        for who, item, turn in reversed(list(taken)):
            own = self._callers.setdefault(who, _Own(turn))
            own.turn = min(own.turn, turn)
            own[item] = None
            own.move_to_end(item, last=False)
            self._count += 1
        self._callers = OrderedDict(sorted(self._callers.items(), key=lambda each: each[1].turn))

    def take(self, fits: Callable[[str, T], bool] | None = None) -> Taken[T] | None:
        """The next thing, with its turn; of a caller whose next one does not fit, none."""
        for who, own in self._callers.items():
            item = next(iter(own))
            if fits is None or fits(who, item):
                turn = own.turn
                self.remove(who, item)
                if own and who:
                    own.turn = self._next_turn()
                    self._callers.move_to_end(who)
                return Taken(who, item, turn)
        return None

    def pop(self, fits: Callable[[str, T], bool] | None = None) -> tuple[str, T] | None:
        """The next thing, for good."""
        found = self.take(fits)
        return None if found is None else (found.who, found.item)

    def pop_own(self, who: str) -> T | None:
        """The next thing of a caller, if nobody else waits."""
        own = self._callers.get(who)
        if own is None or len(self._callers) > 1:
            return None
        item, _ = own.popitem(last=False)
        self._count -= 1
        if not own:
            del self._callers[who]
        return item

    def remove(self, who: str, item: T) -> bool:
        """Leave the line; says whether it was there."""
        own = self._callers.get(who)
        if own is None or item not in own:
            return False
        del own[item]
        self._count -= 1
        if not own:
            del self._callers[who]
        return True

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn

    def _drop(self, who: str, items: Iterable[T]) -> bool:
        return bool([item for item in items if self.remove(who, item)])
