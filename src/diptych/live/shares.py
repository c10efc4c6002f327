"""Quotas of live changes by caller: streams, memory, and evaluation time.

A caller may take a share of what the others have left: of 20,000 streams, with a share of a quarter, the first caller
gets 5,000 and the next 3,750. So there is always room for one more caller.

Time to evaluate what changed is a token bucket: it fills by `time_share` of a second in a second, up to ten seconds'
worth. `due` is the moment at which it is full again, so the least `due` has used least. The caller ""
is the service itself, which is never limited.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol

from diptych.engine.watch import WatchMemory
from diptych.errors import Code, Refusal

BURST = 10.0
"""Seconds' worth of evaluation that can be saved up."""
_DEBTORS = 10_000
"""Callers without a stream whose used time is remembered."""
_WAIT = 5
"""Seconds after which a caller over its quota may retry."""


class BatchKey(NamedTuple):
    """What evaluations of a batch have in common: the plan with the values that it shares, and the position."""

    plan: Hashable
    at: int


class Evaluation(Protocol):
    """Something to evaluate, charged to the account under which it is queued."""

    account: CallerAccount | None
    """The account under which it is queued, if it is."""
    since: float
    """When it was queued."""

    def owner(self) -> CallerAccount:
        """The account to charge."""

    def batch_key(self) -> BatchKey | None:
        """Equal for evaluations that can run together; it does not change while it is queued."""

    async def run(self) -> None: ...

    async def run_with(self, others: Sequence[Evaluation]) -> None:
        """Run together with others of the same key."""

    def timed_out(self) -> None:
        """Give up: it has waited too long for the budget of its owner."""


class CallerAccount:
    """The streams, memory, budget and queued work of one caller."""

    __slots__ = ("bytes", "due", "is_busy", "is_queued", "name", "statements", "streams", "works")

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams = 0
        self.bytes = 0
        self.statements: dict[str, int] = {}
        """How many of its streams share each statement."""
        self.due = 0.0
        """When its token bucket is full again."""
        self.works: OrderedDict[Evaluation, BatchKey | None] = OrderedDict()
        """Its queued work, each with the key under which it can join a batch."""
        self.is_queued = False
        self.is_busy = False

    def lag(self, now: float) -> float:
        """Seconds for which its oldest work has waited."""
        return now - next(iter(self.works)).since if self.works else 0.0

    def must_wait(self, now: float) -> bool:
        """Has the caller used up its share?"""
        return self.due - now > BURST

    def standing(self, now: float) -> tuple[float, int]:
        """Its priority: the least runs first."""
        return max(self.due, now), len(self.works) + self.is_busy


class Shares:
    """The accounts of all callers with streams. A share of 0 is no limit."""

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
        self._accounts: dict[str, CallerAccount] = {}

    @property
    def waiting(self) -> int:
        """Evaluations that wait, of all callers."""
        return sum(len(account.works) for account in self._accounts.values())

    @property
    def lag(self) -> float:
        """Seconds for which the oldest of them has waited."""
        now = time.monotonic()
        return max((account.lag(now) for account in self._accounts.values()), default=0.0)

    def account(self, name: str) -> CallerAccount:
        account = self._accounts.get(name)
        if account is None:
            if len(self._accounts) > self.streams + _DEBTORS:
                self._forget()
            account = self._accounts[name] = CallerAccount(name)
        return account

    def check(self, account: CallerAccount, held: WatchMemory | None = None) -> None:
        """Refuse one more stream at the limit, or over the quota of its caller."""
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

    def take(self, account: CallerAccount, held: WatchMemory) -> None:
        """Count one more stream."""
        account.streams += 1
        self.taken += 1
        self.bytes += _more(self.statements, held)
        account.bytes += _more(account.statements, held)
        for statements in (self.statements, account.statements):
            statements[held.statement] = statements.get(held.statement, 0) + 1

    def give(self, account: CallerAccount, held: WatchMemory) -> None:
        """Count one less."""
        for statements in (self.statements, account.statements):
            left = statements.pop(held.statement) - 1
            if left:
                statements[held.statement] = left
        account.streams -= 1
        self.taken -= 1
        self.bytes -= _more(self.statements, held)
        account.bytes -= _more(account.statements, held)
        idle = not (account.streams or account.works or account.is_busy)
        if idle and account.due <= time.monotonic() and self._accounts.get(account.name) is account:
            del self._accounts[account.name]

    def spend(self, account: CallerAccount, seconds: float) -> None:
        """Charge evaluation time. Without a limit, it only determines the order."""
        if account.name:
            account.due = max(account.due, time.monotonic()) + seconds / (self.time_share or 1.0)

    def until(self, account: CallerAccount, now: float) -> float:
        """Seconds until it may run again; at most 0 if it may now."""
        return account.due - now - BURST if self.time_share else -1.0

    def out_of_time(self, account: CallerAccount) -> Refusal:
        """The refusal for a caller whose streams lag too far behind."""
        seconds = max(_WAIT, math.ceil(account.due - time.monotonic()))
        cause = "What you follow takes too long to evaluate: follow less, or with filters that look at fewer rows."
        return Refusal(Code.RATE_LIMITED, cause, more={"retryAfter": min(60, seconds)})

    def _forget(self) -> None:
        """Drop idle accounts with a full bucket; if there are none, those that owe least."""
        idle = [
            account
            for account in self._accounts.values()
            if not account.streams and not account.works and not account.is_busy
        ]
        now = time.monotonic()
        idle.sort(key=lambda account: account.due)
        for number, account in enumerate(idle):
            if account.due > now and number > _DEBTORS // 10:
                return
            del self._accounts[account.name]


def _more(statements: Mapping[str, int], held: WatchMemory | None) -> int:
    """Bytes of a stream, without its statement if that is shared."""
    if held is None:
        return 0
    return held.size if held.statement in statements else held.size + held.statement_size


def _over(cause: str, most: int) -> Refusal:
    return Refusal(Code.RATE_LIMITED, cause, more={"allowed": most, "retryAfter": _WAIT})
