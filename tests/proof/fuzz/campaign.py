"""So many spoiled requests against a service, and what was wrong with it while it lasted, and afterwards.

campaign = Campaign(service, seed=7)
campaign.run(2_000)
assert not campaign.report(), campaign.report()
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.proof.fuzz.answers import read_answers
from tests.proof.fuzz.corpus import Corpus
from tests.proof.fuzz.drive import Exchange, completed, exchange, exchanges, shrink
from tests.proof.fuzz.foresee import foresee
from tests.proof.fuzz.ground import Ground, survey
from tests.proof.fuzz.judge import Fault, Judge
from tests.proof.fuzz.mutate import Mutator
from tests.support.running import Client, Service
from tests.support.written_out import written_out

MOST = 12
"""Kinds of faults that are told, each with the least request that shows it."""
GROWTH = 48
"""MiB by which a service may grow after its caches are warm."""
_UNRULY = re.compile(r"Traceback|Exception|Warning|WARNING|ERROR|CRITICAL|error")


class Campaign:
    """One service under fire."""

    def __init__(self, service: Service, seed: int | str) -> None:
        self.service = service
        self.seed = seed
        self.ground: Ground = survey(service)
        self.judge = Judge(written_out(service.signed_in(self.ground.secrets["admin"]).get("/openapi.json").json()))
        random = Random(seed)
        self.mutator = Mutator(Corpus(self.ground, random), random)
        self.statuses: Counter[int] = Counter()
        self.cases = 0
        self.faults: dict[str, str] = {}
        self._recent: deque[bytes] = deque(maxlen=64)
        self._logged = len(service.err.lines)
        self._golden = Golden(service, self.ground)

    def run(self, cases: int) -> None:
        """Send so many requests, and look around afterwards."""
        asyncio.run(self._warm(min(300, cases // 4)))
        before = vitals(self.service)
        asyncio.run(self._send(self._drawn(cases)))
        self._look_at_log()
        self._look_after(before)

    def replay(self, raw: bytes) -> Fault | None:
        """What is wrong with the answer to these bytes, sent alone."""
        return asyncio.run(self._fault(raw))

    def report(self) -> str:
        """All that was wrong, in words; nothing, if all was well."""
        return "\n\n".join(f"seed {self.seed}: {told}" for told in self.faults.values())

    def _drawn(self, cases: int) -> Iterator[bytes]:
        for _ in range(cases):
            raw = completed(self.mutator.draw())
            self._recent.append(raw)
            yield raw

    async def _warm(self, cases: int) -> None:
        async for _ in exchanges(self.service.port, (each.raw() for each in self.mutator.corpus.all()[:cases])):
            pass

    async def _send(self, requests: Iterator[bytes]) -> None:
        async for done in exchanges(self.service.port, requests):
            self.cases += 1
            self._count(done)
            fault = self._judged(done)
            if fault is not None and fault.kind not in self.faults and len(self.faults) < MOST:
                await self._tell(fault, done.sent)
            if len(self.service.err.lines) != self._logged:
                await self._find_logged()

    def _count(self, done: Exchange) -> None:
        methods = [seen.method for seen in foresee(done.sent).requests]
        try:
            answers = read_answers(done.came, methods, ended=done.ended)
        except ValueError:
            answers = []
        self.statuses.update([answer.status for answer in answers] or [0])

    def _judged(self, done: Exchange) -> Fault | None:
        if done.hung:
            return Fault("hung", f"nothing more came, and the connection stayed; before that: {done.came[:300]!r}")
        return self.judge.judge(done.sent, done.came, ended=done.ended)

    async def _fault(self, raw: bytes) -> Fault | None:
        return self._judged(await exchange(self.service.port, raw))

    async def _tell(self, fault: Fault, raw: bytes) -> None:
        """Tell of a fault, with the least request that has it."""
        self.faults[fault.kind] = f"{fault.kind}: {fault.told}\n{self.ground.told(raw)!r}"
        if fault.kind == "hung":
            return
        loop = asyncio.get_running_loop()

        def fails(less: bytes) -> bool:
            found = asyncio.run_coroutine_threadsafe(self._fault(less), loop).result()
            return found is not None and found.kind == fault.kind

        least = await asyncio.to_thread(shrink, raw, fails)
        found = await self._fault(least)
        told = found.told if found else f"(not again) {fault.told}"
        self.faults[fault.kind] = f"{fault.kind}: {told}\n{self.ground.told(least)!r}"

    # the log

    async def _find_logged(self) -> None:
        """Who of the last ones made the service say something?"""
        said = "".join(self.service.err.lines[self._logged :])
        self._logged = len(self.service.err.lines)
        if not _UNRULY.search(said) or "log" in self.faults:
            return
        self.faults["log"] = f"log: the service said\n{said[-3000:]}\n(one of the last requests)"
        for raw in list(self._recent):
            await exchange(self.service.port, raw)
            await asyncio.sleep(0.02)  # what is said comes by another way
            if len(self.service.err.lines) != self._logged:
                self.faults["log"] = f"log: the service said\n{said[-3000:]}\nafter\n{self.ground.told(raw)!r}"
                break
        self._logged = len(self.service.err.lines)

    def _look_at_log(self) -> None:
        said = "".join(self.service.err.lines)
        if _UNRULY.search(said):
            self.faults.setdefault("log", f"log: the service said\n{said[-3000:]}")

    # afterwards

    def _look_after(self, before: dict[str, int]) -> None:
        if self.service.process.poll() is not None:
            self.faults["dead"] = f"dead: the service ended with {self.service.process.returncode}"
            return
        if wrong := self._golden.wrong():
            self.faults["changed"] = f"changed: {wrong}"
        after = settled(self.service, before)
        if after["descriptors"] > before["descriptors"] + 4:
            self.faults["descriptors"] = f"descriptors: {before['descriptors']} before, {after['descriptors']} after"
        if after["memory"] > before["memory"] + GROWTH:
            self.faults["memory"] = f"memory: {before['memory']} MiB before, {after['memory']} MiB after"
        self.memory = (before["memory"], after["memory"])


class Golden:
    """Questions whose answers stay as they are: of rows that no request names."""

    def __init__(self, client: Client, ground: Ground) -> None:
        self._client = client.signed_in(ground.secrets["admin"])
        named = {*ground.users, *ground.posts}
        users = [row["id"] for row in self._client.get("/users?last=5&fields=id").json()["data"]]
        posts = [row["id"] for row in self._client.get("/posts?last=5&fields=id").json()["data"]]
        assert not named & {*users, *posts}
        self._before = (users, posts)
        self._answers = self._ask()

    def _ask(self) -> list[bytes]:
        users, posts = self._before
        document = "query($u: [ID!], $p: ID!) { users(where: {id: {in: $u}}) { name email } post(id: $p) { title body author { id } } }"
        found = [
            self._client.post("/graphql", {"query": document, "variables": {"u": users, "p": post}}).body
            for post in posts
        ]
        found += [self._client.get(f"/users/{user}?fields=name,email,version").body for user in users]
        found.append(self._client.get("/health/ready").body)
        return found

    def wrong(self) -> str:
        """What is otherwise now."""
        now = self._ask()
        return next((f"{old!r} became {new!r}" for old, new in zip(self._answers, now, strict=True) if old != new), "")


def vitals(service: Service) -> dict[str, int]:
    """Open files, and memory in MiB, of a service."""
    proc = Path(f"/proc/{service.process.pid}")
    found = re.search(r"VmRSS:\s+(\d+) kB", (proc / "status").read_text())
    assert found is not None
    return {"descriptors": len(list((proc / "fd").iterdir())), "memory": int(found[1]) // 1024}


def settled(service: Service, before: dict[str, int]) -> dict[str, int]:
    """Its vitals when all that was closed is gone, or will not go."""
    for _ in range(50):
        after = vitals(service)
        if after["descriptors"] <= before["descriptors"] + 4:
            break
        Client(service.url).get("/health/live")  # a turn of its loop
    return after
