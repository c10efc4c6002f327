"""Changes that are older than a column: nothing that is never null is null, and nothing hidden is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych import Model, Resource, Viewer, allow, computed, grant, not_
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

OPEN, CLOSED = (f"00000000-0000-7000-8000-00000000000{n}" for n in (1, 2))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def before() -> Model:
    class Memo(Resource):
        title: str
        secret: bool
        number: str
        access = (grant("create", "update", "delete"),)

        @allow("read")
        def is_open(self, viewer: Viewer) -> bool:
            return not_(self.secret)

    return Model(Memo)


def after(extra: bool) -> Model:
    """The same when `title` and `secret` were renamed, `number` has another type, and `rank` was added."""

    class Memo(Resource):
        headline: str
        hidden: bool
        number: int
        rank: int
        maybe: str | None = None
        level: int = 3
        access = (grant("create", "update", "delete"), *((grant("read"),) if extra else ()))

        @allow("read")
        def is_open(self, viewer: Viewer) -> bool:
            return not_(self.hidden)

    return Model(Memo)


def migrate(service: Service) -> None:
    """Change the table by hand, in a database that has no record of what its columns held."""
    sqlite = service.app.store.dialect.name == "sqlite"
    for row, secret in ((OPEN, "false"), (CLOSED, "true")):
        service.execute(f"INSERT INTO memos (id, title, secret, number) VALUES ('{row}', 'a', {secret}, 'one')")
        service.execute(f"UPDATE memos SET title = 'b', number = '1' WHERE id = '{row}'")
    for change in (
        "RENAME COLUMN title TO headline",
        "RENAME COLUMN secret TO hidden",
        *(() if sqlite else ("ALTER COLUMN number TYPE integer USING number::integer",)),
        "ADD COLUMN rank INTEGER NOT NULL DEFAULT 7",
        "ADD COLUMN maybe " + ("TEXT" if sqlite else 'text COLLATE "C"'),
        "ADD COLUMN level INTEGER NOT NULL DEFAULT 3",
    ):
        service.execute(f"ALTER TABLE memos {change}")
    service.execute("DELETE FROM diptych_schema")
    if sqlite:  # it changes no type
        service.execute("ALTER TABLE memos ADD COLUMN number2 INTEGER NOT NULL DEFAULT 1")
        for trigger in ("touch", "changed", "moved", "replacing", "created", "deleted"):
            service.execute(f"DROP TRIGGER diptych_{trigger}_memos")
        service.execute("ALTER TABLE memos DROP COLUMN number")
        service.execute("ALTER TABLE memos RENAME COLUMN number2 TO number")
    service.execute("DROP TABLE diptych_schema")  # a database of an earlier version: it keeps its older changes


FIELDS = "headline hidden number rank maybe level"


@pytest.mark.parametrize("extra", [True, False])
def test_older_changes_show_no_row_that_lacks_what_is_never_null(
    database: str, runner: asyncio.Runner, extra: bool
) -> None:
    with in_process(before(), database, runner) as service:
        migrate(service)
    with in_process(after(extra), database, runner) as service:
        document = f"subscription {{ memoChanged {{ kind rowId memo {{ {FIELDS} }} }} }}"
        stream = service.follow(document)
        for row in (OPEN, CLOSED):
            service.execute(f"UPDATE memos SET headline = 'c' WHERE id = '{row}'")
        service.settle()
        log = service.changes("/memos/changes")["data"]
        shown = [change["memo"] for change in log if change["memo"] is not None]
        assert [row["headline"] for row in shown] == ["c"] * len(shown)
        assert all(row[name] is not None for row in shown for name in FIELDS.split() if name != "maybe")
        assert [row["level"] for row in shown] == [3] * len(shown)
        if extra:  # whoever may read all is told of all, and of those before without their rows
            assert [change["kind"] for change in log] == ["CREATED", "UPDATED"] * 2 + ["UPDATED"] * 2
            assert [change["memo"] is None for change in log] == [True] * 4 + [False] * 2
        else:  # what was secret then cannot be told by a column that was not there
            assert [change["rowId"] for change in log] == [OPEN]
        assert stream.ended is None and [event["memo"]["headline"] for event in stream.events] == ["c"] * len(shown)
        slim = service.changes("/memos/changes?fields=id,level")["data"]
        assert all(change["memo"] == {"id": change["rowId"], "level": 3} for change in slim if change["memo"])


def test_what_older_changes_have_is_shown(new_sqlite: NewDatabase, runner: asyncio.Runner) -> None:
    url = new_sqlite()
    with in_process(before(), url, runner) as service:
        migrate(service)
    with in_process(after(True), url, runner) as service:
        found = service.changes("/memos/changes?fields=id,version,maybe,level")["data"]
        assert [change["memo"]["version"] for change in found] == [1, 2, 1, 2]
        assert {change["memo"]["maybe"] for change in found} == {None}


def after_by_computed() -> Model:
    class Memo(Resource):
        headline: str
        hidden: bool

        @computed
        def shown(self) -> bool:
            return not_(self.hidden)

        @allow("read")
        def is_open(self, viewer: Viewer) -> bool:
            return self.shown

    return Model(Memo)


def test_a_computed_field_does_not_tell_what_a_missing_column_would_hide(database: str, runner: asyncio.Runner) -> None:
    with in_process(before(), database, runner) as service:
        migrate(service)
        service.execute(f"UPDATE memos SET hidden = false WHERE id = '{CLOSED}'")
        service.execute("ALTER TABLE memos DROP COLUMN number")
    with in_process(after_by_computed(), database, runner) as service:
        service.execute(f"UPDATE memos SET headline = 'c' WHERE id = '{OPEN}'")
        log = service.changes("/memos/changes?fields=id")["data"]
        assert [(change["rowId"], change["kind"]) for change in log][-1] == (OPEN, "UPDATED")
        assert {(change["rowId"], change["kind"]) for change in log[:-1]} <= {(CLOSED, "UPDATED")}, (
            "what was secret then"
        )
