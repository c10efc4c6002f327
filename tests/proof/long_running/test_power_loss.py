"""Nothing that was acknowledged is lost when the power fails (SQLite).

Sixteen clients write through both styles: creates, updates, deletes, nested writes. The files are recorded, and
crash images of random moments are opened by plain SQLite: they are sound, have every acknowledged change as a whole,
and an entry of the feed for it. With `synchronous=NORMAL` the same check must fail: it is known to lose commits.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import diptych.db.sqlite.connection as connection
from diptych import testing
from diptych.demo.model import model
from tests.proof.long_running.parts import tell
from tests.proof.long_running.power_loss import Acknowledged, Event, Image, Recorder, count_faults, crash_images
from tests.support.effort import scaled

CLIENTS = 16
WRITES = scaled(3_000, 160)
IMAGES = scaled(2_000, 50)
ORDERS = 3
SEED = 20
CHECKPOINT = 100
"""Pages of the write-ahead log after which it is copied into the database: a tenth of the default, for more of them."""
MAY_GO, GONE = -1, -2
"""Instead of the turn of the last change: the row is being deleted, and it was."""


class Writer(threading.Thread):
    """Creates users with orders, changes and deletes them; each change is acknowledged in the recording."""

    def __init__(self, number: int, api: testing.Api, recorder: Recorder) -> None:
        super().__init__()
        self.client = api.as_("admin")
        self.number = number
        self.recorder = recorder
        self.dice = random.Random(number)
        self.ids: list[str] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for turn in range(WRITES // CLIENTS):
                self._write(turn)
        except BaseException as error:
            self.error = error

    def _write(self, turn: int) -> None:
        roll = self.dice.random()
        if not self.ids or roll < 0.5:
            user: dict[str, Any] = {"name": f"{turn}", "email": f"w{self.number}-{turn}@example.org"}
            if roll < 0.25:
                user["orders"] = {"create": [{"total": f"{number}"} for number in range(ORDERS)]}
            row = self.client.post("/users?fields=id", user).expect(201).json()
            self.ids.append(row["id"])
            self._acknowledge(row["id"], turn)
        elif roll < 0.9:
            user_id = self.dice.choice(self.ids)
            query = "mutation($id: ID!, $patch: UserPatch!) { updateUser(id: $id, patch: $patch) { id } }"
            assert self.client.graphql(query, {"id": user_id, "patch": {"name": f"{turn}"}}).data
            self._acknowledge(user_id, turn)
        else:
            user_id = self.ids.pop(self.dice.randrange(len(self.ids)))
            self._acknowledge(user_id, MAY_GO)
            if self.client.delete(f"/users/{user_id}").status == 204:  # one with orders stays
                self._acknowledge(user_id, GONE)

    def _acknowledge(self, user_id: str, turn: int) -> None:
        self.recorder.add(Acknowledged((user_id, turn)))


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, synchronous: str) -> list[Event]:
    """The events of some writes, with many checkpoints of the write-ahead log."""
    pragmas = [pragma for pragma in connection._PRAGMAS if not pragma.startswith("synchronous")]
    assert len(pragmas) == len(connection._PRAGMAS) - 1
    more = (f"synchronous={synchronous}", f"wal_autocheckpoint={CHECKPOINT}")
    monkeypatch.setattr(connection, "_PRAGMAS", (*pragmas, *more))
    recorder = Recorder(folder)
    try:
        with testing.serve(model, database=f"sqlite:///{folder / 'data.db'}") as api:
            writers = [Writer(number, api, recorder) for number in range(CLIENTS)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            for error in (writer.error for writer in writers if writer.error is not None):
                raise error
    finally:
        recorder.unregister()
    return recorder.events


def faults(image: Image, folder: Path) -> list[str]:
    """What is wrong in an image."""
    image.write_to(folder)
    try:
        return [*_faults(image, folder / "data.db")]
    except apsw.SQLError:  # no such table
        return ["acknowledged changes are lost"]
    except apsw.Error as error:
        return [f"it cannot be read: {error}"]


def _faults(image: Image, path: Path) -> Iterator[str]:
    if not path.exists():
        yield from ["everything is lost"] * bool(image.acknowledged)
        return
    db = apsw.Connection(str(path))
    try:
        state = db.execute("PRAGMA integrity_check").get
        if state != "ok":
            yield f"corrupt: {state}"
        elif image.acknowledged:
            yield from _losses(image, db)
    finally:
        db.close()


def _losses(image: Image, db: apsw.Connection) -> Iterator[str]:
    rows = {user_id: int(name) for user_id, name in db.execute("SELECT id, name FROM users")}
    lost = sum(is_lost(user_id, turn, rows) for user_id, turn in dict(image.acknowledged).items())
    logged = {row_id for (row_id,) in db.execute("SELECT DISTINCT row_id FROM diptych_feed WHERE resource = 'users'")}
    groups = "SELECT count(*) AS n FROM orders GROUP BY customer_id"
    parts = db.execute(f"SELECT count(*) FROM ({groups}) WHERE n <> ?", (ORDERS,)).get
    if lost:
        yield f"{lost} acknowledged changes are lost"
    if parts:
        yield f"{parts} nested writes are there in part"
    if rows.keys() - logged:
        yield "a row has no entry in the feed"
    if db.execute("PRAGMA foreign_key_check").fetchall():
        yield "a reference leads nowhere"


def is_lost(user_id: str, turn: int, rows: dict[str, int]) -> bool:
    """Is a row older than its last acknowledged change? It may be newer: by a change that was under way."""
    if turn in (MAY_GO, GONE):
        return turn == GONE and user_id in rows
    return rows.get(user_id, -1) < turn


def test_no_acknowledged_change_is_lost_and_nothing_is_corrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "synchronous=FULL" in connection._PRAGMAS
    events = record(tmp_path, monkeypatch, "FULL")
    found = count_faults(crash_images(events, IMAGES, random.Random(SEED)), faults, tmp_path)
    tell(f"power loss: {IMAGES} images of {len(events)} events, faults: {dict(found)}")
    assert not found
    assert any(isinstance(event, Acknowledged) and event.what[1] == GONE for event in events)


def test_the_check_sees_what_normal_synchronisation_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = record(tmp_path, monkeypatch, "NORMAL")
    found = count_faults(crash_images(events, IMAGES, random.Random(SEED)), faults, tmp_path)
    tell(f"power loss, synchronous=NORMAL: {IMAGES} images, faults: {dict(found)}")
    assert sum(count for fault, count in found.items() if "are lost" in fault) > IMAGES / 4
