"""`diptych inspect`: the model file of a database that others made is checked, and served at once."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from diptych import Model
from tests.support.existing import SCHEMAS, catalogue_of, make_existing, run_sql
from tests.support.in_process import in_process
from tests.support.running import Command, NewDatabase

_NUMBERS = itertools.count()


def load(text: str, folder: Path) -> Model:
    """The model of a file with this text."""
    name = f"inspected_{next(_NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    model = module.model
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_is_printed_is_served(new_database: NewDatabase, command: Command, tmp_path: Path, schema: str) -> None:
    """Every table and view has its rows in both styles, for admin alone, and nothing of theirs is changed."""
    database = make_existing(new_database(), schema)
    before = catalogue_of(database)
    printed = command("inspect", database)
    assert printed.returncode == 0, printed.stderr
    model = load(printed.stdout, tmp_path)
    left = [
        line for line in printed.stderr.splitlines() if line.startswith(("Left out: the table", "Left out: the view"))
    ]
    made = SCHEMAS[schema].count("CREATE TABLE") + SCHEMAS[schema].count("CREATE VIEW")
    assert len(model.resources) == made - len(left)
    assert left == (["Left out: the table Log: it has no primary key."] if schema == "northwind" else [])
    with asyncio.Runner() as runner, in_process(model, database, runner, max_page=1000) as service:
        admin = service.token(None, "admin")
        for resource in model.resources.values():
            ((count,),) = run_sql(database, f'SELECT count(*) FROM "{resource.table}"')
            fields = [name for name, field in resource.fields.items() if field.scalar.members is None]
            answer = service.get(f"/{resource.path}?fields={','.join(fields)}", token=admin)
            assert answer.status == 200, (resource.name, answer.body)
            rows = answer.json()["data"]
            assert len(rows) == count, resource.name
            asked = service.data(f"{{ {resource.many} {{ {' '.join(fields)} }} }}", token=admin)
            assert asked == {resource.many: rows}, resource.name
            for row in rows:
                one = service.data(
                    f'{{ {resource.one}(id: "{row["id"]}") {{ id }} }}'.replace("\\", "\\\\"), token=admin
                )
                assert one == {resource.one: {"id": row["id"]}}
            assert service.get(f"/{resource.path}").status in (401, 404)
    assert [line for line in catalogue_of(database) if "diptych" not in str(line)] == before


def test_it_passes_ruff_and_mypy(new_database: NewDatabase, command: Command, tmp_path: Path) -> None:
    files = []
    for schema in SCHEMAS:
        file = tmp_path / f"{schema}_model.py"
        file.write_text(command("inspect", make_existing(new_database(), schema)).stdout, "utf-8")
        files.append(str(file))
    rules = "B,E,F,I,UP,SIM,RUF"
    options = ("--isolated", "--line-length", "120")
    for arguments in (
        ("ruff", "check", *options, "--select", rules, "--ignore", "RUF012", *files),
        ("ruff", "format", *options, "--check", "--diff", *files),
        ("mypy", "--strict", *files),
    ):
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
