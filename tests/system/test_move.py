"""`diptych move`: from one store to the other and back, of a service that is being written to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from tests.support.running import Client, NewDatabase, Postgres, diptych, make_tables, served

JSON = {"content-type": "application/json"}


@pytest.fixture(params=["to PostgreSQL", "to SQLite"])
def way(request: pytest.FixtureRequest, new_sqlite: NewDatabase, postgres: Postgres) -> tuple[str, str]:
    """A source with tables, and an empty target of the other store."""
    stores = new_sqlite(), postgres.create()
    source, target = stores if request.param == "to PostgreSQL" else stores[::-1]
    return make_tables(source), target


def move(source: str, target: str, *more: str) -> str:
    done = diptych("move", source, target, *more)
    assert (done.returncode, done.stdout) == (0, ""), done
    return done.stderr


def refusal(source: str, target: str, *more: str) -> str:
    done = diptych("move", source, target, *more)
    assert (done.returncode, done.stdout) == (2, ""), done
    return done.stderr


class Writer:
    """Writes users one after the other, and remembers what was acknowledged."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.emails: set[str] = set()
        self.statuses: set[int] = set()
        self._end = threading.Event()

    def write(self) -> None:
        for number in range(5_000):
            if self._end.is_set():
                return
            email = f"{number}@example.org"
            status, body = create(self.client, email)
            self.statuses.add(status)
            if status == 201:
                self.emails.add(email)
                if number % 3 == 0:
                    patch = msgspec.json.encode({"name": f"Zoe {number}"})
                    self.client.request("PATCH", f"/users/{body['id']}", JSON, patch)
                if number % 7 == 0 and self.client.request("DELETE", f"/users/{body['id']}", {}, b"").status == 204:
                    self.emails.discard(email)

    @contextmanager
    def writing(self) -> Iterator[None]:
        thread = threading.Thread(target=self.write)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()


def create(client: Client, email: str) -> tuple[int, Any]:
    answer = client.request("POST", "/users", JSON, msgspec.json.encode({"name": "Zoe", "email": email}))
    return answer.status, answer.json()


def all_rows(client: Client, path: str) -> list[dict[str, Any]]:
    rows, page = [], client.get(f"{path}?first=100").json()
    while True:
        rows += page["data"]
        if page["page"]["next"] is None:
            return rows
        page = client.get(f"{path}?first=100&after={page['page']['next']}").json()


def test_a_service_under_writes_moves_and_nothing_is_lost_or_doubled(way: tuple[str, str]) -> None:
    source, target = way
    with served(source) as service:
        admin = service.token_of("admin")
        _, first = create(admin, "first@example.org")
        create(admin, "second@example.org")
        tag = admin.get(f"/users/{first['id']}").headers["etag"]
        page = admin.get("/users?first=1").json()["page"]
        cursor = admin.get("/users/changes?first=1").json()["data"][0]["cursor"]
        writer = Writer(admin)
        with writer.writing():
            time.sleep(0.3)
            said = move(source, target)
            assert create(admin, "late@example.org")[0] == 503
        assert writer.statuses <= {201, 503}, writer.statuses
        assert "Start your services with the target now." in said
        before = all_rows(admin, "/users")
        events = admin.get("/users/changes?first=100").json()["data"]
        token = admin.token
    with served(target) as service:
        admin = service.signed_in(token)
        rows = all_rows(admin, "/users")
        assert rows == before
        assert {row["email"] for row in rows} == writer.emails | {"first@example.org", "second@example.org"}
        assert admin.get(f"/users/{first['id']}").headers["etag"] == tag
        assert admin.request("GET", f"/users/{first['id']}", {"if-none-match": tag}, b"").status == 304
        assert admin.get(f"/users?first=1&after={page['next']}").json()["data"] == [rows[1]]
        _same_events(admin.get("/users/changes?first=100").json()["data"], events)
        resumed = admin.get(f"/users/changes?after={cursor}&first=99").json()["data"]
        _same_events(resumed, events[1:])
        assert create(admin, "new@example.org")[0] == 201
        assert create(admin, "new@example.org")[0] == 409
        assert admin.request("DELETE", f"/users/{first['id']}", {}, b"").status == 204
    assert "moved to" in diptych("serve", "--database", source, "--port", "0").stderr


def _same_events(these: list[dict[str, Any]], those: list[dict[str, Any]]) -> None:
    """Cursors are sealed anew each time."""
    assert [{**event, "cursor": ""} for event in these] == [{**event, "cursor": ""} for event in those]


def test_answers_under_an_idempotency_key_go_along(way: tuple[str, str]) -> None:
    source, target = way
    body, key = msgspec.json.encode({"name": "Zoe", "email": "once@example.org"}), {**JSON, "idempotency-key": '"one"'}
    with served(source) as service:
        admin = service.token_of("admin")
        answer = admin.request("POST", "/users", key, body)
        assert answer.status == 201
        move(source, target)
        token = admin.token
    with served(target) as service:
        again = service.signed_in(token).request("POST", "/users", key, body)
        assert (again.status, again.json()) == (201, answer.json())


def test_without_a_switch_the_source_goes_on_and_the_next_run_brings_the_rest(way: tuple[str, str]) -> None:
    source, target = way
    with served(source) as service:
        admin = service.token_of("admin")
        create(admin, "1@example.org")
        assert "Moved 1 rows" in move(source, target, "--no-switch")
        assert "not finished" in diptych("serve", "--database", target, "--port", "0").stderr
        assert create(admin, "2@example.org")[0] == 201
        assert "Moved 2 rows" in move(source, target)
        assert create(admin, "3@example.org")[0] == 503
        assert len(all_rows(admin, "/users")) == 2
        token = admin.token
    with served(target) as service:
        assert len(all_rows(service.signed_in(token), "/users")) == 2


def test_a_dry_run_changes_nothing(way: tuple[str, str]) -> None:
    source, target = way
    assert move(source, target, "--dry-run") == "All 0 rows can be moved. Nothing was changed.\n"
    with served(source) as service:
        assert create(service.token_of("admin"), "1@example.org")[0] == 201


def test_what_cannot_be_moved_is_said(way: tuple[str, str], new_sqlite: NewDatabase) -> None:
    source, target = way
    assert refusal(source, source) == "The source and the target are the same database.\n"
    other = make_tables(new_sqlite())
    with served(other) as service:
        create(service.token_of("admin"), "1@example.org")
    assert refusal(source, other) == f"{other} is not empty; a move needs a database of its own.\n"
    move(source, target)
    assert "moved to" in refusal(source, make_tables(new_sqlite()))
