"""`diptych serve --cells`: a process with a database for each tenant, and a tenant that moves while it is served."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from tests.support.running import Client, NewDatabase, Postgres, Service, diptych, running

ADDRESS = "http://127.0.0.1:8000/t/{tenant}"


@pytest.fixture
def file(tmp_path: Path, new_sqlite: NewDatabase) -> Path:
    path = tmp_path / "cells.toml"
    cells = "".join(f'{tenant} = "{new_sqlite()}"\n' for tenant in ("acme", "globex"))
    path.write_text(f'address = "{ADDRESS}"\n\n[cells]\n{cells}')
    return path


def admin(service: Service, file: Path, tenant: str) -> Client:
    """An admin of a tenant, by a token that the command line makes for its database."""
    assert service.get(f"/t/{tenant}/health/ready").status == 200
    (database,) = [line.split('"')[1] for line in file.read_text().splitlines() if line.startswith(f"{tenant} =")]
    made = diptych("token", "--database", database, "--role", "admin", "--ttl", "3600")
    assert made.returncode == 0, made.stderr
    return Client(service.url, made.stdout.strip())


def emails(client: Client, tenant: str) -> list[str]:
    page = client.get(f"/t/{tenant}/users?first=100&fields=email").json()
    return [row["email"] for row in page["data"]]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_tenants_are_served_apart(workers: str, file: Path, new_sqlite: NewDatabase) -> None:
    with running("serve", "--cells", str(file), "--workers", workers, database=new_sqlite()) as service:
        assert "Cells    those of" in service.out.text
        acme, globex = (admin(service, file, tenant) for tenant in ("acme", "globex"))
        assert acme.post("/t/acme/users", {"name": "Ann", "email": "ann@example.com"}).status == 201
        assert (emails(acme, "acme"), emails(globex, "globex")) == (["ann@example.com"], [])
        assert globex.get("/t/acme/users").status == 401
        assert service.get("/users").status == service.get("/t/nobody/users").status == 404
        metadata = service.get("/.well-known/oauth-authorization-server/t/acme").json()
        assert metadata["issuer"] == "http://127.0.0.1:8000/t/acme"
        added = diptych("cells", "add", "initech", new_sqlite(), "--cells", str(file))
        assert added.returncode == 0, added.stderr
        end = time.monotonic() + 30
        while service.get("/t/initech/posts").status != 200:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_what_the_commands_say(file: Path, tmp_path: Path) -> None:
    listed = diptych("cells", "list", "--cells", str(file))
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["acme", "globex"]
    assert "not there yet" in listed.stdout
    secret = 'initech = "postgresql://me:secret@db.example.com/initech"\n'
    file.write_text(file.read_text() + secret)
    assert "secret" not in diptych("cells", "list", "--cells", str(file)).stdout
    for arguments, sentence in (
        (("add", "acme", "sqlite:///x.db"), "has the tenant acme already"),
        (("add", "Nobody!", "sqlite:///x.db"), "is no name of a tenant"),
        (("move", "nobody", "sqlite:///x.db"), "has no tenant nobody"),
    ):
        refused = diptych("cells", *arguments, "--cells", str(file))
        assert (refused.returncode, sentence in refused.stderr) == (2, True), refused
    assert diptych("cells", "list").stderr == "There is no cells file: --cells FILE names one.\n"
    assert file.read_text().endswith(secret)


def test_a_tenant_moves_while_it_is_served(file: Path, new_sqlite: NewDatabase, postgres: Postgres) -> None:
    """Nothing that was acknowledged is lost, and neither tokens nor clients change."""
    target = postgres.create()
    with running("serve", "--cells", str(file), database=new_sqlite(), noise="moved") as service:
        acme, globex = (admin(service, file, tenant) for tenant in ("acme", "globex"))
        stop, kept, others = threading.Event(), [], []

        def write() -> None:
            number = 0
            while not stop.wait(0.01):
                number += 1
                user = {"name": "Ann", "email": f"{number}@example.com"}
                answer = acme.post("/t/acme/users", user)
                assert answer.status in (201, 503), answer
                if answer.status == 201:
                    kept.append(user["email"])
                others.append(globex.get("/t/globex/posts").status)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            moved = diptych("cells", "move", "acme", target, "--cells", str(file))
            assert moved.returncode == 0, moved.stderr
            assert json.dumps(target) in file.read_text()
            count, end = len(kept), time.monotonic() + 30
            while len(kept) < count + 5:
                assert time.monotonic() < end and writer.is_alive()
                time.sleep(0.1)
        finally:
            stop.set()
            writer.join()
        assert set(others) == {200}
        found, after = [], ""
        while True:
            page = acme.get(f"/t/acme/users?first=100&fields=email{after}").json()
            found += [row["email"] for row in page["data"]]
            if page["page"]["next"] is None:
                break
            after = f"&after={page['page']['next']}"
        assert len(found) == len(set(found))
        assert set(kept) <= set(found)
