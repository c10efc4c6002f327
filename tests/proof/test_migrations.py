"""A model that changes at random, and migrations that are killed: the database is as one made anew, and values survive."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from diptych.errors import StartError
from diptych.migrate.state import state_of
from diptych.model.defs import ResourceDef
from tests.contract.migrate.scene import Project, opened, structure
from tests.contract.migrate.test_kinds import UUID, model
from tests.support.effort import LONG, scaled
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

KINDS = {
    "str": '"s"',
    "int": "7",
    "bool": "True",
    "Colour": "Colour.red",
    "datetime": "",
    "Annotated[Decimal, Digits(8, 2)]": 'Decimal("1.25")',
}
"""The types of fields, each with a default."""
HEAD = """
class Colour(StrEnum):
    red = "red"
    blue = "blue"
"""


@dataclass
class Field:
    kind: str
    nullable: bool = False
    default: str = ""
    marker: str = ""

    def line(self, name: str) -> str:
        kind, extra = self.kind, self.marker
        if kind.startswith("Annotated["):
            kind, digits = kind.removeprefix("Annotated[").removesuffix("]").split(", ", 1)
            extra = ", ".join(filter(None, [digits, extra]))
        kind += " | None" * self.nullable
        value = " = None" if self.nullable else f" = {self.default}" * bool(self.default)
        return f"{name}: " + (f"Annotated[{kind}, {extra}]" if extra else kind) + value


@dataclass
class Walk:
    """Classes with their fields, changed at random."""

    random: random.Random
    classes: dict[str, dict[str, Field]] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    """For each class the one that it refers to, and what happens when that row is deleted."""
    searches: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def model(self) -> Model:
        text = HEAD
        for name, fields in self.classes.items():
            lines = [each.line(label) for label, each in fields.items() if each.default == "" and not each.nullable]
            lines += [each.line(label) for label, each in fields.items() if each.default or each.nullable]
            if name in self.links:
                target, on_delete = self.links[name]
                lines.append(f'link: Annotated[{target} | None, OnDelete("{on_delete}")] = None')
            if name in self.counters:
                lines.append("serial: Annotated[int, Counter()] = auto()")
            if name in self.searches:
                lines.append('search = Search("label")')
            text += f"\nclass {name}(Resource):\n    " + "\n    ".join(["label: str", *lines]) + "\n"
        return model_of(text)

    def change(self) -> tuple[dict[str, Any], dict[tuple[str, str], tuple[str, str]]]:
        """Change one thing. Gives the answers for `make`, and where the values of renamed columns are now."""
        names = list(self.classes)
        name = self.random.choice(names)
        fields, table = self.classes[name], name.lower() + "s"
        steps = ["add", "add", "drop", "rename", "null", "index", "default", "link", "search", "class", "rename class"]
        steps += ["counter"]
        match self.random.choice(steps):
            case "add":
                return self._add(fields, table), {}
            case "drop" if fields:
                gone = self.random.choice(list(fields))
                del fields[gone]
                return {"drops": {f"{table}.{gone}"}}, {}
            case "rename" if fields:
                old, new = self.random.choice(list(fields)), self.fresh("f")
                self.classes[name] = {new if label == old else label: each for label, each in fields.items()}
                return {"renames": {f"{table}.{old}": new}}, {(table, old): (table, new)}
            case "null" if fields:
                label = self.random.choice(list(fields))
                each = fields[label]
                each.nullable, each.default = not each.nullable, ""
                return {"fills": {f"{table}.{label}": _fill(each.kind)}}, {}
            case "index" if fields:
                each = self.random.choice(list(fields.values()))
                each.marker = "" if each.marker else "Index()"
            case "default" if fields:
                each = self.random.choice([*fields.values()])
                each.default = "" if each.default or each.nullable else KINDS[each.kind]
            case "link":
                self._link(name)
            case "search":
                self.searches ^= {name}
            case "counter":
                self.counters ^= {name}
                return {"drops": {f"{table}.serial"}} if name not in self.counters else {}, {}
            case "class" if len(names) < 4:
                self.classes[f"C{self.fresh('x')}"] = {"first": Field("str", default='"s"')}
            case "rename class":
                new = f"C{self.fresh('y')}"
                self._rename(name, new)
                moved = {(table, label): (new.lower() + "s", label) for label in (*fields, "label")}
                return {"renames": {table: new.lower() + "s"}}, moved
        return {}, {}

    def _link(self, name: str) -> None:
        if name in self.links and self.random.random() < 0.5:
            del self.links[name]
        else:
            on_delete = ["restrict", "cascade", "set null"]
            self.links[name] = self.random.choice([*self.classes]), self.random.choice(on_delete)

    def _add(self, fields: dict[str, Field], table: str) -> dict[str, Any]:
        label, kind = self.fresh("f"), self.random.choice(list(KINDS))
        how = self.random.choice(["null", "default", "fill"])
        fields[label] = Field(kind, how == "null", KINDS[kind] if how == "default" else "")
        return {"fills": {f"{table}.{label}": _fill(kind)}}

    def _rename(self, old: str, new: str) -> None:
        self.classes = {new if name == old else name: each for name, each in self.classes.items()}
        self.links = {
            (new if name == old else name): (new if target == old else target, how)
            for name, (target, how) in self.links.items()
        }
        self.searches = {new if name == old else name for name in self.searches}
        self.counters = {new if name == old else name for name in self.counters}


def _fill(kind: str) -> str:
    return {"str": '"f"', "int": "5", "bool": "false", "Colour": '"red"', "datetime": '"2024-02-02T00:00:00Z"'}.get(
        kind, '"2.50"'
    )


def rows(outside: Outside, now: Model) -> dict[tuple[str, str], list[Any]]:
    """All values, by table and column."""
    return {
        (resource.table, each.column): [value for (value,) in outside.rows(resource.table, each.column)]
        for resource in now.resources.values()
        for each in resource.fields.values()
        if each.stored and each.column not in ("version", "updated_at")
    }


def insert(outside: Outside, resource: ResourceDef, number: int) -> None:
    """A row with all that it needs."""
    values = {"id": f"'00000000-0000-7000-8000-{number:012x}'", "label": f"'l{number}'"}
    for each in resource.fields.values():
        if each.stored and not each.nullable and not each.filled and not each.is_server_set and each.name != "label":
            kind = "Colour" if each.scalar.choices else each.scalar.name.partition("(")[0]
            boolean = "1" if outside.is_sqlite else "true"
            known = {"String": "'v'", "Int": "4", "Boolean": boolean, "Colour": "'blue'", "Decimal": "300"}
            values[each.column] = known.get(kind, "'2024-03-03T00:00:00.000000Z'")
    outside.sql(f"INSERT INTO {resource.table} ({', '.join(values)}) VALUES ({', '.join(values.values())})")


WALKS = range(scaled(10, 1))
CHECKED = 25
"""Changes between two comparisons with a database made anew; then all migrations are squashed, so that reading them does
not take longer and longer."""


@pytest.mark.timeout(3600 if LONG else 300)
@pytest.mark.parametrize("walk_number", WALKS)
def test_a_random_walk_over_models(tmp_path: Path, new_database: NewDatabase, walk_number: int) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(10**6)) + walk_number
    print("SEED", seed)
    walk = Walk(random.Random(seed), {"Alpha": {}, "Beta": {}})
    project = Project(tmp_path / "migrations", new_database())
    now = walk.model()
    project.make(now, "first")
    project.apply(now)
    outside = project.outside
    changes = scaled(300, 12 if outside.is_sqlite else 8)
    for number in range(changes):
        insert(outside, walk.random.choice(list(now.resources.values())), number)
        before = rows(outside, now)
        while True:
            answers, moved = walk.change()
            if state_of(walk.model()).hash != state_of(now).hash:
                break
        now = walk.model()
        project.make(now, **answers)
        project.apply(now, allow_loss=True)
        after = rows(outside, now)
        for was_at, values in before.items():
            place = moved.get(was_at, was_at)
            if place in after:
                kept = [value for value, was in zip(after[place], values, strict=True) if was is not None]
                assert kept == [was for was in values if was is not None], (number, place)
        if number % CHECKED == CHECKED - 1 or number == changes - 1:
            compare_and_squash(project, now, new_database)


def compare_and_squash(project: Project, now: Model, new_database: NewDatabase) -> None:
    """A database that went through all migrations is as one made anew, and as one that went through the squashed one;
    squashing leaves its rows as they are."""
    reached, values = structure(project.outside), rows(project.outside, now)
    anew = Outside(new_database())
    opened(anew.url, now)
    assert reached == structure(anew)
    project.squash(now)
    assert (structure(project.outside), rows(project.outside, now)) == (reached, values)
    assert len(list(project.folder.glob("*.py"))) == 1
    other = Project(project.folder, new_database())
    other.apply(now)
    assert structure(other.outside) == reached


# killed

_CHILD = """
import os, signal, sys
from pathlib import Path
import apsw, asyncpg
from tests.contract.migrate.scene import Project
from tests.proof.test_migrations import LAST, model
left = int(sys.argv[3])
def count(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
def wrapped(method):
    async def execute(self, sql, *values, **how):
        count()
        return await method(self, sql, *values, **how)
    return execute
asyncpg.Connection.execute = wrapped(asyncpg.Connection.execute)
def hook(connection):
    connection.exec_trace = count
apsw.connection_hooks.append(hook)
Project(Path(sys.argv[1]), sys.argv[2]).apply(model(*LAST), allow_loss=True)
"""
FIRST = ("title: str", "note: str | None = None", "size: int = 1", "code: Annotated[str, Unique()]")
LAST = (
    "headline: Annotated[str, Index()]",
    "note: str",
    "size: BigInt = 2",
    "slug: str",
    'group: Annotated[Group | None, OnDelete("cascade")] = None',
    'keys = (unique("headline", "size"),)',
    'search = Search("headline")',
)


def test_a_migration_that_is_killed_is_finished(tmp_path: Path, new_database: NewDatabase) -> None:
    old, new = model(*FIRST), model(*LAST)
    anew = Outside(new_database())
    opened(anew.url, new)
    wanted = structure(anew)
    folder = tmp_path / "migrations"
    points = [*range(2, 80, 3)] if LONG else random.sample(range(8, 60), 1)
    killed = 0
    for point in points:
        project = Project(folder, new_database())
        if not folder.exists():
            project.make(old, "first")
            project.make(
                new,
                renames={"things.title": "headline"},
                drops={"things.code"},
                fills={"things.note": '"-"', "things.slug": "= upper(headline)"},
            )
        opened(project.outside.url, old)
        for number in (1, 2, 3):
            values = f"'{UUID.format(number)}', 't{number}', '{number}'"
            project.outside.sql(f"INSERT INTO things (id, title, code) VALUES ({values})")
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, str(folder), project.outside.url, str(point)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed += done.returncode != 0
        project.apply(new, allow_loss=True)
        read = project.outside.sql("SELECT headline, note, size, slug FROM things ORDER BY id")
        assert read == [(f"t{number}", "-", 1, f"T{number}") for number in (1, 2, 3)], point
        assert structure(project.outside) == wanted, point
    assert killed


def test_what_is_in_the_way_is_counted_and_nothing_is_changed(tmp_path: Path, new_database: NewDatabase) -> None:
    old, new = model("title: str"), model("title: Annotated[str, Unique()]")
    project = Project(tmp_path / "migrations", new_database())
    project.make(old, "first")
    project.apply(old)
    for number in (1, 2):
        project.outside.sql(f"INSERT INTO things (id, title) VALUES ('{UUID.format(number)}', 'same')")
    before = structure(project.outside)
    project.make(new)
    with pytest.raises(StartError, match=r"1 values of things \(title\) are there more than once"):
        project.apply(new)
    assert structure(project.outside) == before
    project.outside.sql("UPDATE things SET title = id")
    project.apply(new)
