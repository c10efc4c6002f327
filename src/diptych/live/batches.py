"""An index of queued evaluations that can run as one: by their batch key, and by caller.

    batches.add(key, group, account)               it is queued
    batches.companions(key, group, may_join)       those that run together with it

A batch takes one evaluation of each caller in turn, so that a caller with many is no more in the way of others than one
with a single one. Its size adapts to the time that it takes: a slow one is halved, down to evaluations that run alone
and are charged to their own caller, and a quick one is doubled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice

from diptych.live.shares import BatchKey, CallerAccount, Evaluation

MOST = 128
"""The most evaluations of a batch."""
_QUICK, _SLOW = 0.15, 0.4
"""Seconds of a batch below which the next ones are larger, and above which they are smaller."""
_PLANS = 1_000
"""Plans whose size of a batch is remembered."""


class EvaluationBatches:
    """The queued evaluations that have a key."""

    def __init__(self) -> None:
        self._queued: dict[BatchKey, OrderedDict[CallerAccount, dict[Evaluation, None]]] = {}
        self._sizes: OrderedDict[Hashable, int] = OrderedDict()
        """Of plans that do not always run in the largest batches, how many they run."""

    def add(self, key: BatchKey, work: Evaluation, account: CallerAccount) -> None:
        self._queued.setdefault(key, OrderedDict()).setdefault(account, {})[work] = None

    def remove(self, key: BatchKey, work: Evaluation, account: CallerAccount) -> None:
        callers = self._queued[key]
        works = callers[account]
        del works[work]
        if not works:
            del callers[account]
            if not callers:
                del self._queued[key]

    def companions(
        self, key: BatchKey, work: Evaluation, may_join: Callable[[CallerAccount], bool]
    ) -> list[Evaluation]:
        """Other evaluations to run together with one; they stay queued."""
        size = self._sizes.get(key.plan, MOST) - 1
        callers = self._queued[key]
        others = _in_turn((works for account, works in callers.items() if may_join(account)), work)
        taken = list(islice(others, size))
        for other in taken:  # those not taken come first next time
            assert other.account is not None
            callers.move_to_end(other.account)
        return taken

    def adapt(self, key: BatchKey, many: int, seconds: float) -> None:
        """Adapt the size of the batches of a plan to the time that one has taken."""
        size = self._sizes.pop(key.plan, MOST)
        if seconds > _SLOW:
            size = max(1, many // 2)
        elif seconds < _QUICK:
            size = min(MOST, size * 2)
        if size < MOST:
            self._sizes[key.plan] = size
            if len(self._sizes) > _PLANS:
                self._sizes.popitem(last=False)


def _in_turn(callers: Iterable[Iterable[Evaluation]], work: Evaluation) -> Iterator[Evaluation]:
    """The evaluations besides one: the first of each caller, then the second of each, and so on."""
    rounds: Iterator[Iterator[Evaluation]] = (iter(works) for works in callers)
    while True:
        left: list[Iterator[Evaluation]] = []
        for queue in rounds:
            other = next(queue, None)
            if other is not None:
                left.append(queue)
                if other is not work:
                    yield other
        if not left:
            return
        rounds = iter(left)
