"""A store for each tenant: requests reach their own cell alone, and one cell harms no other."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diptych.api.reply import Reply
from diptych.cells import pool
from diptych.cells.app import Cells
from diptych.config import Config
from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from diptych.identity.tokens import load_tokens
from diptych.serve.http.direct import CompleteRequest
from tests.contract.identity.issuer import RSA, issuing
from tests.support.mailbox import mailbox
from tests.support.running import NewDatabase

JSON = {b"content-type": b"application/json"}


class Town:
    """Cells in this process, and a client of them."""

    def __init__(self, cells: Cells, runner: asyncio.Runner, file: Path) -> None:
        self.cells = cells
        self.runner = runner
        self.file = file

    def ask(
        self, method: str, path: str, token: str = "", body: Any = None, host: str = "", **headers: str
    ) -> tuple[int, Any]:
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        sent |= {b"host": host.encode()}
        if token:
            sent[b"authorization"] = f"Bearer {token}".encode()
        raw = b""
        if body is not None:
            raw = json.dumps(body).encode()
            sent |= JSON | {b"content-length": str(len(raw)).encode()}

        async def work() -> Reply:
            reply = self.cells.respond(CompleteRequest(method, path.encode(), sent, ("127.0.0.1", 1), raw))
            return reply if isinstance(reply, Reply) else await reply

        reply = self.runner.run(work())
        return reply.status, json.loads(reply.body) if reply.body else None

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function that begins tasks."""

        async def work() -> None:
            function(*arguments)

        self.runner.run(work())

    def token(self, tenant: str, *roles: str) -> str:
        async def work() -> str:
            cell = await self.cells.pool.open(tenant)
            return (await load_tokens(cell.app.store, "")).make(None, roles, None)

        return self.runner.run(work())

    def write(self, tenant: str, name: str) -> None:
        user = {"name": name, "email": f"{name}@example.com"}
        assert self.ask("POST", f"/t/{tenant}/users", self.token(tenant, "admin"), user)[0] == 201

    def names(self, tenant: str) -> list[str]:
        token = self.token(tenant, "admin")
        status, page = self.ask("GET", f"/t/{tenant}/users?fields=name", token)
        assert status == 200, page
        rest = [row["name"] for row in page["data"]]
        asked = self.ask("POST", f"/t/{tenant}/graphql", token, {"query": "{ users { name } }"})[1]
        assert [row["name"] for row in asked["data"]["users"]] == rest
        return rest


def written(file: Path, cells: dict[str, str], head: str = 'address = "https://example.com/t/{tenant}"') -> Path:
    lines = [f"{tenant} = {json.dumps(database)}" for tenant, database in cells.items()]
    file.write_text("\n".join([head, "[cells]", *lines, ""]))
    return file


@contextmanager
def town(file: Path, **settings: Any) -> Iterator[Town]:
    with asyncio.Runner() as runner:
        cells = Cells(model, Config(cells=str(file), **settings))
        try:
            yield Town(cells, runner, file)
        finally:
            runner.run(cells.stop())


def test_every_tenant_has_its_own_rows(new_database: NewDatabase, tmp_path: Path) -> None:
    with town(written(tmp_path / "cells.toml", {"acme": new_database(), "globex": new_database()})) as here:
        here.write("acme", "Ann")
        here.write("globex", "Bob")
        assert (here.names("acme"), here.names("globex")) == (["Ann"], ["Bob"])


def test_what_one_cell_gave_out_is_worth_nothing_in_another(new_database: NewDatabase, tmp_path: Path) -> None:
    """Tokens, cursors, persisted documents, and keys of idempotency."""
    with town(written(tmp_path / "cells.toml", {"acme": new_database(), "globex": new_database()})) as here:
        for name in ("Ann", "Bea"):
            here.write("acme", name)
        acme, globex = (here.token(tenant, "admin") for tenant in ("acme", "globex"))
        assert here.ask("GET", "/t/acme/users", acme)[0] == 200
        assert here.ask("GET", "/t/globex/users", acme)[0] == 401
        page = here.ask("GET", "/t/acme/users?first=1&fields=id", acme)[1]
        assert here.ask("GET", f"/t/acme/users?first=1&after={page['page']['next']}", acme)[0] == 200
        assert here.ask("GET", f"/t/globex/users?first=1&after={page['page']['next']}", globex)[0] == 400
        changes = here.ask("GET", "/t/acme/users/changes?first=1", acme)[1]["data"]
        assert here.ask("GET", f"/t/globex/users/changes?after={changes[0]['cursor']}", globex)[0] in (400, 410)
        document = "{ users { id name } }"
        named = {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(document.encode()).hexdigest()}}
        registered = {"query": document, "extensions": named}
        assert "data" in here.ask("POST", "/t/acme/graphql", acme, registered)[1]
        assert "data" in here.ask("POST", "/t/acme/graphql", acme, {"extensions": named})[1]
        unknown = here.ask("POST", "/t/globex/graphql", globex, {"extensions": named})[1]
        assert unknown["errors"][0]["extensions"]["code"] == "PERSISTED_QUERY_NOT_FOUND"
        user = {"name": "Cat", "email": "cat@example.com"}
        for tenant, token in (("acme", acme), ("globex", globex)):
            assert here.ask("POST", f"/t/{tenant}/users", token, user, idempotency_key='"one"')[0] == 201
        assert here.names("globex") == ["Cat"]


def test_who_is_a_tenant_is_not_told(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    with town(written(tmp_path / "cells.toml", {"acme": new_sqlite()})) as here:
        nobody = here.ask("GET", "/t/nobody/users")
        assert nobody[0] == 404
        assert nobody == here.ask("GET", "/users") == here.ask("GET", "/t/")
        assert here.ask("GET", "/health/live")[0] == here.ask("GET", "/health/ready")[0] == 200
        assert len(here.cells.pool) == 0
        here.cells.begin_drain()
        assert here.ask("GET", "/health/ready")[0] == 503


def test_a_token_of_another_issuer_holds_in_the_cell_that_it_names(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    """By a claim alone, and by a host name beside it."""
    for head in ('address = "https://api.example.com"', 'address = "https://{tenant}.example.com"'):
        cells = {"acme": new_sqlite(), "globex": new_sqlite()}
        file = written(tmp_path / "cells.toml", cells, f'{head}\nclaim = "org"')
        with issuing() as issuer, town(file, issuers=(issuer.settings,)) as here:
            issuer.publish(RSA)
            acme, globex = (issuer.token(RSA, org=tenant, roles=["admin"]) for tenant in cells)
            user = {"name": "Ann", "email": "ann@example.com"}
            assert here.ask("POST", "/users", acme, user, host="acme.example.com")[0] == 201
            for token, host, names in ((acme, "acme", ["Ann"]), (globex, "globex", [])):
                status, page = here.ask("GET", "/users?fields=name", token, host=f"{host}.example.com")
                assert (status, [row["name"] for row in page["data"]]) == (200, names)
            if "{tenant}" in head:
                assert here.ask("GET", "/users", globex, host="acme.example.com")[0] == 401
                assert here.ask("GET", "/users", acme, host="globex.example.com")[0] == 401
            header, _, signature = acme.split(".")
            forged = f"{header}.{globex.split('.')[1]}.{signature}"
            assert here.ask("GET", "/users", forged, host="globex.example.com")[0] == 401
            unnamed = issuer.token(RSA, roles=["admin"])
            assert here.ask("GET", "/users", unnamed, host="acme.example.com")[0] in (401, 404)


def test_no_more_cells_are_open_than_may_be(
    new_database: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_WAITS", 3)
    tenants = {f"t{number}": new_database() for number in range(5)}
    with town(written(tmp_path / "cells.toml", tenants), max_cells=2, pool_size=2) as here:
        for _ in range(2):
            for tenant in tenants:
                assert here.ask("GET", f"/t/{tenant}/posts")[0] == 200
                assert len(here.cells.pool) <= 2
        held = [here.runner.run(here.cells.pool.open(tenant)) for tenant in ("t0", "t1")]
        with held[0].in_use(), held[1].in_use():
            status, said = here.ask("GET", "/t/t2/posts")
            assert (status, said["detail"]) == (503, "Too many tenants are served at the same time; try again.")
            assert here.ask("GET", "/t/t0/posts")[0] == 200
        assert here.ask("GET", "/t/t2/posts")[0] == 200
        here.runner.run(asyncio.sleep(0.01))
        here.call(here.cells.pool.close_idle, 0.001)
        assert len(here.cells.pool) == 0


def test_many_first_requests_open_a_cell_once(new_database: NewDatabase, tmp_path: Path) -> None:
    with town(written(tmp_path / "cells.toml", {"acme": new_database()})) as here:

        async def work() -> list[Reply]:
            asked = [here.cells.respond(CompleteRequest("GET", b"/t/acme/posts", {}, None)) for _ in range(20)]
            return [one if isinstance(one, Reply) else await one for one in asked]

        assert {reply.status for reply in here.runner.run(work())} == {200}
        assert here.cells.pool.counts == {"opened": 1}


def test_a_cell_that_is_down_harms_no_other(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    cells = {"acme": new_sqlite(), "down": "postgresql://127.0.0.1:1/nothing", "odd": "sqlite:////proc/none/x.db"}
    with town(written(tmp_path / "cells.toml", cells)) as here:
        for _ in range(3):
            assert here.ask("GET", "/t/down/posts")[0] == here.ask("GET", "/t/odd/posts")[0] == 503
            assert here.ask("GET", "/t/acme/posts")[0] == 200
        assert here.cells.pool.counts["failed"] == 2  # not tried again at once


def test_the_file_is_read_again_when_it_changes(new_database: NewDatabase, tmp_path: Path) -> None:
    cells = {"acme": new_database(), "globex": new_database()}
    with town(written(tmp_path / "cells.toml", cells)) as here:
        here.write("acme", "Ann")
        here.write("globex", "Bob")
        for moment, changed in enumerate(({**cells, "acme": new_database()}, {"globex": cells["globex"]}), 1):
            written(here.file, changed)
            os.utime(here.file, (moment, moment))
            here.call(here.cells._read_again)
            assert here.names("globex") == ["Bob"]
            assert here.ask("GET", "/t/acme/posts")[0] == (200 if "acme" in changed else 404)
            if "acme" in changed:
                assert here.names("acme") == []
        here.file.write_text("nonsense")
        here.call(here.cells._read_again)
        assert here.names("globex") == ["Bob"]


def test_a_cell_that_nobody_asks_for_is_visited(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    with town(written(tmp_path / "cells.toml", {"acme": new_sqlite(), "globex": new_sqlite()})) as here:
        here.cells._visits = here.cells.tenants
        for count in (1, 2, 2):
            here.runner.run(here.cells._visit())
            assert len(here.cells.pool) == count


def test_a_mail_that_waits_is_sent_although_its_cell_is_used_no_more(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    """The mail server takes it at the second attempt, after the cells of others were opened."""
    file = written(tmp_path / "cells.toml", {tenant: new_sqlite() for tenant in ("acme", "bolt", "cord")})
    with mailbox() as box, town(file, max_cells=2, smtp=box.url, mail_from="no-reply@example.com") as here:
        box.answer = lambda number: "451 later" if number == 1 else "250 OK"

        async def add() -> None:
            handler = await (await here.cells.pool.open("acme")).app.start()
            await Accounts(handler.engine.store, handler.context.revoked).add("ann@example.com", None)
            handler.oauth.account.outbox._delays = (0.3,)  # type: ignore[union-attr]  # it sends mails

        here.runner.run(add())
        assert here.ask("POST", "/t/acme/oauth/reset", body={"email": "ann@example.com"})[0] == 202
        for tenant in ("bolt", "cord"):
            assert here.ask("GET", f"/t/{tenant}/posts")[0] == 200
        here.call(here.cells.pool.close_idle, 0)
        assert here.runner.run(asyncio.to_thread(box.tried, 2, 5))
        assert [mail["To"] for mail in box.mails] == ["ann@example.com"]
