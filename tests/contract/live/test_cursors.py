"""Cursors of changes: what is no cursor is refused as bad input, what leads nowhere any more as a gap, and nothing can be
read from one that is good."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import secrets
import shutil
import string
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.ask.change_cursor import ChangeCursors
from diptych.demo.model import model
from diptych.errors import Refusal
from tests.contract.http import data
from tests.contract.http.data import POST
from tests.support.cases import cases
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase, Postgres

FEED = 8
"""The bytes in front of a cursor that name its feed."""
WATCH = "subscription($after: String) { postChanged(after: $after) { cursor kind rowId } }"


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, data.ROWS) as found:
        yield found


def touch(service: Service, title: str, post: str = POST[1]) -> None:
    service.execute(f"UPDATE posts SET title = '{title}' WHERE id = '{post}'")


def codes(service: Service, cursor: str) -> set[str]:
    """What is said of a cursor: by the log, to a stream, and to a browser that comes back."""
    said = {_code(service.get("/posts/changes?after=" + "".join(f"%{byte:02X}" for byte in cursor.encode())))}
    try:
        service.follow(WATCH, {"after": cursor}).close()
        said.add("fine")
    except Refusal as refusal:
        said.add(refusal.code.replace("BAD_USER_INPUT", "BAD_REQUEST"))
    if cursor and cursor.isascii() and cursor.isprintable():
        headers = {"accept": "text/event-stream", "last-event-id": cursor}
        answer = service.get("/posts/changes", headers=headers)
        said.add(_code(answer) if answer.status != 200 else "fine")
        if answer.status == 200:
            close_streams(service)
    return said


def close_streams(service: Service) -> None:
    for member in tuple(service.handler.live._members):
        member.close()


def _code(answer: Any) -> str:
    if answer.status == 200:
        return "fine"
    assert answer.status == {"BAD_REQUEST": 400, "RESUME_GAP": 410}[answer.code], answer.body
    assert answer.code == "RESUME_GAP" or answer.places in (["/query/after"], ["/header/Last-Event-ID"])
    return str(answer.code)


def test_a_cursor_that_is_good_is_good_everywhere(service: Service) -> None:
    assert codes(service, service.end_of_changes()) == {"fine"}


def test_no_character_of_a_cursor_can_be_another(service: Service) -> None:
    cursor = service.end_of_changes()
    others = string.ascii_letters + string.digits + "-_"
    for place, sign in enumerate(cursor):
        tampered = cursor[:place] + others[(others.index(sign) + 1 + place % 62) % 64] + cursor[place + 1 :]
        raw = base64.urlsafe_b64decode(tampered)
        own = raw[:FEED] == base64.urlsafe_b64decode(cursor)[:FEED]
        assert codes(service, tampered) == {"BAD_REQUEST" if own else "RESUME_GAP"}, place


def test_no_bit_behind_the_feed_can_be_another(service: Service) -> None:
    raw = base64.urlsafe_b64decode(service.end_of_changes())
    marks = service.handler.live.tail.change_cursors
    for bit in range(FEED * 8, len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="expected a cursor of changes"):
            marks.open(base64.urlsafe_b64encode(flipped).decode())


@cases("cut", [*range(0, 64, 7), 63])
def test_a_part_of_a_cursor_is_none(service: Service, cut: int) -> None:
    assert codes(service, service.end_of_changes()[:cut]) == {"BAD_REQUEST"}


@cases(
    "change",
    [
        lambda cursor: cursor + "A",
        lambda cursor: cursor + "=",
        lambda cursor: " " + cursor,
        lambda cursor: cursor + "\n",
        lambda cursor: cursor * 2,
        lambda cursor: "é" * 64,
        lambda cursor: "\u0000" * 64,
        lambda cursor: "A" * 4_000,
        lambda cursor: "null",
        lambda cursor: "[1,2]",
        lambda cursor: "%00",
        lambda cursor: "0",
        lambda cursor: cursor.replace("-", "+").replace("_", "/") + "==",
    ],
)
def test_what_only_looks_like_a_cursor_is_none(service: Service, change: Any) -> None:
    assert codes(service, change(service.end_of_changes())) <= {"BAD_REQUEST"}


def test_a_cursor_of_a_list_is_none_of_changes_nor_the_other_way_round(service: Service) -> None:
    page = service.get("/posts?first=1").json()["page"]
    assert codes(service, page["next"]) == {"BAD_REQUEST"}
    assert service.get(f"/posts?after={service.end_of_changes()}").code == "BAD_REQUEST"


def test_null_is_no_cursor_and_an_empty_one_is_wrong(service: Service) -> None:
    service.follow(WATCH, {"after": None}).close()
    assert codes(service, "") == {"BAD_REQUEST"}


def test_a_cursor_holds_for_every_resource_viewer_and_filter(service: Service) -> None:
    cursor = service.changes("/posts/changes?first=1")["page"]["next"]
    for who in (None, service.token(data.ANN), service.token(None, "admin")):
        for url in ("/users/changes", "/posts/changes?kinds=DELETED", "/comments/changes?body[contains]=x"):
            answer = service.get(f"{url}{'&' if '?' in url else '?'}after={cursor}", token=who)
            assert answer.status == 200, answer.body


@pytest.mark.parametrize("style", ["rest", "graphql"])
def test_the_cursor_of_a_read_is_after_what_was_acknowledged(service: Service, style: str) -> None:
    admin, prefer = service.token(None, "admin"), {"prefer": "change-cursor"}
    for round in range(3):
        body = f'{{"name": "{style} {round}", "email": "{style}{round}@example.com"}}'.encode()
        made = service.send("POST", "/users", headers={"content-type": "application/json"}, body=body, token=admin)
        assert made.status == 201, made.body
        read = (
            service.get("/users?first=1", headers=prefer)
            if style == "rest"
            else service.post({"query": "{ users { id } }"}, headers=prefer)
        )
        assert read.status == 200 and b"errors" not in read.body, read.body
        assert not service.changes(f"/users/changes?after={read.headers['change-cursor']}")["data"]


def test_a_cursor_of_another_database_is_a_gap(
    service: Service, runner: asyncio.Runner, new_database: NewDatabase
) -> None:
    with in_process(model, new_database(), runner, data.ROWS) as other:
        assert codes(service, other.end_of_changes()) == {"RESUME_GAP"}
        other.handler.live.tail.change_cursors = ChangeCursors(
            other.handler.engine.secret, service.handler.live.tail.head.feed
        )
        forged = other.handler.live.tail.change_cursors.seal(service.handler.live.tail.end)
    assert codes(service, forged) == {"BAD_REQUEST"}


# what is gone


def test_a_cursor_before_what_was_trimmed_is_a_gap(runner: asyncio.Runner, new_database: NewDatabase) -> None:
    with in_process(model, new_database(), runner, data.ROWS) as service:
        start = service.end_of_changes()
        cursors = [start]
        for number in range(6):
            touch(service, f"t{number}")
            cursors.append(service.end_of_changes())
        now = dt.datetime.now(dt.UTC)
        runner.run(service.app.store.trim(now - dt.timedelta(days=1), 3))  # nothing is as old, but three are enough
        assert [codes(service, cursor) for cursor in cursors] == [{"RESUME_GAP"}] * 4 + [{"fine"}] * 3
        kept = service.changes(f"/posts/changes?after={cursors[4]}&fields=title")["data"]
        assert [each["post"]["title"] for each in kept] == ["t4", "t5"]
        oldest = service.changes("/posts/changes?fields=title")["data"]
        assert [each["post"]["title"] for each in oldest] == ["t3", "t4", "t5"]
        runner.run(service.app.store.trim(now + dt.timedelta(days=1), 0))
        assert [codes(service, cursor) for cursor in cursors] == [{"RESUME_GAP"}] * 6 + [{"fine"}]


def test_the_beginning_of_an_empty_feed_is_a_place(runner: asyncio.Runner, new_database: NewDatabase) -> None:
    with in_process(model, new_database(), runner) as service:
        start = service.end_of_changes()
        assert service.changes(f"/users/changes?after={start}")["data"] == []
        runner.run(
            service.app.store.insert(
                model.resources["User"],
                ["id", "version", "createdAt", "updatedAt", "name", "email"],
                [[data.ANN, 1, data.day(1), data.day(1), "Ann", "ann@x"]],
            )
        )
        assert [each["kind"] for each in service.changes(f"/users/changes?after={start}")["data"]] == ["CREATED"]
        stream = service.follow("subscription($a: String) { userChanged(after: $a) { rowId kind } }", {"a": start})
        service.settle()
        assert stream.events == [{"rowId": data.ANN, "kind": "CREATED"}]
        for number in range(3):
            service.execute(f"UPDATE users SET name = 'a{number}'")
        service.settle()  # what has no place yet is not trimmed
        runner.run(service.app.store.trim(dt.datetime.now(dt.UTC) + dt.timedelta(days=1), 1))
        assert codes(service, start) == {"RESUME_GAP"}


# a copy of the database that goes on by itself


Copied = tuple[str, str]
"""A database, and a copy of it."""


@pytest.fixture(params=["sqlite", "postgres"])
def copied(request: pytest.FixtureRequest, new_sqlite: NewDatabase, runner: asyncio.Runner) -> tuple[str, Any]:
    """A database with rows, and how to make a copy of it."""
    if request.param == "sqlite":
        url = new_sqlite()

        def copy() -> str:
            path = url.removeprefix("sqlite:///")
            shutil.copy(path, path + ".copy")
            assert not Path(path + "-wal").exists()
            return url + ".copy"

        return url, copy
    server: Postgres = request.getfixturevalue("postgres")
    url = server.create()
    name = url.partition("?")[0].rpartition("/")[2]

    def copy_postgres() -> str:
        server.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
        return server.url(f"{name}_copy")

    return url, copy_postgres


def went_on(runner: asyncio.Runner, copied: Any) -> tuple[str, str, str, str]:
    """Where the copy is; a cursor from before it was made, and two of what the original did after."""
    url, copy = copied
    with in_process(model, url, runner, data.ROWS) as service:
        touch(service, "before")
        before = service.end_of_changes()
    other = copy()
    with in_process(model, url, runner) as service:
        touch(service, "original 1")
        first = service.end_of_changes()
        touch(service, "original 2")
        return other, before, first, service.end_of_changes()


def test_a_restored_copy_says_that_there_is_a_gap_and_never_hides_one(runner: asyncio.Runner, copied: Any) -> None:
    other, before, first, second = went_on(runner, copied)
    with in_process(model, other, runner) as service:
        assert codes(service, before) == {"fine"}
        for number in range(4):  # behind the cursors, at their places, and beyond them
            assert codes(service, first) == codes(service, second) == {"RESUME_GAP"}, number
            touch(service, f"copy {number}")
        told = service.changes(f"/posts/changes?fields=title&after={before}")["data"]
        assert [each["post"]["title"] for each in told] == [f"copy {number}" for number in range(4)]


def test_without_marks_a_copy_would_hide_what_it_did(
    runner: asyncio.Runner, new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same check with the fault planted: the mark of a place is whatever a cursor says."""
    url = new_sqlite()
    path = url.removeprefix("sqlite:///")
    other, _, first, _ = went_on(runner, (url, lambda: url + Path(shutil.copy(path, path + ".copy")).suffix))
    with in_process(model, other, runner) as service:
        touch(service, "copy")
        place = service.handler.live.tail.change_cursors.open(first)
        monkeypatch.setattr("diptych.live.service.mark_at", _mark(place.mark))
        assert codes(service, first) == {"fine"}


def _mark(mark: int) -> Any:
    async def mark_at(store: Any, position: int) -> int:
        return mark

    return mark_at


# what a cursor tells


def told_by(cursors: list[str], positions: list[int]) -> list[str]:
    """What can be read from cursors of these positions."""
    raw = [base64.urlsafe_b64decode(cursor)[FEED:] for cursor in cursors]
    found = []
    if len(set(raw)) < len(raw):
        found.append("whether nothing happened between two")
    if any(
        struct.pack(">q", position)[-2:] * 2 in each or struct.pack(">q", position) in each
        for each, position in zip(raw, positions, strict=True)
    ):
        found.append("the position")
    if sorted(raw) == raw:
        found.append("their order")
    columns = [len({each[place] for each in raw}) for place in range(len(raw[0]))]
    if min(columns) < len(raw) / 4:
        found.append("some byte that hardly changes")
    return found


def made(service: Service) -> tuple[list[str], list[int]]:
    cursors, positions = [], []
    for number in range(40):
        if number % 4 == 0:
            touch(service, f"x{number}")
        cursors.append(service.end_of_changes())
        positions.append(service.handler.live.tail.head.position)
    return cursors, positions


def test_nothing_can_be_read_from_cursors(service: Service) -> None:
    assert told_by(*made(service)) == []


def test_with_the_same_nonce_again_they_would_tell(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check with the fault planted."""
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert "whether nothing happened between two" in told_by(*made(service))
