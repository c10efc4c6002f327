"""A bounded queue, round-robin over callers: one item of each caller in turn.

    queue.put("ann", a1); queue.put("ann", a2); queue.put("ben", b1)
    queue.pop()  → ("ann", a1)       then ("ben", b1), then ("ann", a2)

Items of one caller come in the order in which they were put there. Those of the service itself, "", come before all
others. The queue is bounded, and no caller fills more than half of it. When it is full, the caller with the most items
makes room for those with fewer (longest queue drop): its newest item leaves, and is to be refused.

Round-robin order is kept by tickets: a caller that comes, or that was served, draws the next number. One whose item
took long can draw anew when it is done, so that those who came meanwhile go first. Items that were taken on trial can
be put back with their tickets, so the order is what it would be had they never been taken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from diptych.errors import Code, Refusal

T = TypeVar("T", bound=Hashable)


def full() -> Refusal:
    """The refusal of an item for which there is no room."""
    return Refusal(Code.UNAVAILABLE, "Too many wait for the database; try again.")


def most_of_one(most: int) -> int:
    """Items that one caller may have in a queue of this size."""
    return max(1, most // 2)


class Taken(Struct, Generic[T], frozen=True, eq=False):
    """An item that was taken, with the ticket that puts it back where it was."""

    caller: str
    item: T
    ticket: int


class _Own(OrderedDict[T, None]):
    """The items of one caller, and its ticket."""

    __slots__ = ("ticket",)
    ticket: int


class FairQueue(Generic[T]):
    """Items that wait, by caller; an item is in the queue once."""

    __slots__ = ("_callers", "_most", "_most_each", "_ticket", "count")

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_each = most_of_one(most)
        self._callers: OrderedDict[str, _Own[T]] = OrderedDict()
        """In the order of their tickets."""
        self.count = 0
        """The length of the queue."""
        self._ticket = 0

    def __len__(self) -> int:
        return self.count

    def put(self, caller: str, item: T, is_cancelled: Callable[[T], bool] | None = None) -> tuple[str, T] | None:
        """Add an item, or raise a Refusal. Cancelled items of the caller make room first; else an item of another
        caller may have to, which is returned."""
        own = self._callers.get(caller)
        dropped = None
        if caller and (self.count >= self._most or (own is not None and len(own) >= self._most_each)):
            if (
                is_cancelled is not None
                and own is not None
                and self._drop(caller, [queued for queued in own if is_cancelled(queued)])
            ):
                return self.put(caller, item)
            dropped = self._drop_longest(own)
            if dropped is None:
                raise full()
        if own is None:
            own = self._callers[caller] = _Own()
            own.ticket = self._next_ticket() if caller else 0
            if not caller:
                self._callers.move_to_end(caller, last=False)
        own[item] = None
        self.count += 1
        return dropped

    def put_back(self, taken: Iterable[Taken[T]]) -> None:
        """Put items back as if they had never been taken, in the order in which they were."""
        for entry in reversed(list(taken)):
            own = self._callers.setdefault(entry.caller, _Own())
            own.ticket = min(own.ticket, entry.ticket) if own else entry.ticket
            own[entry.item] = None
            own.move_to_end(entry.item, last=False)
            self.count += 1
        self._callers = OrderedDict(sorted(self._callers.items(), key=lambda entry: entry[1].ticket))

    def take(self, fits: Callable[[str, T], bool] | None = None) -> Taken[T] | None:
        """Take the next item, with its ticket; callers whose next item does not fit are skipped."""
        for caller, own in self._callers.items():
            item = next(iter(own))
            if fits is None or fits(caller, item):
                ticket = own.ticket
                del own[item]
                self.count -= 1
                if not own:
                    del self._callers[caller]
                elif caller:
                    own.ticket = self._next_ticket()
                    self._callers.move_to_end(caller)
                return Taken(caller, item, ticket)
        return None

    def pop(self, fits: Callable[[str, T], bool] | None = None) -> tuple[str, T] | None:
        """Take the next item for good."""
        taken = self.take(fits)
        return None if taken is None else (taken.caller, taken.item)

    def pop_own(self, caller: str) -> T | None:
        """Take the next item of a caller, if no other caller waits."""
        own = self._callers.get(caller)
        if own is None or len(self._callers) > 1:
            return None
        item, _ = own.popitem(last=False)
        self.count -= 1
        if not own:
            del self._callers[caller]
        return item

    def remove(self, caller: str, item: T) -> bool:
        """Remove an item; says whether it was there."""
        own = self._callers.get(caller)
        if own is None or item not in own:
            return False
        del own[item]
        self.count -= 1
        if not own:
            del self._callers[caller]
        return True

    def rejoin(self, caller: str) -> None:
        """Have a caller draw the next ticket: all others that wait now come before it."""
        own = self._callers.get(caller) if caller else None
        if own is not None:
            own.ticket = self._next_ticket()
            self._callers.move_to_end(caller)

    def _next_ticket(self) -> int:
        self._ticket += 1
        return self._ticket

    def _drop_longest(self, own: _Own[T] | None) -> tuple[str, T] | None:
        """Remove the newest item of the caller with the most, if it has more than another will with its next one."""
        count = 0 if own is None else len(own)
        if not self._callers:
            return None
        caller, longest = max(self._callers.items(), key=lambda entry: len(entry[1]) if entry[0] else 0)
        if not caller or count >= self._most_each or len(longest) <= count + 1:
            return None
        item, _ = longest.popitem()
        self.count -= 1
        return caller, item

    def _drop(self, caller: str, items: Iterable[T]) -> bool:
        return bool([item for item in items if self.remove(caller, item)])
