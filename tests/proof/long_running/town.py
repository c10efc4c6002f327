"""A town: one database, the services on it, those who write, and those who follow.

with town(database) as place:
    followers = place.followers(27)
    asyncio.run(place.live(followers, lambda: kill_again_and_again(place)))
    assert place.verdicts(followers) == []
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.proof.long_running.followers import STYLES, Follower, Row, Watching
from tests.proof.long_running.ledger import check_feed, read_feed, verdict
from tests.proof.long_running.parts import Mortal, mortal, rows, tokens, until
from tests.proof.long_running.scribes import Author, Made, Scribe, write_outside
from tests.support.running import Client

SCRIBES = 6
PAUSE = 0.05
"""Seconds between two changes of a scribe."""
HEARTBEAT = 0.25
_UNRULY = re.compile(r"Traceback|Exception|WARNING|ERROR|CRITICAL")


class Town:
    """Two users, a post that everybody changes, and whoever comes."""

    def __init__(self, services: Sequence[Mortal]) -> None:
        self.services = services
        self.database = services[0].database
        self.made = Made()
        self._dice = random.Random("town")
        (self.admin,) = tokens(self.database, (None, ("admin",)))
        client = Client(f"http://127.0.0.1:{services[0].port}", self.admin)
        users = [
            client.post("/users", {"name": name, "email": f"{name}@x.org"}).json()["id"] for name in ("Ann", "Bob")
        ]
        bearers = tokens(self.database, *((user, ()) for user in users))
        self.authors = [Author(user, bearer, self.admin) for user, bearer in zip(users, bearers, strict=True)]
        self.ann = self.authors[0]
        post = {"authorId": self.ann.user, "title": "b hot", "body": "x", "published": True}
        self.hot: str = client.signed_in(self.ann.bearer).post("/posts", post).json()["id"]
        self.start: str = client.get("/posts/changes").json()["page"]["last"]
        self._begun = len(read_feed(self.database))

    def port(self) -> int:
        """Of any of the services."""
        return self._dice.choice(self.services).port

    def watchings(self) -> list[Watching]:
        """What is followed: by several viewers, with several filters."""
        mine, signed = self.ann.user, self.ann.bearer

        def public(row: Row) -> bool:
            return bool(row["published"])

        def readable(row: Row) -> bool:
            return public(row) or row["author_id"] == mine

        def bought(row: Row) -> bool:
            return bool(row["customer_id"] == mine)

        def any_(row: Row) -> bool:
            return True

        return [
            Watching("public posts", "post", "", None, public, public),
            Watching("all posts", "post", self.admin, None, any_, any_),
            Watching("what Ann may read", "post", signed, None, readable, readable),
            Watching(
                "Ann's drafts",
                "post",
                signed,
                {"published": {"eq": False}},
                lambda row: readable(row) and not public(row),
                readable,
            ),
            Watching(
                "public posts with b",
                "post",
                "",
                {"title": {"startsWith": "b"}},
                lambda row: public(row) and row["title"].startswith("b"),
                public,
            ),
            Watching("what comes and goes", "post", "", None, public, public, ("CREATED", "DELETED", "LEFT")),
            Watching(
                "the hot post",
                "post",
                "",
                {"id": {"eq": self.hot}},
                lambda row: public(row) and row["id"] == self.hot,
                public,
            ),
            Watching("Ann's orders", "order", signed, None, bought, bought),
            Watching(
                "pending orders",
                "order",
                self.admin,
                {"status": {"eq": "pending"}},
                lambda row: row["status"] == "pending",
                any_,
            ),
        ]

    def followers(self, count: int, resume: Callable[[Follower], str] | None = None) -> list[Follower]:
        """So many: of each kind, in each style."""
        kinds = [(watching, style) for watching in self.watchings() for style in STYLES]
        return [Follower(*kinds[number % len(kinds)], self.port, self.start, resume) for number in range(count)]

    async def live(
        self,
        followers: Sequence[Follower],
        disturb: Callable[[], Awaitable[None]],
        scribes: int = SCRIBES,
        *,
        outside: bool = True,
        beats: int = 3,
    ) -> None:
        """Let all follow and write until the disturbance is over and everything is told. Those outside write by SQL."""
        following = [asyncio.create_task(each.run()) for each in followers]
        await until(lambda: all(each.is_open for each in followers), "not all follow")
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number in range(scribes):
                author = self.authors[number % len(self.authors)]
                group.create_task(Scribe(f"s{number}", self.port, author, self.hot, self.made, PAUSE).run(done))
            if outside:
                group.create_task(write_outside(self.database, self.ann.user, self.hot, self.made, done, PAUSE))
            await disturb()
            done.set()
        await self._told(followers, beats)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)

    async def _told(self, followers: Sequence[Follower], enough: int) -> None:
        """Wait for heart-beats: one may come before what is still to be told, and the next ones come after it."""
        if not self.database.startswith("sqlite:"):
            waiting = "SELECT count(*) FROM diptych_feed WHERE position IS NULL"
            while await asyncio.to_thread(rows, self.database, waiting) != [(0,)]:
                await asyncio.sleep(0.01)
        beats = {each: each.beats for each in followers}
        await until(lambda: all(each.beats >= beats[each] + enough for each in followers), "not all hear a heart-beat")

    def changes(self) -> int:
        """How many were made while they followed."""
        return len(read_feed(self.database)) - self._begun

    def verdicts(self, followers: Sequence[Follower], noise: str = "") -> list[str]:
        """What is wrong with what the followers were told. `noise` is what services may say."""
        entries = read_feed(self.database)
        check_feed(self.database, entries, self.made.acknowledged)
        for said in (said for service in self.services for said in service.said):
            text = re.sub(noise, "", said.text) if noise else said.text
            assert not _UNRULY.search(text), text
        return [found for each in followers if (found := verdict(each, entries[self._begun :]))]


@contextmanager
def town(database: str, *options: str, services: int = 1, named: str = "") -> Iterator[Town]:
    """A town with so many services on one database."""
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(mortal(database, *options, named=named, DIPTYCH_HEARTBEAT=str(HEARTBEAT)))
            for _ in range(services)
        ]
        yield Town(nodes)
