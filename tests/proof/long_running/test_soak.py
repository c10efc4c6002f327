"""All attacks at once, beside honest callers, on a server process: ten minutes in the long form (`make soak`).

Turns with and without the attacks alternate, so that what else the machine does meets both alike. Honest requests keep
within three times their p99, `/health/live` answers within 50 ms, and memory stays within the sum of the bounds that
docs/reference/limits.md declares. The short form asserts memory and that all honest requests are answered; times are told. How
long the service was ready to run and had no processor is told too, and what others took that have no part in it: where
that is much, the machine was measured.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from diptych.identity.tokens import load_tokens
from tests.proof.long_running.crowd import memory, share
from tests.proof.long_running.parts import Answer, Mortal, mortal, tell, wires
from tests.proof.long_running.test_attack import Stream, graphql, http, signed
from tests.support.effort import LONG, long_where, scaled
from tests.support.running import ROOT, Client, NewDatabase

TURN = scaled(100, 3)
"""Seconds of a turn."""
TURNS = scaled(3, 1)
HONEST = 40
"""Requests a second."""
RATIO = 3.0
HEALTH = 0.05
BUSY = 0.2
"""The part of a processor that others may take, from which on nothing can be said."""
NICE = 15
"""Attackers would be on other machines: here they take the time that neither the service nor honest callers need."""
SCALE = 1.0 if LONG else 0.1
"""How many of the connections that attackers hold open there are."""
DATABASE_CACHES = {"sqlite": 7 * 64 << 20, "postgresql": 10 * 2 << 20}
"""Bytes that connections to the database may hold."""


@dataclass
class Found:
    """What was measured in all turns of one kind."""

    taken: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0
    waited: float = 0.0
    """Seconds for which the service could have run and had no processor."""
    others: float = 0.0
    """Processor seconds of all that has no part in it."""
    seconds: float = 0.0

    @property
    def p99(self) -> float:
        return share(sorted(self.taken), 0.99)

    def __str__(self) -> str:
        taken, health = sorted(self.taken), sorted(self.health)
        return (
            f"{len(taken)} honest requests: p50 {share(taken, 0.5) * 1e3:.1f}, p99 {share(taken, 0.99) * 1e3:.1f} ms; "
            f"health: p99 {share(health, 0.99) * 1e3:.1f}, max {health[-1] * 1e3:.1f} ms; "
            f"CPU of the service {self.cpu / self.seconds:.0%}, without a processor {self.waited / self.seconds:.0%}, "
            f"of others {self.others / self.seconds:.0%}; "
            f"{dict(self.faults) or 'no faults'}"
        )


def cpu_time(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        parts = stat.read().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def busy_time() -> float:
    """Processor seconds of the whole machine, and those that its host gave to other machines."""
    with open("/proc/stat", encoding="ascii") as stat:
        parts = [int(each) for each in stat.readline().split()[1:]]
    return (sum(parts[:3]) + sum(parts[5:8])) / os.sysconf("SC_CLK_TCK")


def part_time(service: Mortal) -> float:
    """Processor seconds of the service, of this process, of the attackers and of PostgreSQL."""
    found = cpu_time(service.pid) + time.process_time()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if b"tests.proof.long_running.attackers" in command or command.startswith(b"postgres:"):
                found += cpu_time(int(entry.name))
    return found


def run_delay(pid: int) -> float:
    """Seconds for which the first thread of a process waited for a processor."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[1]) / 1e9


def peak(pid: int) -> int:
    """The most memory that a process has had."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def declared() -> int:
    """The sum of all caches, as docs/reference/limits.md declares it."""
    page = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")
    found = re.search(r"\*\*([0-9.]+) MiB\*\*", page)
    assert found is not None
    return int(float(found[1]) * (1 << 20))


def honest(users: Sequence[str], bearers: Sequence[str]) -> Iterator[bytes]:
    """Callers who are signed in: they read one row and lists in both styles, and change something of their own."""
    one = "query($id: ID!) { user(id: $id) { id name } }"
    many = "{ posts(first: 20) { id title author { name } } }"
    for number, (user, bearer) in enumerate(itertools.cycle(zip(users, bearers, strict=True))):
        yield graphql(one, {"id": user}, bearer)
        yield http(f"GET /users/{user}", *signed(bearer))
        yield graphql(many, None, bearer)
        yield http("GET /posts?first=20&fields=id,title,author(name)", *signed(bearer))
        if number % 4 == 0:
            body = json.dumps({"name": f"n{number}"}).encode()
            yield (
                http(
                    f"PATCH /users/{user}",
                    *signed(bearer),
                    "Content-Type: application/json",
                    f"Content-Length: {len(body)}",
                )
                + body
            )


async def look(port: int, seconds: float, taken: list[float]) -> None:
    """Ask how the service is, ten times a second, on one connection after the other."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        (wire,) = await wires(port, 1)
        asked = time.perf_counter()
        answer = await wire.ask(http("GET /health/live"))
        taken.append(time.perf_counter() - asked)
        wire.close()
        assert answer.status == 200, answer
        await asyncio.sleep(0.1)


async def turn(service: Mortal, requests: Iterator[bytes], found: Found) -> None:
    def count(answer: Answer) -> None:
        if answer.status != 200:
            found.faults[f"{answer.status} {answer.code}"] += 1

    others = busy_time() - part_time(service)
    before, delay, begun = cpu_time(service.pid), run_delay(service.pid), time.perf_counter()
    free = await wires(service.port, 16)
    try:
        stream = Stream(free, requests, HONEST)
        taken, _ = await asyncio.gather(stream.run(TURN, count), look(service.port, TURN, found.health))
        found.taken += taken
    finally:
        for each in free:
            each.close()
    found.cpu += cpu_time(service.pid) - before
    found.waited += run_delay(service.pid) - delay
    found.others += max(0.0, busy_time() - part_time(service) - others)
    found.seconds += time.perf_counter() - begun


def prepare(database: str, users: Sequence[str]) -> tuple[list[str], dict[str, object]]:
    """Tokens of honest callers, and what the attackers are given: a user with a long post, many sets of scopes, a client."""

    async def work() -> tuple[list[str], dict[str, object]]:
        store = connect(Config(database=database))
        await store.open(model)
        try:
            made = await load_tokens(store, "")
            names = sorted(model.scopes)
            scoped = [
                made.make(users[0], (), [name for at, name in enumerate(names) if number >> at & 1], 86_400)
                for number in range(200)
            ]
            clients = Clients(store, RevocationList(store))
            client, secret = await clients.add("Job", confidential=True)
            public, _ = await clients.add("App", ["http://127.0.0.1/back"])
            await Accounts(store, RevocationList(store)).add("ann@example.org", "the right password", (), users[1])
            page = urlencode(
                {
                    "response_type": "code",
                    "client_id": public.id,
                    "redirect_uri": "http://127.0.0.1/back",
                    "code_challenge": "x" * 43,
                    "code_challenge_method": "S256",
                }
            )
            given: dict[str, object] = {
                "user": users[0],
                "bearer": made.make(users[0], (), None, 86_400),
                "scoped": scoped,
                "client": client.id,
                "secret": secret,
                "page": page,
            }
            return [made.make(user, (), None, 86_400) for user in users[1:]], given
        finally:
            await store.close()

    return asyncio.run(work())


def fill(service: Client, user: str, bearer: str, many: int) -> str:
    """Long posts of one user; the id of one of them."""
    writer, id = service.signed_in(bearer), ""
    for number in range(many):
        body = {"authorId": user, "title": f"long {number}", "body": "a" * 20_000, "published": True}
        id = writer.post("/posts", body).json()["id"]
    return id


@pytest.mark.timeout(3_600)
@long_where(store="postgresql")
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_honest_callers_are_served_while_everything_is_tried_at_once(
    store: str, new_sqlite: NewDatabase, request: pytest.FixtureRequest
) -> None:
    database = new_sqlite() if store == "sqlite" else request.getfixturevalue("postgres").create()
    alone, together, counts = Found(), Found(), Counter[str]()
    with mortal(database, "--sample") as service:
        client = Client(f"http://127.0.0.1:{service.port}")
        users = [row["id"] for row in client.get("/users?first=9").json()["data"]]
        bearers, given = prepare(database, users)
        given["post"] = fill(client, users[0], str(given["bearer"]), scaled(500, 100))
        requests = honest(users[1:], bearers)
        before = memory(service.pid)
        for _ in range(TURNS):
            asyncio.run(turn(service, requests, alone))
            counts += attacked(service, requests, together, given)
        said, most = service.said[-1].text, peak(service.pid)
    bound = before + declared() + DATABASE_CACHES[store]
    tell(
        f"\n{store}, alone: {alone}\n{store}, under attack: {together}\np99 {together.p99 / alone.p99:.2f} times; memory {before / 2**20:.0f} MiB, "
        f"at most {most / 2**20:.0f}, bound {bound / 2**20:.0f}\nattacks: {dict(sorted(counts.items()))}"
    )
    assert "Traceback" not in said, said
    assert most <= bound
    if not LONG and together.others > BUSY * together.seconds:
        pytest.skip("other processes used the CPU, so the times mean nothing")
    assert not together.faults
    if LONG:
        assert together.p99 <= RATIO * alone.p99
        assert max(together.health) <= max(HEALTH, *alone.health)


def attacked(service: Mortal, requests: Iterator[bytes], found: Found, given: dict[str, object]) -> Counter[str]:
    """A turn under attack; what became of the attacks."""
    told = json.dumps({**given, "port": service.port, "seconds": TURN, "scale": SCALE})
    command = ["nice", "-n", str(NICE), sys.executable, "-m", "tests.proof.long_running.attackers", told]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            asyncio.run(turn(service, requests, found))
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    return Counter(json.loads(said))
