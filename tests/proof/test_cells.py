"""Non-interference of tenants: many cells in one process, under requests of all kinds, and no byte crosses.

Every value that a tenant writes holds a mark of its own. Requests are drawn at random, among them such that bring along
what another cell gave out: tokens, cursors, ids, ETags, keys of idempotency. No response may hold the mark of another.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diptych.api.reply import Reply
from diptych.cells.app import Cells
from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from diptych.identity.tokens import load_tokens
from diptych.serve.http.direct import CompleteRequest
from tests.support.effort import scaled
from tests.support.running import Client, NewDatabase, Service, running

TENANTS = scaled(200, 12)
OPEN = scaled(50, 4)
REQUESTS = scaled(20_000, 200)
CLIENTS = scaled(8, 3)
ADDRESS = "http://127.0.0.1:8000/t/{tenant}"
DOWN = "down"
MARK = re.compile(rb"mark[0-9a-f]{16}")
LEAST, EACH = 84.0, 6.0
"""MiB that a process may take, and that each open cell may add."""

Ask = Callable[[str, str, dict[str, str], bytes | None], tuple[int, bytes]]


@dataclass
class Tenant:
    """One tenant, and what its cell has given out."""

    name: str
    token: str
    mark: str = field(default_factory=lambda: "mark" + secrets.token_hex(8))
    ids: list[str] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/t/{self.name}"


class Crowd:
    """Clients of all tenants, who bring along what other cells gave out."""

    def __init__(self, tenants: list[Tenant], seed: int) -> None:
        self.tenants = tenants
        self.random = random.Random(seed)
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []

    def run(self, ask: Ask, count: int) -> None:
        for _ in range(count):
            tenant, other = self.random.choice(self.tenants), self.random.choice(self.tenants)
            kind = self.random.choice(KINDS)
            method, path, headers, body = kind(self.random, tenant, other)
            status, answer = ask(method, tenant.path + path, headers, body)
            self.statuses[status] += 1
            self._check(kind.__name__, tenant, other, status, answer)

    def _check(self, kind: str, tenant: Tenant, other: Tenant, status: int, answer: bytes) -> None:
        strange = {mark.decode() for mark in MARK.findall(answer)} - {tenant.mark}
        if strange or status >= 500:
            self.faults.append(f"{kind} of {tenant.name}, with what {other.name} has: {status} {answer[:200]!r}")
        if tenant is not other and kind == "with_their_token" and status not in (401, 403):
            self.faults.append(f"{tenant.name} takes the token of {other.name}: {status}")
        if status in (200, 201) and kind in ("create", "page"):
            value = json.loads(answer)
            if kind == "create":
                tenant.ids.append(value["id"])
            elif value["page"]["next"]:
                tenant.cursors.append(value["page"]["next"])


Drawn = tuple[str, str, dict[str, str], bytes | None]


def bearer(tenant: Tenant) -> dict[str, str]:
    return {"authorization": f"Bearer {tenant.token}"}


def posted(value: Any) -> tuple[dict[str, str], bytes]:
    return {"content-type": "application/json"}, json.dumps(value).encode()


def create(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    user = {"name": f"{tenant.mark} {draw.random()}", "email": f"{tenant.mark}-{draw.random()}@example.com"}
    headers, body = posted(user)
    return "POST", "/users", {**headers, **bearer(tenant), "idempotency-key": f'"{draw.random()}"'}, body


def create_by_a_key_of_both(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    headers, body = posted({"name": tenant.mark, "email": f"{tenant.mark}@example.com"})
    return "POST", "/users", {**headers, **bearer(tenant), "idempotency-key": '"one"'}, body


def mutate(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    document = "mutation($id: ID!, $input: UserUpdate!) { updateUser(id: $id, input: $input) { id name email } }"
    key = draw.choice(tenant.ids or other.ids or ["x"])
    headers, body = posted({"query": document, "variables": {"id": key, "input": {"name": tenant.mark}}})
    return "POST", "/graphql", {**headers, **bearer(tenant)}, body


def page(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", f"/users?first={draw.randint(1, 5)}", bearer(tenant), None


def with_their_cursor(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", f"/users?first=3&after={draw.choice(other.cursors or ['x'])}", bearer(tenant), None


def with_their_id(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", f"/users/{draw.choice(other.ids or ['x'])}", bearer(tenant), None


def with_their_token(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", "/users", bearer(other), None


def search(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    document = "query($m: String!) { users(where: {name: {startsWith: $m}}, first: 5) { id name email posts { id } } }"
    headers, body = posted({"query": document, "variables": {"m": other.mark}})
    return "POST", "/graphql", {**headers, **bearer(tenant)}, body


def changes(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", "/users/changes?first=5", bearer(tenant), None


def anonymous(draw: random.Random, tenant: Tenant, other: Tenant) -> Drawn:
    return "GET", draw.choice(("/posts", "/openapi.json", "/health/ready", "/users")), {}, None


KINDS = (
    *(create, create, create_by_a_key_of_both, mutate, page, page, with_their_cursor),
    *(with_their_id, with_their_token, search, changes, anonymous),
)


def token_of(name: str, database: str) -> str:
    """A token of an admin, as the cell itself issues it."""

    async def work() -> str:
        store = connect(Config(database=database))
        await store.open(model)
        try:
            return (await load_tokens(store, ADDRESS.replace("{tenant}", name))).make(None, ("admin",), None)
        finally:
            await store.close()

    return asyncio.run(work())


def made(folder: Path, new_database: NewDatabase, count: int) -> tuple[Path, list[Tenant]]:
    """A cells file, with a cell that is down, and its tenants."""
    databases = {f"t{number}": new_database() for number in range(count)}
    tenants = [Tenant(name, token_of(name, database)) for name, database in databases.items()]
    lines = [f'{name} = "{url}"' for name, url in {**databases, DOWN: "postgresql://127.0.0.1:1/none"}.items()]
    file = folder / "cells.toml"
    file.write_text("\n".join([f'address = "{ADDRESS}"', "[cells]", *lines, ""]))
    return file, tenants


def size_of(service: Service) -> tuple[float, int]:
    """MiB and open files of a process."""
    folder = Path(f"/proc/{service.process.pid}")
    return int((folder / "statm").read_text().split()[1]) / 256, len(list((folder / "fd").iterdir()))


def test_no_byte_crosses_between_cells(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    """Served by a real process, which has a quarter of the cells open at a time, beside one that is down."""
    file, tenants = made(tmp_path, new_sqlite, TENANTS)
    crowds = [Crowd(tenants, seed) for seed in range(CLIENTS)]
    down: Counter[int] = Counter()
    options = ("--cells", str(file), "--max-cells", str(OPEN))
    with running("serve", *options, database=new_sqlite(), noise="the cell of down cannot be opened") as service:
        client = Client(service.url)

        def ask(method: str, path: str, headers: dict[str, str], body: bytes | None) -> tuple[int, bytes]:
            answer = client.request(method, path, headers, body)
            return answer.status, answer.body

        threads = [threading.Thread(target=crowd.run, args=(ask, REQUESTS // CLIENTS)) for crowd in crowds]
        for thread in threads:
            thread.start()
        sizes = []
        while any(thread.is_alive() for thread in threads):
            down[client.get(f"/t/{DOWN}/posts").status] += 1
            sizes.append(size_of(service))
            threads[0].join(0.1)
        memory, files = (max(size) for size in zip(*sizes, strict=True))
    statuses = sum((crowd.statuses for crowd in crowds), Counter())
    print(
        f"cells: {TENANTS} of which {OPEN} are open, {statuses.total()} requests {dict(statuses)}, "
        f"at most {memory:.0f} MiB and {files} files"
    )
    assert [fault for crowd in crowds for fault in crowd.faults] == []
    assert statuses[200] > statuses.total() / 4 and statuses[201] and statuses[401]
    assert set(down) == {503}
    assert memory < LEAST + OPEN * EACH
    assert files < 100 + OPEN * 8


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_request_that_reaches_another_cell_is_seen(seed: int, new_sqlite: NewDatabase, tmp_path: Path) -> None:
    """The control."""
    file, tenants = made(tmp_path, new_sqlite, 4)

    class Astray(Cells):
        """The cell of one tenant answers another."""

        def respond(self, arrived: CompleteRequest) -> Reply | Awaitable[Reply]:
            arrived.url = arrived.url.replace(b"/t/t1/", b"/t/t0/")
            return super().respond(arrived)

    tenants[1].token = tenants[0].token
    with asyncio.Runner() as runner:
        cells = Astray(model, Config(cells=str(file)))

        def ask(method: str, path: str, headers: dict[str, str], body: bytes | None) -> tuple[int, bytes]:
            sent = {name.encode(): value.encode() for name, value in headers.items()}

            async def work() -> Reply:
                reply = cells.respond(CompleteRequest(method, path.encode(), sent, ("127.0.0.1", 1), body or b""))
                return reply if isinstance(reply, Reply) else await reply

            reply = runner.run(work())
            return reply.status, reply.body

        crowd = Crowd(tenants, seed)
        crowd.run(ask, 200)
        runner.run(cells.stop())
    seen = [fault for fault in crowd.faults if " of t1, " in fault and tenants[0].mark in fault]
    assert seen, crowd.faults
