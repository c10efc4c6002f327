"""Streams end within a second when their token does: on the node where that was said, and on every other one.

Two nodes serve one database. On each of them someone follows in every way, with a token that is then revoked, or
whose account gets other roles, or that expires. Each is told where to go on, and misses nothing by it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from diptych.identity.tokens import load_tokens
from tests.proof.long_running.followers import STYLES, Follower, Watching
from tests.proof.long_running.parts import Mortal, http, mortal, tell, until, wire
from tests.support.effort import LONG
from tests.support.machine import Machine
from tests.support.running import Client

ISSUER = "https://prove.example"
SETTINGS = {"DIPTYCH_HEARTBEAT": "0.25", "DIPTYCH_BASE_URL": ISSUER}
EXPIRES = 6
"""Seconds for which a token holds that is left to expire."""
WITHIN = 1.0
NOISE = 0.0 if LONG else 2.0
"""What the slowest may need more where others use the machine, too."""
End = Callable[[], Awaitable[float]]
"""Ends a token; gives the moment at which that was so."""


class Backend:
    """A confidential client: it gets tokens of its own from a node, and revokes them there."""

    def __init__(self, port: int, id: str, secret: str) -> None:
        self._port = port
        self._basic = base64.b64encode(f"{id}:{secret}".encode()).decode()
        self.token = ""

    async def begin(self) -> None:
        self.token = json.loads(await self._post("/oauth/token", "grant_type=client_credentials"))["access_token"]

    async def end(self) -> float:
        await self._post("/oauth/revoke", f"token={self.token}")
        return time.time()

    async def _post(self, path: str, form: str) -> bytes:
        connection = await wire(self._port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {self._basic}\r\nContent-Length: {len(form)}\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        )
        answer = await connection.ask((head + form).encode())
        connection.close()
        assert answer.status == 200, answer
        return answer.body


async def ways(store: Store, port: int) -> dict[str, tuple[str, End]]:
    """The ways in which a token ends: each with a token, and what ends it."""
    revoked, made = RevocationList(store), await load_tokens(store, ISSUER)
    client, secret = await Clients(store, revoked).add("machine", confidential=True, roles=("admin",))
    machine = Backend(port, client.id, secret or "")
    await machine.begin()
    accounts = Accounts(store, revoked)
    account = await accounts.add("ann@example.org", None, ("admin",))

    async def change_roles() -> float:
        await accounts.set_roles("ann@example.org", ("staff",))
        return time.time()

    expires = int(time.time()) + EXPIRES

    async def expire() -> float:
        await asyncio.sleep(expires - time.time())
        return float(expires)

    return {
        "revoked": (machine.token, machine.end),
        "other roles": (made.make(None, ("admin",), None, 900, {"account": account.id}), change_roles),
        "expired": (made.make(None, ("admin",), None, expires - int(time.time())), expire),
    }


async def end_all(store: Store, nodes: list[Mortal], start: str) -> Mapping[str, dict[Follower, float]]:
    """How long after the end of a token each of its streams ended, by the way in which it did."""
    found: dict[str, dict[Follower, float]] = {}
    all_ways = await ways(store, nodes[0].port)
    followers = {
        way: [
            Follower(Watching(way, "user", token, None, bool, bool), style, partial(getattr, node, "port"), start)
            for style in STYLES
            for node in nodes
        ]
        for way, (token, _) in all_ways.items()
    }
    tasks = {each: asyncio.create_task(each.run()) for some in followers.values() for each in some}
    await until(lambda: all(each.is_open for each in tasks), "not all follow")
    for way, (_, end) in all_ways.items():
        some = followers[way]
        assert not [each for each in some if each.ended], "ended before its time"
        moment = await end()
        await until(lambda some=some: all(each.ended for each in some), f"not all ended: {way}")  # type: ignore[misc]  # mypy infers no type of its default
        found[way] = {each: each.ended - moment for each in some}
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    return found


def test_a_token_that_ends_ends_its_streams_everywhere_within_a_second(database: str) -> None:
    async def work(start: str) -> Mapping[str, dict[Follower, float]]:
        store = connect(Config(database=database))
        await store.open(model)
        try:
            return await end_all(store, nodes, start)
        finally:
            await store.close()

    machine = Machine()
    with ExitStack() as stack:
        nodes = [stack.enter_context(mortal(database, **SETTINGS)) for _ in range(2)]
        client = Client(f"http://127.0.0.1:{nodes[1].port}")
        found = asyncio.run(work(client.get("/users/changes").json()["page"]["last"]))
        assert asyncio.run(add_user(nodes[0])) == 201
        for each in (each for some in found.values() for each in some):
            missed = client.get(f"/users/changes?after={each.cursors[-1]}").json()["data"]
            assert [change["kind"] for change in missed] == ["CREATED"], f"{each}: {missed}"
    for way, delays in found.items():
        tell(
            f"{way} on {database.partition(':')[0]}: streams ended after "
            + ", ".join(f"{delay:.2f}" for delay in delays.values())
            + " s"
        )
        assert statistics.median(delays.values()) <= machine.limit(WITHIN)
        assert max(delays.values()) <= machine.limit(WITHIN) + NOISE


async def add_user(node: Mortal) -> int:
    store = connect(Config(database=node.database))
    await store.open(model)
    bearer = (await load_tokens(store, ISSUER)).make(None, ("admin",), None)
    await store.close()
    connection = await wire(node.port)
    answer = await connection.ask(http("POST", "/users", bearer, {"name": "Bob", "email": "bob@example.org"}))
    connection.close()
    return answer.status
