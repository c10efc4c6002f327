"""`diptych export` and `diptych import`: a round trip without loss, within a store and between the stores."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.cli import import_rows
from diptych.testing import serve
from tests.contract.formats.every_type import MODEL, Maker
from tests.support.running import ROOT, Command, NewDatabase, diptych

COUNTED = """
from diptych import Model, Resource, grant

class Part(Resource, ids="integer"):
    name: str
    whole: "Part | None" = None
    access = (grant("read", "create"),)

model = Model(Part)
"""
MODEL_NAME = "tests.contract.formats.every_type:MODEL"
TEXTS = [
    "",
    " ",
    "=1+1",
    "'=1+1",
    "''",
    "-",
    "@a",
    "\tt",
    "\rr",
    'q"q',
    "a,b",
    "line\nline",
    "ü\u2028\U0001f600",
    "null",
    "true",
]


def filled(database: str) -> None:
    """A database with awkward values of every type."""
    with serve(MODEL, database=database) as api:
        maker = api.make(Maker, name="=Zoe, Inc.")
        client = api.as_("staff")
        for number, text in enumerate(TEXTS):
            body = {"text": text, "note": text if number % 2 else None, "count": -(2**31) + number, "makerId": maker.id}
            client.post("/things", body).expect(201)
        full = {
            "large": str(-(2**63)),
            "price": "-1234567.89",
            "ratio": 0.1 + 0.2,
            "good": True,
            "day": "0001-01-01",
            "moment": "9999-12-31T23:59:59.999999Z",
            "at": "23:59:59.999999",
            "span": "P1DT2H3M4.000005S",
            "mark": "0198f0c2-0000-7000-8000-000000000000",
            "size": "large",
            "extra": {"a": [1, 1.5, None, "=x"], "b": ""},
            "tags": ["", "=a", "b,c", '"'],
            "secret": "s",
            "hidden": True,
        }
        client.post("/things", {"text": "full", **full}).expect(201)
        values: list[Any] = ["-5", -5, [], {}, "", True]
        for extra in values:
            client.post("/things", {"text": "json", "extra": extra}).expect(201)
        client.post("/things", {"text": "floats", "ratio": -1.7976931348623157e308}).expect(201)
        client.post("/things", {"text": "floats", "ratio": 5e-324}).expect(201)


def empty(database: str) -> None:
    with serve(MODEL, database=database):
        pass


def rows_of(database: str) -> list[Any]:
    with serve(MODEL, database=database) as api:
        things = api.as_("staff").get("/things?first=100&sort=id").expect(200).data
        return [*api.as_("staff").get("/makers").data, *things]


def transferred(command: Command, source: str, target: str, suffix: str, *more: str) -> None:
    for name in ("makers", "things"):
        done = command("export", name, f"{name}.{suffix}", "--model", MODEL_NAME, "--database", source, *more)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert done.stderr.startswith("Wrote ")
        done = command("import", f"{name}.{suffix}", "--model", MODEL_NAME, "--database", target, *more)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout.startswith("Imported ")


@pytest.mark.parametrize(("suffix", "more"), [("csv", ()), ("csv", ("--raw",)), ("ndjson", ())])
def test_a_round_trip_loses_nothing(
    command: Command, new_database: NewDatabase, new_sqlite: NewDatabase, suffix: str, more: tuple[str, ...]
) -> None:
    source, target = new_sqlite(), new_database()
    filled(source)
    empty(target)
    transferred(command, source, target, suffix, *more)
    assert rows_of(target) == rows_of(source)
    back = new_sqlite()
    empty(back)
    transferred(command, target, back, suffix, *more)
    assert rows_of(back) == rows_of(source)


def test_an_import_goes_on_where_it_stopped(command: Command, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    empty(database)
    monkeypatch.setattr(import_rows, "BATCH", 3)
    lines = ["name", *(f"m{number}" for number in range(8))]
    lines[5] = ""  # between two records
    lines[7] = "m0"
    Path("makers.csv").write_text("\n".join(lines))
    arguments = ("import", "makers.csv", "--model", MODEL_NAME, "--database", database)
    stopped = command(*arguments)
    assert (stopped.returncode, stopped.stdout) == (2, "")
    assert stopped.stderr == (
        "makers.csv cannot be imported:\n- line 8: name: Another one has this value\n"
        "The first 3 rows were imported. Mend the rest and run the command again: it goes on.\n"
    )
    lines[7] = "m6"
    Path("makers.csv").write_text("\n".join(lines))
    done = command(*arguments)
    assert done.stdout == "Imported 4 rows into makers, after 3 of an earlier run.\n"
    again = command(*arguments)
    assert "line 2: name: Another one has this value" in again.stderr, "it is complete, so this is a new import"
    with serve(MODEL, database=database) as api:
        names = [row["name"] for row in api.anonymous.get("/makers?sort=name").data]
    assert names == [f"m{number}" for number in (0, 1, 2, 3, 5, 6, 7)]


def test_of_two_imports_of_one_file_one_goes_on(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(database)
    monkeypatch.setattr(import_rows, "BATCH", 3)
    Path("things.csv").write_text("\n".join(["text", *(f"t{number}" for number in range(8))]))
    arguments = ("import", "things.csv", "--model", MODEL_NAME, "--database", database)
    said, read = list[str](), import_rows._Import._batch

    def batch(self: import_rows._Import, rows: Iterator[tuple[int, Any]]) -> list[tuple[int, Any]]:
        if self.done and not said:
            said.append(diptych("import", str(Path("things.csv").resolve()), *arguments[2:], cwd=ROOT).stdout)
        return read(self, rows)

    monkeypatch.setattr(import_rows._Import, "_batch", batch)
    refused = command(*arguments)
    assert said == ["Imported 5 rows into things, after 3 of an earlier run.\n"]
    assert (refused.returncode, refused.stderr) == (
        2,
        "things.csv is being imported by another process, too; 3 rows were imported by this one.\n",
    )
    assert sorted(row["text"] for row in rows_of(database)) == [f"t{number}" for number in range(8)]


def test_a_file_that_changed_is_not_gone_on_with(
    command: Command, new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = new_sqlite()
    empty(database)
    monkeypatch.setattr(import_rows, "BATCH", 1)
    arguments = ("import", "makers.ndjson", "--model", MODEL_NAME, "--database", database)
    Path("makers.ndjson").write_text('{"name": "a"}\n{"name": 5}\n')
    assert "- line 2: name: " in command(*arguments).stderr
    Path("makers.ndjson").write_text('{"name": "b"}\n{"name": "c"}\n')
    refused = command(*arguments).stderr
    assert "1 row of makers.ndjson was imported before, up to line 1, and it has changed there since." in refused
    assert command(*arguments, "--restart").stdout == "Imported 2 rows into makers.\n"


def test_rows_are_imported_as_a_role_or_by_a_key(command: Command, database: str) -> None:
    empty(database)
    where = ("--model", MODEL_NAME, "--database", database)
    Path("makers.csv").write_text("id,name\nx,a\n")
    role = command("import", "makers.csv", *where, "--as", "staff")
    assert "- line 2: id: the field is read-only" in role.stderr
    Path("makers.csv").write_text("name\na\nb\n")
    dry = command("import", "makers.csv", *where, "--as", "staff", "--dry-run")
    assert dry.stdout == "Would have imported 2 rows into makers.\n"
    assert command("import", "makers.csv", *where, "--as", "anonymous").stdout == "Imported 2 rows into makers.\n"
    Path("makers.csv").write_text("name\nb\nc\n")
    done = command("import", "makers.csv", *where, "--upsert", "name")
    assert done.stdout == "Imported 2 rows into makers.\n", done.stderr
    shown = command(
        "export", "Maker", *where, "--fields", "name", "--format", "ndjson", "--where", '{"name": {"gt": "a"}}'
    )
    assert [json.loads(line) for line in shown.stdout.splitlines()] == [{"name": "b"}, {"name": "c"}]
    assert command("export", "things", *where, "--as", "anonymous", "--fields", "secret").returncode == 2


def test_what_is_no_integer_id_is_refused_and_not_replaced(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("counted.py").write_text(COUNTED)
    where = ("--model", "counted:model", "--database", database)
    monkeypatch.syspath_prepend(".")
    with serve(importlib.import_module("counted").model, database=database):
        pass
    for line, field in (
        ("x,a,", "id"),
        ("99999999999999999999,a,", "id"),
        (",a,x", "wholeId"),
        ("1,a,99999999999999999999", "wholeId"),
    ):
        Path("parts.csv").write_text(f"id,name,wholeId\n{line}\n")
        assert f"- line 2: {field}: expected an id" in command("import", "parts.csv", *where).stderr
    assert command("export", "parts", *where, "--fields", "name").stdout == "name\r\n"


def test_rows_are_created_beside_an_import_that_stopped(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("counted.py").write_text(COUNTED)
    monkeypatch.setattr(import_rows, "BATCH", 2)
    monkeypatch.syspath_prepend(".")
    model = importlib.import_module("counted").model
    with serve(model, database=database) as api:
        Path("parts.csv").write_text("id,name\n1,a\n2,b\n3,c\n4,d,e\n")
        stopped = command("import", "parts.csv", "--model", "counted:model", "--database", database)
        assert "The first 2 rows were imported." in stopped.stderr
        assert api.anonymous.post("/parts", {"name": "e"}).expect(201).data["id"] == "3"


def test_a_dry_run_has_time_for_a_long_file(command: Command, database: str) -> None:
    empty(database)
    Path("things.csv").write_text("\n".join(["text", *(f"t{number}" for number in range(2_500))]))
    where = ("--model", MODEL_NAME, "--database", database)
    dry = command("import", "things.csv", *where, "--dry-run", DIPTYCH_STATEMENT_TIMEOUT="0.1")
    assert (dry.stdout, dry.stderr) == ("Would have imported 2,500 rows into things.\n", "")


def test_mistakes_are_one_sentence(command: Command, new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    empty(database)
    where = ("--model", MODEL_NAME, "--database", database)
    messages: dict[tuple[str, ...], str] = {
        ("export", "nothing", *where): "The model has no resource named nothing; it has makers, things.",
        ("export", "makers", "out.txt", *where): (
            "The name out.txt does not say its format; add --format csv or --format ndjson."
        ),
        ("export", "makers", *where, "--as", "king"): (
            "The model has no role named 'king'; there are anonymous, signed_in, staff."
        ),
        ("export", "makers", *where, "--where", "{"): "--where is not JSON.",
        ("export", "makers", "no/such/place.csv", *where): (
            "no/such/place.csv cannot be written: No such file or directory."
        ),
        ("import", "makers.csv", *where, "--upsert", "text"): ("Maker has no unique key named text; there are name."),
    }
    Path("makers.csv").write_text('name\n"open\n')
    for arguments, sentence in messages.items():
        done = command(*arguments)
        assert (done.returncode, done.stderr.strip(), done.stdout) == (2, sentence, ""), arguments
    broken = command("import", "makers.csv", *where).stderr
    assert broken.splitlines()[:2] == ["makers.csv cannot be imported:", "- line 2: a quote is not closed"]
    Path("makers.csv").write_bytes(b"name\n\xff\n")
    assert "is no UTF-8" in command("import", "makers.csv", *where).stderr
