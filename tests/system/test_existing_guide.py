"""The guide to a database that exists runs as it is written, and `diptych new --from` does the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.existing import make_existing, run_sql
from tests.support.running import ROOT, Command, Postgres, diptych, running
from tests.system.test_guides import code
from tests.system.test_new_project import own_tests

PAGE = ROOT / "docs" / "how-to" / "existing-database.md"


def make_shop(folder: Path) -> str:
    (text,) = code(PAGE, "sql")
    database = f"sqlite:///{folder / 'shop.db'}"
    run_sql(database, text)
    return database


def run_lines(block: str, folder: Path) -> None:
    """Run the commands of a block, with the diptych of this checkout."""
    for line in block.strip().splitlines():
        words = line.replace("diptych ", f"{sys.executable} -m diptych ", 1)
        done = subprocess.run(["bash", "-c", words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)


def test_the_guide(tmp_path: Path) -> None:
    database = make_shop(tmp_path)
    inspected, ruled, serving, asking, following, removing = code(PAGE, "console")
    run_lines(inspected, tmp_path)
    text = (tmp_path / "shop.py").read_text("utf-8")
    (shown,) = code(PAGE, "python")
    assert shown in text
    run_lines(ruled, tmp_path)
    assert serving.split()[:3] == ["diptych", "serve", "shop:model"]
    (url,) = re.findall(r"127.0.0.1:8000([^']+)", asking)
    (answer,) = code(PAGE, "json")
    with running("serve", "shop:model", database=database, cwd=tmp_path, noise="mode 0644") as service:
        assert json.loads(service.get(url).body) == json.loads(answer)
    words, _ = following.strip().splitlines()
    run_lines(words, tmp_path)
    with running("serve", "shop:model", database=database, cwd=tmp_path, noise="mode 0644") as service:
        run_sql(database, """UPDATE "Orders" SET "Freight" = 30""")
        (change,) = json.loads(service.get("/orders/changes?fields=freight").body)["data"]
        assert change["order"] == {"freight": 30.0}
    run_lines(removing, tmp_path)
    assert run_sql(database, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'Orders'") == []


FILES = [".gitignore", "Containerfile", "README.md", "diptych.toml", "model.py", "test_model.py"]


def test_a_project_from_a_database(command: Command, tmp_path: Path) -> None:
    database = make_shop(tmp_path)
    done = command("new", "shop", "--from", database)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "shop"
    assert sorted(file.name for file in folder.iterdir()) == FILES
    checked = diptych("check", cwd=folder)
    assert checked.stdout.startswith("The model works: 2 resources (Customer, Order)"), checked.stderr
    assert diptych("check", "--database", database, cwd=folder).returncode == 0
    before = (tmp_path / "shop.db").read_bytes()
    assert "2 passed" in own_tests(folder).stdout
    assert (tmp_path / "shop.db").read_bytes() == before  # they have a copy
    model = folder / "model.py"
    model.write_text(model.read_text("utf-8").replace('grant("read", to=admin)', 'grant("read")'), "utf-8")
    assert "1 failed, 1 passed" in own_tests(folder).stdout


def test_a_project_from_a_postgresql_database(command: Command, postgres: Postgres, tmp_path: Path) -> None:
    database = make_existing(postgres.create(), "northwind")
    assert command("new", "shop", "--from", database).returncode == 0
    assert "2 skipped" in own_tests(tmp_path / "shop").stdout
    assert "2 passed" in own_tests(tmp_path / "shop", TEST_DATABASE=database).stdout


def test_what_cannot_be_inspected(command: Command, tmp_path: Path) -> None:
    for address, sentence in (
        (f"sqlite:///{tmp_path}/none.db", "There is no SQLite database at"),
        ("mysql://x/y", "The database address begins with 'mysql'"),
        ("postgresql://nobody@127.0.0.1:1/none", "The PostgreSQL database cannot be read"),
    ):
        done = command("inspect", address)
        assert done.returncode == 2 and sentence in done.stderr, done.stderr
