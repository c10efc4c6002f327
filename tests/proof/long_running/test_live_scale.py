"""Very many who follow: what each costs, how soon all are told, and that those who do not read are no burden to others.

Measured from outside, on one server process, with all connections in one client process on the same machine.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.proof.long_running.crowd import Crowd, graphql_stream, memory, rest_stream, share, shown, socket_stream
from tests.proof.long_running.parts import Mortal, http, mortal, tell, tokens
from tests.support.effort import scaled
from tests.support.machine import Machine
from tests.support.running import Client, NewDatabase, Postgres

IDLE = scaled(10_000)
ALLOWED = 1 << 30
"""Bytes of memory for ten thousand who follow and hear nothing."""
TOLD = scaled(5_000)
READERS = scaled(2_000)
CHANGES = scaled(200, 60)
"""How often something changes while some do not read: 15 KB each, so that nobody can hold it all."""
BUFFER = 262_144
PATIENCE = 5
"""Seconds for which the service waits for one who takes nothing."""
SMALL = "subscription { postChanged { eventId cursor kind rowId at post { title } } }"
LARGE = "subscription { postChanged { eventId cursor kind rowId at post { title body } } }"
STYLES: dict[str, Callable[[str], list[bytes]]] = {
    "rest": lambda fields: rest_stream(f"/posts/changes?fields={fields}"),
    "graphql": lambda fields: graphql_stream(SMALL if fields == "title" else LARGE),
    "socket": lambda fields: socket_stream(SMALL if fields == "title" else LARGE),
}


def _request(style: str, fields: str, _number: int) -> list[bytes]:
    """What a subscriber sends."""
    return STYLES[style](fields)


@pytest.fixture(autouse=True)
def many_files() -> None:
    """Every connection is an open file, here and in the service, which has the limits that this process has."""
    wanted = max(IDLE, TOLD, READERS) + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{wanted} open files are needed, and {hard} are allowed")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else hard, hard))


class Stage:
    """A service with one post, whoever looks at it, and someone who changes it."""

    def __init__(self, service: Mortal) -> None:
        self.service = service
        (admin,) = tokens(service.database, (None, ("admin",)))
        client = Client(f"http://127.0.0.1:{service.port}", admin)
        self.user: str = client.post("/users", {"name": "Ann", "email": "ann@example.org"}).json()["id"]
        (self.bearer,) = tokens(service.database, (self.user, ()))
        post = {"authorId": self.user, "title": "t", "body": "x", "published": True}
        self.post: str = client.signed_in(self.bearer).post("/posts", post).json()["id"]
        self.crowd = Crowd(service.port)
        self._number = 0

    def change(self, times: int, body: str = "x") -> list[float]:
        """Change the post; gives all delays, in order."""
        found: list[float] = []
        for _ in range(times):
            self._number += 1
            given = {"title": f"t{self._number}", "body": body}
            found += self.crowd.deliver(http("PATCH", f"/posts/{self.post}", self.bearer, given))
        return sorted(found)

    def warm(self) -> None:
        """Wait until everyone follows."""
        self.crowd.warm(http("PATCH", f"/posts/{self.post}", self.bearer, {"title": "t"}))

    def memory(self) -> int:
        return memory(self.service.pid)


@contextmanager
def stage(database: str) -> Iterator[Stage]:
    """A service on a database, and a crowd before it."""
    with mortal(database, DIPTYCH_STREAM_TIMEOUT=str(PATIENCE), DIPTYCH_STREAM_SHARE="0") as service:
        found = Stage(service)
        try:
            yield found
        finally:
            found.crowd.close()


@pytest.mark.parametrize("style", ["rest", "socket"])
def test_ten_thousand_who_hear_nothing_take_less_than_a_gigabyte(new_sqlite: NewDatabase, style: str) -> None:
    with stage(new_sqlite()) as found:
        found.crowd.open(20, lambda _: STYLES[style]("title"))
        found.warm()
        before = found.memory()
        found.crowd.open(IDLE, lambda _: STYLES[style]("title"))
        after = found.memory()
        found.warm()  # all of them do follow
        told = found.memory()
    each = (max(after, told) - before) / IDLE
    tell(
        f"{IDLE} who follow by {style}: {before >> 20} MiB before, {after >> 20} with them, {told >> 20} when all were told "
        f"of a change; {each:,.0f} bytes each"
    )
    assert before + each * 10_000 <= ALLOWED


def test_a_change_is_told_to_thousands_within_a_second(new_sqlite: NewDatabase) -> None:
    machine = Machine()
    with stage(new_sqlite()) as found:
        for style in STYLES:
            found.crowd.open(TOLD // len(STYLES), partial(_request, style, "title"))
        found.warm()
        delays = found.change(10)
    tell(f"a change told to {len(delays) // 10}, all three ways: {shown(delays)}")
    assert share(delays, 0.99) <= machine.limit(1.0)


def test_those_who_never_read_are_cut_off_and_cost_others_nothing(new_sqlite: NewDatabase) -> None:
    large, idle, machine = "x" * 15_000, READERS // 10, Machine()
    with stage(new_sqlite()) as found:
        crowd = found.crowd
        for style in ("rest", "socket"):
            crowd.open(READERS // 2, partial(_request, style, "title,body"))
        found.warm()
        alone = found.change(CHANGES, large)
        before = found.memory()
        for style in ("rest", "socket"):
            crowd.open(idle // 2, partial(_request, style, "title,body"), reads=False)
        first = found.change(CHANGES // 2, large)
        most = found.memory()
        second = found.change(CHANGES // 2, large)
        after = found.memory()
        together = sorted(first + second)
        cut = crowd.cut(PATIENCE + 20)
    p99, disturbed = share(alone, 0.99), share(together, 0.99)
    tell(
        f"{READERS} who read, alone: {shown(alone)}; with {idle} who do not: {shown(together)} ({disturbed / p99:.1f} times "
        f"the p99), of whom {cut} were cut off; {CHANGES * len(large) / 1e6:.1f} MB were told to each of the others; memory "
        f"{before >> 20} MiB, then {most >> 20}, then {after >> 20}"
    )
    assert cut == idle
    assert disturbed <= max(2 * p99, machine.limit(0.06))
    assert max(most, after) - before <= idle * 2 * BUFFER + (16 << 20)


def test_all_who_are_told_the_same_are_told_by_one_statement(postgres: Postgres) -> None:
    """Whatever way they follow. PostgreSQL itself counts."""
    database = postgres.create()
    name = database.partition("?")[0].rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
    (log,) = postgres.execute("SELECT current_setting('data_directory') || '/log'")[0]
    with stage(database) as found:
        for style in STYLES:
            found.crowd.open(50, partial(_request, style, "title"))
        found.warm()
        evaluations = []
        for more in range(2):
            with open(log, encoding="utf-8") as text:
                text.seek(0, 2)
                found.change(5)
                evaluations.append(text.read().count("FROM diptych_feed _f "))
            if not more:
                found.crowd.open(50, lambda _: STYLES["rest"]("title,body"))
    assert evaluations == [5, 10], "one for each change, and one more for those who want something else"
