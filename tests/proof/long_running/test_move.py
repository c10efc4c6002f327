"""A move of many rows under 200 writes a second, killed again and again: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from tests.support.effort import scaled
from tests.support.running import NewDatabase, Postgres, Service, environment, make_tables, served

JSON = {"content-type": "application/json"}
ROWS = scaled(1_000_000, 2_000)
KILLS = scaled(25, 2)
RATE = 200
"""Writes a second."""


def fill(database: str) -> None:
    """Users, half of them made long ago: without changes in the feed, as after a trim."""

    async def work() -> None:
        store = connect(Config(database=database))
        await store.open(model)
        names = ["id", "version", "createdAt", "updatedAt", "name", "email"]
        moment = "2026-01-02T03:04:05.000000Z"
        rows = (
            (f"01890a5d-0000-7000-8000-{number:012x}", 1, moment, moment, f"User {number}", f"{number}@old.example")
            for number in range(ROWS)
        )
        await store.insert(model.resources["User"], names, rows)
        await store.close()

    asyncio.run(work())


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
    async def work() -> list[str]:
        store = connect(Config(database=database))
        await store.open(model)
        session = await store.session(reading=True)
        try:
            return [email for (email,) in await session.rows("SELECT email FROM users", ())]
        finally:
            await session.end()
            await store.close()

    return asyncio.run(work())


@pytest.mark.parametrize("way", ["to PostgreSQL", "to SQLite"])
def test_a_move_that_is_killed_again_and_again_loses_nothing(
    way: str, new_sqlite: NewDatabase, postgres: Postgres
) -> None:
    stores = new_sqlite(), postgres.create()
    source, target = stores if way == "to PostgreSQL" else stores[::-1]
    make_tables(source)
    fill(source)
    draw = random.Random(7)
    with served(source) as service:
        writers = Writers(service)
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
    there = emails(target)
    assert not writers.faults
    assert len(there) == len(set(there))
    assert {email for email in there if email.endswith("new.example")} == writers.emails
    assert len(there) == ROWS + len(writers.emails)
    held_up = re.search(r"waited for ([0-9.]+) seconds", said)
    assert held_up
    print(
        f"\n{way}: {len(there):,} rows, {len(writers.emails):,} written meanwhile, {kills} kills, "
        f"{time.monotonic() - begun:.0f} s in all, writers held up for {held_up[1]} s"
    )
