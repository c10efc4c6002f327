"""A move of many rows under 200 writes a second, killed again and again: nothing is lost or doubled."""

from __future__ import annotations

import hashlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from diptych.model.scalars import DATETIME
from tests.support.effort import scaled
from tests.support.existing import run_sql
from tests.support.running import Client, NewDatabase, Postgres, Service, environment, make_tables, served

JSON = {"content-type": "application/json"}
ROWS = scaled(1_000_000, 2_000)
KILLS = scaled(25, 1)
RATE = 200
"""Writes a second."""
KEPT = ("--feed-rows", "10000000")
"""So that no change is trimmed meanwhile."""
SAMPLE = 50
"""Rows whose ETags are compared."""


_FILL = {
    "sqlite": """INSERT INTO users (id, name, email) WITH RECURSIVE n (i) AS (
        SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})
      SELECT printf('01890a5d-0000-7000-8000-%012x', i), 'User ' || i, i || '@old.example' FROM n""",
    "postgresql": """INSERT INTO users (id, name, email)
      SELECT ('01890a5d-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'User ' || i, i || '@old.example'
      FROM generate_series(0, {last}) AS n (i)""",
}


def fill(database: str) -> None:
    """Users, each with a change in the feed."""
    run_sql(database, _FILL[database.partition(":")[0]].format(last=ROWS - 1))


def digest(database: str) -> str:
    """Of all users, whatever the store."""
    moment = "created_at" if database.startswith("sqlite") else DATETIME.postgres_out.format("created_at")
    query = f"SELECT CAST(id AS text), version, {moment}, name, email FROM users ORDER BY id"
    made = hashlib.sha256()
    for row in run_sql(database, query):
        made.update(repr(tuple(row)).encode())
    return made.hexdigest()


class Held:
    """What clients got before the move: ETags, cursors of lists and of changes."""

    def __init__(self, client: Client) -> None:
        self.tags = {}
        page = client.get(f"/users?first={SAMPLE}&fields=id").json()
        for row in page["data"]:
            self.tags[row["id"]] = client.get(f"/users/{row['id']}").headers["etag"]
        self.after = page["page"]["next"]
        self.next_ids = [row["id"] for row in client.get(f"/users?first=5&after={self.after}&fields=id").json()["data"]]
        changes = client.get("/users/changes?first=20").json()["data"]
        self.cursors = [change["cursor"] for change in changes]
        self.changed = [change["rowId"] for change in changes]

    def check(self, client: Client) -> None:
        """All of it is good at the new place."""
        for key, tag in self.tags.items():
            assert client.get(f"/users/{key}").headers["etag"] == tag
            assert client.request("GET", f"/users/{key}", {"if-none-match": tag}).status == 304
        after = client.get(f"/users?first=5&after={self.after}&fields=id").json()["data"]
        assert [row["id"] for row in after] == self.next_ids
        for number, cursor in enumerate(self.cursors[:-1]):
            (change,) = client.get(f"/users/changes?first=1&after={cursor}").json()["data"]
            assert change["rowId"] == self.changed[number + 1]


class Writers:
    """Four threads that write at a rate, and remember what was acknowledged."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = service.token_of("admin")
        self.emails: set[str] = set()
        self.faults: list[str] = []
        self.longest = 0.0
        """Seconds between two writes of a thread that were acknowledged."""
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(4)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _write(self, thread: int) -> None:
        number, last = 0, time.monotonic()
        while not self._end.wait(len(self._threads) / RATE):
            email = f"{thread}-{number}@new.example"
            body = msgspec.json.encode({"name": "Zoe", "email": email})
            answer = self.client.request("POST", "/users", JSON, body)
            if answer.status == 401:  # it has expired
                self.client = self.service.token_of("admin")
                continue
            if answer.status == 201:
                self.emails.add(email)
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
            elif answer.status == 503:
                if "moved" in answer.json()["detail"]:
                    return
            else:
                self.faults.append(f"{answer.status} {answer.body[:200]!r}")
            number += 1


def moving(source: str, target: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "diptych", "move", source, target],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )


def emails(database: str) -> list[str]:
    return [str(email) for (email,) in run_sql(database, "SELECT email FROM users")]


@pytest.mark.parametrize("way", ["to PostgreSQL", "to SQLite"])
def test_a_move_that_is_killed_again_and_again_loses_nothing(
    way: str, new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    stores = new_sqlite(), postgres.create()
    source, target = stores if way == "to PostgreSQL" else stores[::-1]
    make_tables(source)
    fill(source)
    draw = random.Random(7)
    with served(source, *KEPT) as service:
        writers = Writers(service)
        held = Held(writers.client)
        writers.start()
        try:
            begun, kills = time.monotonic(), 0
            while True:
                process = moving(source, target)
                patience = draw.uniform(0.4, 12.0 if ROWS > 100_000 else 3.0) if kills < KILLS else 3_000
                try:
                    _, said = process.communicate(timeout=patience)
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    kills += 1
        finally:
            writers.stop()
        assert process.returncode == 0, said
        print(f"\n{way}, {kills} kills, {time.monotonic() - begun:.0f} s in all: {said}")
    assert digest(source) == digest(target)
    with served(target, *KEPT) as service:
        held.check(service.token_of("admin"))
    there = emails(target)
    assert not writers.faults
    assert len(there) == len(set(there))
    assert {email for email in there if email.endswith("new.example")} == writers.emails
    assert len(there) == ROWS + len(writers.emails)
    held_up = re.search(r"waited for ([0-9.]+) seconds", said)
    assert float(held_up[1]) < 2 if held_up else "The switch was made before" in said
