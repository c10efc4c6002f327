"""Failovers under load: 16 writers, many followers and requests that never cease, and what must hold after all of them.

found = under_load(place, followers=200, rounds=20, lose=servers.promote, mend=servers.mend)
found.check(place)
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.proof.long_running import asker
from tests.proof.long_running.followers import Follower
from tests.proof.long_running.parts import tell, until
from tests.proof.long_running.town import Town
from tests.support.machine import Machine
from tests.support.running import PATIENCE, ROOT

SCRIBES = 16
BEATS = 24
"""Heart-beats after which all must have been told: six seconds, since so many write on a machine of two processors."""
REFUSED_WITHIN = 1.0
NOISE = r"[^\n]*WARNING[^\n]*(the feed cannot be read|The database cannot answer now|webhooks|jobs|revo|node)[^\n]*\n"


@dataclass
class Asked:
    """How a process was answered that asks without a pause (`asker.py`)."""

    statuses: Counter[int] = field(default_factory=Counter)
    refusals: list[tuple[float, str]] = field(default_factory=list)
    """Seconds, and what was said."""
    interrupted: list[tuple[float, str]] = field(default_factory=list)
    """The same of changes whose commit may have been interrupted, so that their outcome was looked for."""
    in_doubt: int = 0
    noise: list[float] = field(default_factory=list)
    """Seconds of responses that need no database."""

    @contextmanager
    def asking(self, place: Town) -> Iterator[None]:
        command = [sys.executable, "-m", asker.__name__, str(place.services[0].port), place.admin, place.hot]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield
        finally:
            said, _ = process.communicate(timeout=PATIENCE)
        for each in json.loads(said):
            self.statuses.update({int(status): count for status, count in each["statuses"].items()})
            self.refusals += [(seconds, text) for seconds, text in each["refusals"]]
            self.interrupted += [(seconds, text) for seconds, text in each["interrupted"]]
            self.in_doubt += each["in_doubt"]
            self.noise += each["noise"]

    def late(self) -> tuple[int, float]:
        """How many refusals took more than a second, and the median of all."""
        seconds = sorted(refusal[0] for refusal in self.refusals)
        return sum(each > REFUSED_WITHIN for each in seconds), seconds[len(seconds) // 2]


@dataclass(frozen=True)
class Found:
    """What was seen meanwhile."""

    followers: list[Follower]
    asked: Asked
    machine: Machine
    what: str

    def check(self, place: Town) -> None:
        """Nothing acknowledged is lost, every event was told once and in order, refusals came at once, and nothing was
        started again."""
        wrong = place.verdicts(self.followers, NOISE)
        statuses = self.asked.statuses
        slowest, said = max(self.asked.refusals)
        tell(
            f"{self.what}: {len(place.made.acknowledged)} acknowledged, {place.made.refused} refused, "
            f"{place.changes()} changes, {len(self.followers)} followers were told "
            f"{sum(len(each.told) for each in self.followers)} and came "
            f"{sum(each.connections for each in self.followers)} times; wrong {len(wrong)}; asked {dict(statuses)}, "
            f"in doubt {self.asked.in_doubt}, slowest refusal {slowest:.2f} s (late ones and median: {self.asked.late()}; "
            f"slowest response without a database {max(self.asked.noise):.2f} s): {said}; changes that were "
            f"interrupted, and the slowest: {len(self.asked.interrupted)}, {max(self.asked.interrupted, default=None)}"
        )
        assert wrong == []
        assert {service.starts for service in place.services} == {1}
        assert {each.connections for each in self.followers} == {1}, "streams stay open"
        assert statuses[503] > 0 and not {500, 502} & set(statuses)
        assert slowest <= self.machine.limit(REFUSED_WITHIN), said


def under_load(
    place: Town, followers: int, rounds: int, lose: Callable[[], object], mend: Callable[[], object]
) -> Found:
    """Lose the primary again and again, while all write, ask and follow."""
    found = Found(place.followers(followers), Asked(), Machine(), f"{rounds} failovers")
    begun = time.monotonic()

    async def disturb() -> None:
        with found.asked.asking(place):
            for number in range(rounds):
                await _work(place)
                await asyncio.to_thread(lose)
                await _work(place)
                await asyncio.to_thread(mend)
                tell(f"failover {number + 1} of {rounds} after {time.monotonic() - begun:.0f} s")
            await _work(place)

    asyncio.run(place.live(found.followers, disturb, scribes=SCRIBES, outside=False, beats=BEATS))
    return found


async def _work(place: Town) -> None:
    enough = len(place.made.acknowledged) + 30
    await until(lambda: len(place.made.acknowledged) > enough, "nothing is changed")
