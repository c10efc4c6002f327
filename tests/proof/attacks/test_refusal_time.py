"""A refusal is cheap: 10 ms where the look at the text or the walk over the document refuses, 25 ms elsewhere, for 99 of
100 attacks; in the time of a nominal machine, since machines differ and are noisy.

Each attack is sent to the handler as one that was never seen. What is measured is the time of the processor: a refusal
waits for nothing. What else runs on the machine makes processors slower too, so that graphql-core parses a reference
before and after each attack, and the attack is scaled by it; and what an attack costs is the least of what it took, since
others can only make it slower. `PROVE=long` sends each attack 40 times.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest
from graphql import parse

from tests.proof.attacks.bombs import U
from tests.proof.attacks.case import Case, post, times
from tests.proof.attacks.everything import ANSWERED, REFUSED
from tests.proof.attacks.scene import Scene
from tests.proof.long_running.parts import tell
from tests.support.effort import LONG, scaled

ROUNDS = scaled(40, 3)
LIMITS = {"text": 0.010, "prepass": 0.010, "other": 0.025}
"""Seconds, by where an attack is refused."""
MOST = 0.200
"""Seconds for what is answered: it may be much work, and must not be a trap."""
REFERENCE = f"{{ {times(10, 'user(id: 1) { id name posts(first: 1) { id title } }')} }}"
"""A document of about 200 tokens."""
NOMINAL = 0.0013
"""Seconds that graphql-core takes to parse it on the machine on which the limits were set, when that is quiet."""
_ALONE = 1.4
"""So much more than its class may a single attack take."""

Timed = Callable[[Case], Awaitable[float]]


class Figures:
    """What all attacks took, in seconds of the nominal machine."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = defaultdict(list)
        self.parses: list[float] = []

    async def take(self, cases: Mapping[str, Case], timed: Timed, rounds: int) -> None:
        """Send all attacks, and parse the reference between them; the short form sends those again that took too long."""
        for _ in range(rounds):
            self.parses.append(_parse())
            for name, case in cases.items():
                if self.taken[name] and not LONG and self.cost(name) <= LIMITS.get(case.where, MOST):
                    continue
                seconds = await timed(case)
                self.parses.append(_parse())
                self.taken[name].append(seconds / max(1.0, min(self.parses[-2:]) / NOMINAL))

    def cost(self, name: str) -> float:
        """What an attack costs: the least that it took."""
        return min(self.taken[name])

    def faults(self, cases: Mapping[str, Case]) -> list[str]:
        """What takes too long: a whole class by its 99th percentile, and no attack by itself by much more than that."""
        found = []
        for name, taken in self.taken.items():
            limit = LIMITS[cases[name].where] * _ALONE
            if self.cost(name) > limit:
                found.append(f"{name}: {shown(taken)}, {limit * 1e3:.1f} ms are allowed")
        for where, limit in LIMITS.items():
            if percentile(self.of(where, cases), 0.99) > limit:
                found.append(
                    f"all that is refused by {where}: {shown(self.of(where, cases))}, {limit * 1e3:.1f} ms are allowed"
                )
        return found

    def of(self, where: str, cases: Mapping[str, Case]) -> list[float]:
        return [self.cost(name) for name in self.taken if cases[name].where == where] or [0.0]

    def tell(self, cases: Mapping[str, Case]) -> None:
        """Print the classes, and the slowest attacks."""
        tell(f"\nthe parse of the reference: {shown(self.parses)}; {NOMINAL * 1e3:.1f} nominal")
        for where in LIMITS:
            taken = self.of(where, cases)
            tell(f"refused by {where}: {shown(taken)} of {len(taken)}")
        for name in sorted(self.taken, key=lambda name: -self.cost(name))[:20]:
            tell(f"    {cases[name].where:8} {self.cost(name) * 1e3:5.2f} ms, {shown(self.taken[name])}  {name}")


def percentile(values: Sequence[float], share: float) -> float:
    found = sorted(values)
    return found[min(int(len(found) * share), len(found) - 1)]


def shown(values: Sequence[float]) -> str:
    return f"median {statistics.median(values) * 1e3:5.2f}, p99 {percentile(values, 0.99) * 1e3:5.2f} ms"


def _parse() -> float:
    begun = time.thread_time()
    parse(REFERENCE)
    return time.thread_time() - begun


def test_a_refusal_is_cheap(scene: Scene) -> None:
    figures = Figures()
    gc.collect()
    gc.freeze()  # what the tests themselves hold is not to be looked through again and again
    try:
        scene.service.runner.run(figures.take(REFUSED, scene.timed, ROUNDS))
    finally:
        gc.unfreeze()
    figures.tell(REFUSED)
    assert not figures.faults(REFUSED), "\n".join(figures.faults(REFUSED))


def test_what_is_answered_is_no_trap(scene: Scene) -> None:
    """Nothing refuses it, so nothing else would tell that a small request of no harm takes minutes."""
    figures = Figures()
    scene.service.runner.run(figures.take(ANSWERED, scene.timed, 2))
    slow = [f"{name}: {shown(taken)}" for name, taken in figures.taken.items() if figures.cost(name) > MOST]
    assert not slow, "\n".join(slow)


def test_what_is_not_cheap_would_be_seen(scene: Scene) -> None:
    """As if nothing were looked at before validation: the fields of one key are compared each with each."""
    slow = post(
        "slow", f"{{ {U} {{ {times(99, 'posts(first: §) { id }', 1)} }} }}", "prepass", "GRAPHQL_VALIDATION_FAILED"
    )
    figures = Figures()

    async def unguarded(case: Case) -> float:
        begun = time.thread_time()
        for _ in range(40):
            parse(REFERENCE)
        await scene.handle(case)
        return time.thread_time() - begun

    scene.service.runner.run(figures.take({"slow": slow}, unguarded, 5))
    assert len(figures.faults({"slow": slow})) == 2


@pytest.mark.skipif(not LONG, reason="takes minutes: PROVE=long")
def test_a_family_of_attacks_leaves_nothing_behind(scene: Scene) -> None:
    families: dict[str, list[Case]] = defaultdict(list)
    for name, case in REFUSED.items():
        families[name.partition(":")[0]].append(case)
    for name, cases in families.items():
        grown = scene.service.runner.run(_grown(scene, cases))
        tell(f"{name}: {len(cases)} attacks, 40 times each: {grown >> 10:,} KiB more")
        assert grown <= 16 << 20


async def _grown(scene: Scene, cases: Sequence[Case]) -> int:
    """Bytes that the process takes more after the same attacks again."""
    for _ in range(2):
        for case in cases:
            await scene.handle(case)
    before = memory()
    for _ in range(40):
        for case in cases:
            await scene.handle(case)
    gc.collect()
    return memory() - before


def memory() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
