"""What each caller has of what all followers share: streams, memory for what they hold, and time.

A caller may have a part of what the others have left over: of 20,000 streams, with a share of a quarter, the first
caller gets 5,000 and the next 3,750. So there always is room for one more caller, however many want everything.

Time to evaluate what changed is a token bucket: it fills by `time_share` of a second in a second, up to ten seconds'
worth. `due` is the moment at which it is full again, so the least `due` is whoever has used least. Nobody, "", is the
service itself: it is never limited.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

from diptych.errors import Code, Refusal

BURST = 10.0
"""Seconds' worth of evaluation that can be saved up."""
_DEBTORS = 10_000
"""Callers without a stream whose debts are remembered."""
_WAIT = 5
"""Seconds after which one who has its share may try again."""


class Held(Protocol):
    """What a stream holds: a statement, which equal ones share, and the values that are bound to it."""

    @property
    def statement(self) -> str: ...

    @property
    def statement_size(self) -> int: ...

    @property
    def size(self) -> int: ...


class Work(Protocol):
    """Something to evaluate, in the time of the account that it is queued under."""

    account: Account | None
    """Whose queue it is in, if it is in one."""
    since: float
    """When it was put there."""

    def owner(self) -> Account:
        """In whose time it is to be done."""
        ...

    async def run(self) -> None: ...

    def too_late(self) -> None:
        """It has waited for too long, as its owner has no time left."""
        ...


class Account:
    """What one caller has, and what it waits for."""

    __slots__ = ("bytes", "due", "is_busy", "is_queued", "name", "statements", "streams", "works")

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams = 0
        self.bytes = 0
        self.statements: dict[str, int] = {}
        """How many of its streams share each statement."""
        self.due = 0.0
        """When all the time that it used will have been earned."""
        self.works: OrderedDict[Work, None] = OrderedDict()
        self.is_queued = False
        self.is_busy = False

    def lag(self, now: float) -> float:
        """For how long its oldest work has waited."""
        return now - next(iter(self.works)).since if self.works else 0.0

    def must_wait(self, now: float) -> bool:
        """Has it used up its share?"""
        return self.due - now > BURST

    def standing(self, now: float) -> tuple[float, int]:
        """The less the sooner it has its turn."""
        return max(self.due, now), len(self.works) + self.is_busy


class Shares:
    """The accounts of all who follow. A share of 0 is no bound."""

    def __init__(self, streams: int, memory: int, share: float, time_share: float) -> None:
        self.streams = streams
        self.memory = memory
        self.share = share
        self.time_share = time_share
        self.taken = 0
        """Streams of all callers."""
        self.bytes = 0
        """Bytes that they hold."""
        self.statements: dict[str, int] = {}
        self._accounts: dict[str, Account] = {}

    def account(self, name: str) -> Account:
        found = self._accounts.get(name)
        if found is None:
            if len(self._accounts) > self.streams + _DEBTORS:
                self._forget()
            found = self._accounts[name] = Account(name)
        return found

    def check(self, account: Account, held: Held | None = None) -> None:
        """Refuse one more stream if there is no room, or its caller has its share already."""
        if self.taken >= self.streams or self.bytes + _more(self.statements, held) > self.memory:
            raise Refusal(Code.UNAVAILABLE, "Too many follow changes here; try again.")
        if not account.name or not self.share:
            return
        most = max(1, int(self.share * (self.streams - self.taken + account.streams)))
        if account.streams >= most:
            raise _over(f"You follow changes by {account.streams} streams already, which is your share.", most)
        most = int(self.share * (self.memory - self.bytes + account.bytes))
        if held is not None and account.bytes + _more(account.statements, held) > most:
            raise _over("What you follow takes more memory than your share: use shorter values in filters.", most)

    def take(self, account: Account, held: Held) -> None:
        """One more stream."""
        account.streams += 1
        self.taken += 1
        self.bytes += _more(self.statements, held)
        account.bytes += _more(account.statements, held)
        for statements in (self.statements, account.statements):
            statements[held.statement] = statements.get(held.statement, 0) + 1

    def give(self, account: Account, held: Held) -> None:
        """One less."""
        for statements in (self.statements, account.statements):
            left = statements.pop(held.statement) - 1
            if left:
                statements[held.statement] = left
        account.streams -= 1
        self.taken -= 1
        self.bytes -= _more(self.statements, held)
        account.bytes -= _more(account.statements, held)
        idle = not (account.streams or account.works or account.is_busy)
        if idle and account.due <= time.monotonic():
            self._accounts.pop(account.name, None)

    def spend(self, account: Account, seconds: float) -> None:
        """It was evaluated for so long. Without a bound, this is only the order of turns."""
        if account.name:
            account.due = max(account.due, time.monotonic()) + seconds / (self.time_share or 1.0)

    def until(self, account: Account, now: float) -> float:
        """Seconds until it may have its next turn, or less than 0."""
        return account.due - now - BURST if self.time_share else -1.0

    def out_of_time(self, account: Account) -> Refusal:
        """What it is told whose streams come too late."""
        seconds = max(_WAIT, math.ceil(account.due - time.monotonic()))
        cause = "What you follow takes too long to evaluate: follow less, or with filters that look at fewer rows."
        return Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": min(60, seconds)})

    def _forget(self) -> None:
        """Drop those who have nothing and owe nothing; if there are none, those who owe least."""
        idle = [each for each in self._accounts.values() if not each.streams and not each.works and not each.is_busy]
        now = time.monotonic()
        idle.sort(key=lambda each: each.due)
        for number, each in enumerate(idle):
            if each.due > now and number > _DEBTORS // 10:
                return
            del self._accounts[each.name]


def _more(statements: Mapping[str, int], held: Held | None) -> int:
    """Bytes that a stream takes, besides a statement that is held anyway."""
    if held is None:
        return 0
    return held.size if held.statement in statements else held.size + held.statement_size


def _over(cause: str, most: int) -> Refusal:
    return Refusal(Code.RATE_LIMITED, cause, more={"allowed": most, "retryAfter": _WAIT})
