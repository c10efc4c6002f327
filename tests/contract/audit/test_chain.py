"""The audit log is a chain: what is changed, deleted or cut off in it is found, and named."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from diptych.audit import log
from diptych.audit.appender import Appender
from diptych.audit.log import AuditHead, Broken, Chosen, audit_head, exported, verify
from diptych.db.postgres import sessions
from diptych.db.store import Session
from diptych.live.retention import Retention
from tests.contract.audit.audited_model import ANN, BOB, MODEL, entries, serving
from tests.support.in_process import Service

NASTY = 'ü"\\ \u2028 \U0001f600 \x7f </script>'


def write(service: Service, count: int = 6) -> str:
    token = service.token(ANN)
    made = service.send_json("POST", "/posts", {"authorId": ANN, "title": NASTY}, token)
    assert made.status == 201, made.body
    row: str = made.json()["id"]
    for number in range(count - 1):
        assert service.send_json("PATCH", f"/posts/{row}", {"title": f"t{number}"}, token).status == 200
    assert len(entries(service)) >= count
    return row


def verified(service: Service, kept: tuple[int, str] | None = None) -> tuple[int, Broken | None]:
    return service.runner.run(verify(service.app.store, kept))


def head(service: Service) -> AuditHead:
    return service.runner.run(audit_head(service.app.store))


def lines(service: Service, **chosen: Any) -> list[str]:
    async def read() -> list[str]:
        return [line async for line in exported(service.app.store, Chosen(**chosen))]

    return service.runner.run(read())


def test_a_chain_that_nobody_touched_is_right(database: str) -> None:
    with serving(database) as service:
        assert verified(service) == (0, None)
        write(service)
        assert verified(service) == (6, None)
        kept = head(service)
        write(service, 2)
        assert verified(service, (kept.entry, kept.hash)) == (8, None)


def test_a_change_that_is_appended_meanwhile_breaks_no_chain(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(database) as service:
        write(service)
        read, pending = log._head, [True]

        async def read_and_change(session: Session) -> AuditHead:
            found = await read(session)
            if pending:
                pending.clear()
                await service.execute_soon("UPDATE posts SET title = 'meanwhile'")
                assert await Appender(service.app.store, MODEL).append() == 1
            return found

        monkeypatch.setattr(log, "_head", read_and_change)
        assert verified(service) == (6, None)
        assert verified(service) == (7, None)


def test_the_lines_of_an_export_verify_by_themselves(database: str) -> None:
    with serving(database) as service:
        write(service)
        before = ""
        for line in lines(service):
            bare, _, rest = line.rpartition(',"hash":"')
            before = hashlib.sha256(f"{before}\n{bare}".encode()).hexdigest()
            assert rest == before + '"}' and "\n" not in line
        assert before == head(service).hash
        assert json.loads(lines(service)[0])["new"]["title"] == NASTY


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE diptych_audit SET act = replace(CAST(act AS text), 'rest', 'batch'){json} WHERE entry = 3", 3),
        ("UPDATE diptych_audit SET new = replace(CAST(new AS text), 't1', 't9'){json} WHERE entry = 3", 3),
        ("UPDATE diptych_audit SET row_id = 'x' WHERE entry = 2", 2),
        ("UPDATE diptych_audit SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE entry = 6", 6),
        ("DELETE FROM diptych_audit WHERE entry = 4", 4),
        ("DELETE FROM diptych_audit WHERE entry = 1", 1),
        ("DELETE FROM diptych_audit WHERE entry >= 5", 5),
        ("INSERT INTO diptych_audit SELECT 7, position, at, resource, row_id, version, old, new, act, masked, origin, hash "
        "FROM diptych_audit WHERE entry = 6", 7),
    ],
)  # fmt: skip
def test_the_first_entry_that_is_wrong_is_named(statement: str, entry: int, database: str) -> None:
    json_cast = "" if database.startswith("sqlite") else "::json"
    with serving(database) as service:
        write(service)
        text = statement.replace("{json}", json_cast)
        if json_cast:
            text = text.replace("= replace(CAST(", "= (replace(CAST(").replace("')::json", "'))::json")
        service.execute(text)
        right, broken = verified(service)
        assert broken is not None and (broken.entry, right) == (entry, entry - 1)


def test_a_head_that_is_kept_elsewhere_finds_a_tail_that_was_cut_off_with_its_head(database: str) -> None:
    with serving(database) as service:
        write(service)
        kept = head(service)
        service.execute("DELETE FROM diptych_audit WHERE entry > 4")
        service.execute(
            "UPDATE diptych_audit_head SET entry = 4, hash = (SELECT hash FROM diptych_audit WHERE entry = 4)"
        )
        assert verified(service) == (4, None)
        _, broken = verified(service, (kept.entry, kept.hash))
        assert broken is not None and broken.entry == 5
        _, broken = verified(service, (3, "0" * 64))
        assert broken is not None and broken.entry == 3


def test_the_log_has_a_retention_of_its_own_and_the_rest_of_the_chain_holds(database: str) -> None:
    with serving(database) as service:
        row = write(service)
        old = (datetime.now(UTC) - timedelta(days=3)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        service.execute(f"UPDATE diptych_audit SET at = '{old}' WHERE entry <= 3")
        appender = Appender(service.app.store, MODEL, keep=86_400.0)
        assert service.runner.run(appender.trim()) == 3
        assert service.runner.run(appender.trim()) == 0
        assert verified(service) == (3, None)
        assert [json.loads(line)["entry"] for line in lines(service)] == [4, 5, 6]
        assert [v["id"] for v in service.rows(f"/posts/{row}/history", token=service.token(ANN))] == ["6", "5", "4"]


def test_a_head_that_is_kept_elsewhere_finds_a_log_that_begins_after_it(database: str) -> None:
    """Someone removes entries, has the log begin behind them, and makes all hashes anew."""
    with serving(database) as service:
        write(service)
        kept = head(service)
        write(service, 2)
        last = head(service)
        service.execute("DELETE FROM diptych_audit WHERE entry <= 7")
        service.execute("UPDATE diptych_audit SET act = NULL")
        forged = hashlib.sha256(f"\n{lines(service)[0].rpartition(',')[0]}".encode()).hexdigest()
        service.execute(f"UPDATE diptych_audit SET hash = '{forged}'")
        service.execute(f"UPDATE diptych_audit_head SET first = 8, first_hash = '', hash = '{forged}'")
        assert verified(service) == (1, None)
        _, broken = verified(service, (kept.entry, kept.hash))
        assert broken == Broken(6, "it is no longer kept: the log begins with entry 8")
        _, broken = verified(service, (7, "0" * 64))
        assert broken == Broken(7, f"its hash was {'0' * 64}")
        assert verified(service, (last.entry, last.hash))[1] == Broken(8, f"its hash was {last.hash}")
        assert verified(service, (0, "")) == (1, None), "the head of a log that was empty"


def test_nothing_is_trimmed_from_the_feed_before_it_is_in_the_log(database: str) -> None:
    with serving(database) as service:
        store = service.app.store
        token = service.token(ANN)
        for title in "abc":
            service.send_json("POST", "/posts", {"authorId": ANN, "title": title}, token)

        async def trims(appender: Appender) -> int:
            return await Retention(store, -60.0, 1, (), appender).trim()

        class Stuck(Appender):
            async def append(self) -> int:
                return 0

        assert service.runner.run(trims(Stuck(store, MODEL))) == 0
        assert service.runner.run(trims(Appender(store, MODEL))) == 4  # two authors, and all posts but the newest
        assert [entry["new"]["title"] for entry in entries(service)] == ["a", "b", "c"]


def test_two_processes_that_append_at_once_make_one_chain(database: str) -> None:
    with serving(database) as service:
        token = service.token(ANN)
        rows = [{"authorId": ANN, "title": f"{number}"} for number in range(100)]
        for _ in range(7):
            assert service.send_json("POST", "/posts", rows, token).status == 201

        async def race() -> None:
            await asyncio.gather(*(Appender(service.app.store, MODEL).append() for _ in range(4)))

        service.runner.run(race())
        assert verified(service) == (700, None)
        assert len({json.loads(line)["position"] for line in lines(service)}) == 700


def test_an_export_waits_for_a_slow_reader(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = sessions.session_settings
    monkeypatch.setattr(
        sessions, "session_settings", lambda given: settings(given) | {"idle_in_transaction_session_timeout": "300"}
    )
    monkeypatch.setattr(log, "_AT_A_TIME", 3)

    async def read(service: Service) -> int:
        count = 0
        async for _ in exported(service.app.store, Chosen()):
            count += 1
            await asyncio.sleep(0.4)
        return count

    with serving(database) as service:
        write(service)
        assert service.runner.run(read(service)) == 6


def test_an_export_chooses_by_resource_row_and_time(database: str) -> None:
    with serving(database) as service:
        row = write(service, 2)
        service.send_json("POST", "/posts", {"authorId": BOB, "title": "b"}, service.token(BOB))
        assert len(entries(service)) == 3
        assert len(lines(service, row=row)) == 2
        assert lines(service, resource="invoices") == []
        now = datetime.now(UTC)

        async def count(chosen: Chosen) -> int:
            return len([line async for line in exported(service.app.store, chosen)])

        run = service.runner.run
        assert run(count(Chosen(since=now - timedelta(hours=1), until=now + timedelta(hours=1)))) == 3
        assert run(count(Chosen(since=now + timedelta(hours=1)))) == 0
        assert run(count(Chosen(until=now - timedelta(hours=1)))) == 0
