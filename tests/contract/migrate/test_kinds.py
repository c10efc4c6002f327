"""Each kind of change of a model, by a migration over rows: the database is as one made anew, and values survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diptych.errors import StartError
from tests.contract.migrate.scene import Project, opened, structure
from tests.support.effort import LONG
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

HEAD = """
class Colour(StrEnum):
    red = "red"
    blue = "blue"

class Colours(StrEnum):
    red = "red"
    blue = "blue"
    green = "green"

class Group(Resource):
    name: str = ""
    access = (grant("read", "create", "delete"),)

class {name}(Resource{options}):
    {lines}
    access = (grant("read", "create", "update", "delete"),)
"""
UUID = "00000000-0000-7000-8000-00000000000{}"
BASE = ("title: str", "size: int = 1")


def model(*lines: str, options: str = "", name: str = "Thing", more: str = "") -> Any:
    return model_of(HEAD.format(lines="\n    ".join(lines), options=options, name=name) + more)


@dataclass(frozen=True)
class Case:
    old: tuple[str, ...]
    new: tuple[str, ...]
    answers: dict[str, Any] = field(default_factory=dict)
    was: dict[str, Any] = field(default_factory=dict)
    """Options of the model before, and of the new one."""
    now: dict[str, Any] = field(default_factory=dict)
    values: str = "title, size"
    rows: tuple[str, ...] = ("'a', 7", "'b', 8")
    read: str = "title, size"
    expect: Sequence[Any] = (("a", 7), ("b", 8))
    loss: bool = False


JUNCTION = """
class Tag(Resource):
    name: str
class ThingTag(Resource):
    thing: Annotated[Thing, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    keys = (unique("thing", "tag"),)
"""
TRASH = {"options": ", trash=timedelta(days=3)"}
CASES = {
    "a class": Case(
        BASE, BASE, now={"more": "\nclass Tag(Resource):\n    thing: Thing\n    name: Annotated[str, Unique()]"}
    ),
    "no class": Case(BASE, BASE, was={"more": "\nclass Tag(Resource):\n    thing: Thing\n    name: str"}, loss=True),
    "another class": Case(BASE, BASE, {"renames": {"things": "items"}}, now={"name": "Item"}),
    "a field that may be null": Case(
        BASE, (*BASE, "note: str | None = None"), read="title, note", expect=[("a", None), ("b", None)]
    ),
    "a field with a default": Case(BASE, (*BASE, "rank: int = 3"), read="title, rank", expect=[("a", 3), ("b", 3)]),
    "a required field, by a value": Case(
        BASE,
        (*BASE, "slug: str"),
        {"fills": {"things.slug": '"x"'}},
        read="title, slug",
        expect=[("a", "x"), ("b", "x")],
    ),
    "a required field, by an expression": Case(
        BASE,
        (*BASE, "slug: str"),
        {"fills": {"things.slug": "= upper(title)"}},
        read="title, slug",
        expect=[("a", "A"), ("b", "B")],
    ),
    "a moment": Case(BASE, (*BASE, "seen: datetime = now()")),
    "a counter": Case(
        BASE, (*BASE, "n: Annotated[int, Counter()] = auto()"), read="title, n", expect=[("a", 1), ("b", 2)]
    ),
    "no field": Case(BASE, BASE[:1], {}, read="title", expect=[("a",), ("b",)], loss=True),
    "no field, required before": Case(BASE, BASE[1:], {}, read="size", expect=[(7,), (8,)], loss=True),
    "another name": Case(
        BASE, ("headline: str", "size: int = 1"), {"renames": {"things.title": "headline"}}, read="headline, size"
    ),
    "null allowed": Case(BASE, ("title: str | None = None", "size: int = 1")),
    "null forbidden": Case(
        ("title: str | None = None", "size: int = 1"),
        BASE,
        {"fills": {"things.title": '"-"'}},
        rows=("'a', 7", "NULL, 8"),
        expect=[("a", 7), ("-", 8)],
    ),
    "another default": Case(BASE, ("title: str", "size: int = 5")),
    "no default": Case(BASE, ("title: str", "size: int")),
    "a wider number": Case(BASE, ("title: str", "size: BigInt = 1")),
    "more digits": Case(
        ("title: str", "size: Annotated[Decimal, Digits(8, 2)]"),
        ("title: str", "size: Annotated[Decimal, Digits(12, 4)]"),
        read="title",
        expect=[("a",), ("b",)],
    ),
    "another type": Case(
        BASE,
        ("title: str", "size: str"),
        {"usings": {"things.size": "CAST(size AS TEXT)"}},
        expect=[("a", "7"), ("b", "8")],
    ),
    "an enum of texts": Case(
        ("title: str", "size: int = 1"),
        ("title: Colour", "size: int = 1"),
        rows=("'red', 7", "'blue', 8"),
        expect=[("red", 7), ("blue", 8)],
    ),
    "more values": Case(
        ("title: Colour", "size: int = 1"),
        ("title: Colours", "size: int = 1"),
        rows=("'red', 7", "'blue', 8"),
        expect=[("red", 7), ("blue", 8)],
    ),
    "unique": Case(BASE, ("title: Annotated[str, Unique()]", "size: int = 1")),
    "not unique": Case(("title: Annotated[str, Unique()]", "size: int = 1"), BASE),
    "a unique key": Case(BASE, (*BASE, 'keys = (unique("title", "size"),)')),
    "an index": Case(BASE, ("title: Annotated[str, Index()]", "size: int = 1")),
    "no index": Case(("title: Annotated[str, Index()]", "size: int = 1"), BASE),
    "a check": Case(BASE, (*BASE, '@check("It is more.")', "def more(self):", "    return self.size > 0")),
    "another check": Case(
        (*BASE, '@check("It is more.")', "def more(self):", "    return self.size > 0"),
        (*BASE, '@check("It is more.")', "def more(self):", "    return self.size > 3"),
    ),
    "a relation": Case(BASE, (*BASE, "group: Group | None = None")),
    "another end of a relation": Case(
        (*BASE, "group: Group | None = None"), (*BASE, 'group: Annotated[Group | None, OnDelete("cascade")] = None')
    ),
    "no relation": Case((*BASE, "group: Group | None = None"), BASE),
    "a search": Case(BASE, (*BASE, 'search = Search("title")')),
    "another search, another name": Case(
        (*BASE, 'search = Search("title")'),
        ("headline: str", "size: int = 1", 'search = Search("headline")'),
        {"renames": {"things.title": "headline"}},
        read="headline, size",
    ),
    "a trash": Case(
        ("title: Annotated[str, Unique()]", "size: int = 1"),
        ("title: Annotated[str, Unique()]", "size: int = 1"),
        now=TRASH,
    ),
    "no trash": Case(
        ("title: Annotated[str, Unique()]", "size: int = 1"),
        ("title: Annotated[str, Unique()]", "size: int = 1"),
        was=TRASH,
    ),
    "lists": Case(BASE, (*BASE, "tags: list[str] = []"), read="title", expect=[("a",), ("b",)]),
    "a document": Case(BASE, (*BASE, "data: Json | None = None")),
    "a class with integer ids": Case(
        BASE, BASE, now={"more": '\nclass Tag(Resource, ids="integer"):\n    thing: Thing | None = None'}
    ),
    "a day": Case(BASE, (*BASE, "day: date = today()")),
    "no counter": Case((*BASE, "n: Annotated[int, Counter()] = auto()"), BASE, loss=True),
    "fewer digits": Case(
        ("title: str", "size: Annotated[Decimal, Digits(8, 2)]"),
        ("title: str", "size: Annotated[Decimal, Digits(8, 1)]"),
        rows=("'a', 10", "'b', 20"),
        read="title",
        expect=[("a",), ("b",)],
    ),
    "fewer values": Case(
        ("title: Colours", "size: int = 1"),
        ("title: Colour", "size: int = 1"),
        rows=("'red', 7", "'blue', 8"),
        expect=[("red", 7), ("blue", 8)],
    ),
    "a text of an enum": Case(
        ("title: Colour", "size: int = 1"),
        BASE,
        rows=("'red', 7", "'blue', 8"),
        expect=[("red", 7), ("blue", 8)],
    ),
    "states": Case(
        ("title: Colour", "size: int = 1"),
        ("title: Annotated[Colour, States(Move(Colour.red, Colour.blue))] = Colour.red", "size: int = 1"),
        rows=("'red', 7", "'blue', 8"),
        expect=[("red", 7), ("blue", 8)],
    ),
    "unique, another name": Case(
        ("title: Annotated[str, Unique()]", "size: int = 1"),
        ("headline: Annotated[str, Unique()]", "size: int = 1"),
        {"renames": {"things.title": "headline"}},
        read="headline, size",
    ),
    "no unique key": Case((*BASE, 'keys = (unique("title", "size"),)'), BASE),
    "a unique key in part": Case(BASE, (*BASE, '@unique("title")', "def only(self):", "    return self.size > 0")),
    "no unique key in part": Case((*BASE, '@unique("title")', "def only(self):", "    return self.size > 0"), BASE),
    "an index over two": Case(BASE, (*BASE, 'keys = (index("title", "size"),)')),
    "no check": Case((*BASE, '@check("It is more.")', "def more(self):", "    return self.size > 0"), BASE),
    "a required relation": Case(
        BASE,
        ("group: Group", *BASE),
        {"fills": {"things.group_id": "= (SELECT id FROM groups)"}},
        rows=(),
        expect=(),
    ),
    "a relation that is required now": Case(
        (*BASE, "group: Group | None = None"),
        ("group: Group", *BASE),
        {"fills": {"things.group_id": "= (SELECT id FROM groups)"}},
        rows=(),
        expect=(),
    ),
    "another target of a relation": Case(
        (*BASE, "group: Group | None = None"),
        (*BASE, "group: Other | None = None"),
        was={"more": "\nclass Other(Resource):\n    name: str"},
        now={"more": "\nclass Other(Resource):\n    name: str"},
    ),
    "no search": Case((*BASE, 'search = Search("title")'), BASE),
    "another moment": Case((*BASE, "seen: datetime = now()"), (*BASE, "seen: datetime | None = None")),
    "many to many": Case(BASE, BASE, now={"more": JUNCTION}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_is_as_one_made_anew(name: str, tmp_path: Path, new_database: NewDatabase) -> None:
    case, url = CASES[name], new_database()
    if not LONG and url.startswith("postgres") and [*CASES].index(name) % 6:
        return  # a sixth of them in the short form; `make prove` does all
    old, new = model(*case.old, **case.was), model(*case.new, **case.now)
    project = Project(tmp_path / "migrations", url)
    project.make(old, "first")
    project.apply(old)
    outside = project.outside
    for number, row in enumerate(case.rows, 1):
        outside.sql(f"INSERT INTO things (id, {case.values}) VALUES ('{UUID.format(number)}', {row})")
    table = next(each.table for each in new.resources.values() if each.name in ("Thing", "Item"))
    before = outside.rows("things", "id", "created_at")
    project.make(new, **case.answers)
    if case.loss and name != "no class":
        with pytest.raises(StartError, match="--allow-loss"):
            project.apply(new)
    project.apply(new, allow_loss=case.loss)
    assert outside.sql(f"SELECT {case.read} FROM {table} ORDER BY id") == [*case.expect]
    assert outside.rows(table, "id", "created_at") == before
    anew = Outside(new_database())
    opened(anew.url, new)
    assert structure(outside) == structure(anew)
    project.open(new)
    there = outside.catalogue()
    project.apply(new)  # nothing is left to do
    assert outside.catalogue() == there
