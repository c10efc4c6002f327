"""Indexes: which a model has, which a database lacks, and which a rule wants."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from graphql import print_schema

from diptych import Index, Model, OnDelete, Resource, Unique, Viewer, allow
from diptych.api.graphql.schema import build_schema
from diptych.compile.indexes import missing_indexes, wanted_indexes
from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model as default
from diptych.model.describe.index_advice import advise
from tests.support.cases import cases
from tests.support.in_process import in_process
from tests.support.mistakes import assert_reported
from tests.support.model_files import declare
from tests.support.running import Command, NewDatabase
from tests.unit.compile.test_tables import Outside, opened


class Shop(Resource):
    name: Annotated[str, Unique()]


class Parcel(Resource):
    region: Annotated[str, Index()]
    weight: Annotated[int | None, Index()] = None
    text: str = ""
    shop: Annotated[Shop | None, OnDelete("set null")] = None
    twin: Annotated[Shop | None, Unique(), OnDelete("set null")] = None

    @allow("read")
    def in_region(self, viewer: Viewer) -> bool:
        return self.region == "north"


MODEL = Model(Shop, Parcel)
WANTED: dict[str, set[tuple[str, ...]]] = {
    "shops": {("name",)},
    "parcels": {("region", "id"), ("weight", "id"), ("shop_id", "id"), ("twin_id",), ("twin_id", "id")},
}


@pytest.fixture
def outside(database: str) -> Outside:
    return Outside(database)


def found(outside: Outside) -> dict[str, set[tuple[str, ...]]]:
    """The columns of every index of the tables of the model, without those of ids."""
    catalogue = asyncio.run(connect(Config(database=outside.url)).catalogue())
    indexes: dict[str, set[tuple[str, ...]]] = {}
    for index in catalogue.indexes:
        if index.table in WANTED and index.columns != ("id",):
            indexes.setdefault(index.table, set()).add(index.columns)
    return indexes


def drop(outside: Outside, *names: str) -> None:
    for name in names:
        outside.sql(f"DROP INDEX {name}")


# in databases


def test_a_new_database_has_the_indexes_of_the_model(outside: Outside) -> None:
    assert found(opened(outside, MODEL)) == WANTED


def test_developing_makes_the_indexes_that_a_database_lacks_and_serving_does_not(outside: Outside) -> None:
    drop(opened(outside, MODEL), "parcels_region", "parcels_shop_id")
    lacking = WANTED["parcels"] - {("region", "id"), ("shop_id", "id")}
    assert found(opened(outside, MODEL))["parcels"] == lacking
    assert found(opened(outside, MODEL, add_columns=True)) == WANTED
    assert found(opened(outside, MODEL, add_columns=True)) == WANTED


def test_a_column_that_is_added_while_developing_has_its_index(outside: Outside) -> None:
    opened(outside, MODEL)
    drop(outside, "parcels_weight")
    outside.sql("ALTER TABLE parcels DROP COLUMN weight")
    assert found(opened(outside, MODEL, add_columns=True)) == WANTED


def test_an_index_of_the_owner_is_as_good_as_ours(outside: Outside) -> None:
    drop(opened(outside, MODEL), "parcels_region")
    outside.sql("CREATE INDEX by_owner ON parcels (region, text)")
    assert ("region", "id") not in found(opened(outside, MODEL, add_columns=True))["parcels"]
    drop(outside, "by_owner")
    assert ("region", "id") in found(opened(outside, MODEL, add_columns=True))["parcels"]


BAD = {
    "about some rows": "CREATE INDEX parcels_region ON parcels (region) WHERE region > 'a'",
    "on an expression": "CREATE INDEX parcels_region ON parcels (lower(region))",
    "behind another column": "CREATE INDEX parcels_region ON parcels (text, region)",
}
BAD_COLLATION = {
    True: "CREATE INDEX parcels_region ON parcels (region COLLATE NOCASE)",
    False: 'CREATE INDEX parcels_region ON parcels (region COLLATE "POSIX")',
}


@pytest.mark.parametrize("bad", [*BAD, "with another order"])
def test_an_index_that_does_not_find_rows_by_the_value_is_none(outside: Outside, bad: str) -> None:
    """And one that has the name of ours is no obstacle."""
    drop(opened(outside, MODEL), "parcels_region")
    outside.sql(BAD.get(bad) or BAD_COLLATION[outside.is_sqlite])
    assert ("region", "id") not in found(outside)["parcels"]
    assert ("region", "id") in found(opened(outside, MODEL, add_columns=True))["parcels"]


def test_a_unique_index_on_more_than_the_column_does_not_keep_it_unique(outside: Outside) -> None:
    outside.sql(f"CREATE TABLE shops ({'id TEXT, name TEXT' if outside.is_sqlite else 'id uuid, name text'})")
    outside.sql("CREATE UNIQUE INDEX two ON shops (name, lower(name))")
    outside.sql("CREATE UNIQUE INDEX few ON shops (name) WHERE name > 'a'")
    catalogue = asyncio.run(connect(Config(database=outside.url)).catalogue())
    assert {index.columns for index in catalogue.indexes if index.table == "shops"} == {("name", ""), ()}
    unique = [index for index in missing_indexes(MODEL, catalogue.indexes, outside.dialect) if index.unique]
    assert [index.create for index in unique] == [
        'CREATE UNIQUE INDEX "shops_name_key" ON "shops" ("name")',
        'CREATE UNIQUE INDEX "parcels_twin_id_key" ON "parcels" ("twin_id")',
    ]


LONG = "a" * 40


def test_indexes_have_names_of_their_own(outside: Outside) -> None:
    built = declare(f"""
class One(Resource, plural="a"):
    b_c: Annotated[int, Index()] = 0
    {LONG}_{LONG[:20]}b: Annotated[int, Index()] = 0
    {LONG}_{LONG[:20]}c: Annotated[int, Index()] = 0

class Two(Resource, plural="a-b"):
    c: Annotated[int, Index()] = 0

class Three(Resource, plural="a-b-c"):
    d: int
""").built
    assert isinstance(built, Model), built
    opened(outside, built)
    opened(outside, built, add_columns=True)
    names = [index.create.split('"')[1] for index in wanted_indexes(built, outside.dialect)]
    assert len({*names, "a", "a_b", "a_b_c"}) == len(names) + 3
    assert max(map(len, names)) <= 63
    catalogue = asyncio.run(connect(Config(database=outside.url)).catalogue())
    assert {index.name for index in catalogue.indexes} >= {*names}


def test_an_index_finds_the_rows_that_a_rule_allows() -> None:
    with asyncio.Runner() as runner, in_process(MODEL, "sqlite:///:memory:", runner) as service:
        store: Any = service.app.store
        statements: list[tuple[str, Any]] = []
        run = store.run

        async def noted(plan: Any, parameters: Any) -> Any:
            statements.append((f"EXPLAIN QUERY PLAN {plan.sql}", parameters))
            return await run(plan, parameters)

        store.run = noted
        assert service.rows("/parcels") == []
        details = [str(row[-1]) for row in store._writer.db.execute(*statements[-1])]
    assert "SEARCH _t0 USING INDEX parcels_region (region=?)" in details, details
    assert not any(each.startswith("SCAN _t0") for each in details)


def test_an_index_changes_nothing_on_the_wire() -> None:
    bare = declare("class Parcel(Resource):\n    region: str\n    access = (grant('read'),)\n").built
    indexed = declare(
        "class Parcel(Resource):\n    region: Annotated[str, Index()]\n    access = (grant('read'),)\n"
    ).built
    assert isinstance(bare, Model) and isinstance(indexed, Model)
    assert print_schema(build_schema(bare.view_as("anonymous"))) == print_schema(
        build_schema(indexed.view_as("anonymous"))
    )


# mistakes


def test_an_index_where_it_means_nothing_is_refused() -> None:
    assert_reported("""
class T(Resource):
    name: Annotated[str, Index(), Unique()]  #! T.name: a unique value has an index already | Remove Index()
    data: Annotated[Json, Index()]  #! T.data: Index means nothing on JSON | Remove it
    other: Annotated[T | None, Index()] = None  #! T.other: a relation has an index already | Remove Index()
    bare: Annotated[str, Index]  #! T.bare: Index is not called | Write Index(…)
    twice: Annotated[str, Index(), Index()]  #! T.twice: Index is given 2 times | Leave one

    @computed
    def made(self) -> Annotated[str, Index()]:  #! T.made: Index means nothing on a computed field | Remove it
        return self.bare
""")


# what a rule wants


VIEWER = """
class Member(Viewer):
    region: str | None = None
    regions: tuple[str, ...] = ()


class Owner(Resource):
    word: str = ""


class Place(Resource):
    owner: Owner
    region: str
    size: Annotated[int | None, Min(0)] = None
    code: Annotated[str, Unique()]
    kind: Annotated[str, Index()]
    flag: bool = False
    key: Id | None = None
    parts: list[Part] = inverse("place")

    @computed
    def line(self) -> str:
        return self.region + "!"

    @allow({about})
    def shown(self, viewer: Member) -> bool:
        return {rule}


class Part(Resource):
    place: Place
    user: Owner
    text: str
"""
ADVISED = {
    "self.region == viewer.region": ["region"],
    "viewer.region == self.region": ["region"],
    "one_of(self.region, viewer.regions)": ["region"],
    "self.region == 'x'": ["region"],
    "one_of(self.region, 'x', 'y')": ["region"],
    "self.key == viewer.id": ["key"],
    "(self.size > 3) & (self.region == 'x')": ["size", "region"],
    "self.size <= 3": ["size"],
    "self.flag | (self.region == viewer.region)": ["region"],
    "viewer.has(admin) | ((self.region == viewer.region) & not_(self.flag))": ["region"],
    "some(self.parts, lambda part: part.user.id == viewer.id) | (self.region == 'x')": ["region"],
    "self.id == viewer.id": [],
    "self.owner.id == viewer.id": [],
    "self.code == 'x'": [],
    "self.kind == viewer.region": [],
    "self.created_at < datetime(2026, 1, 1, tzinfo=UTC)": [],
    "self.flag": [],
    "not_(self.flag)": [],
    "is_null(self.region)": [],
    "self.region != 'x'": [],
    "contains(self.region, 'x')": [],
    "self.region == self.code": [],
    "self.line == 'x'": [],
    "self.owner.word == 'x'": [],
    "may_read(self.owner)": [],
    "some(self.parts, lambda part: part.text == 'x')": [],
    "(self.owner.id == viewer.id) & (self.region == 'x')": [],
    "((self.kind == 'a') | (self.code == 'b')) & (self.region == 'x')": [],
    "((self.kind == 'a') | self.flag) & (self.region == 'x')": ["region"],
}


def advised(rule: str, about: str = '"read"') -> list[str]:
    built = declare(VIEWER.replace("{rule}", rule).replace("{about}", about)).built
    assert isinstance(built, Model), built
    return [advice.split()[0].removeprefix("Place.") for advice in advise(built.resources)]


@cases("rule", ADVISED)
def test_a_column_that_a_read_rule_searches_by_wants_an_index(rule: str) -> None:
    assert advised(rule) == ADVISED[rule]


@pytest.mark.parametrize("about", ['"update", "create", "delete"', '"read", field="code"'])
def test_rules_that_find_no_rows_want_none(about: str) -> None:
    assert advised("self.region == 'x'", about) == []


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("region: str", "region: Annotated[str, Index()]"),
        ("region: str | None = None", "region: Annotated[str | None, Index()]"),
        ("region: Annotated[str, MaxLen(3)]", "region: Annotated[str, MaxLen(3), Index()]"),
        ("region: Annotated[str, MaxLen(3)] | None", "region: Annotated[Annotated[str, MaxLen(3)] | None, Index()]"),
    ],
)
def test_the_fix_is_what_to_write(line: str, fix: str) -> None:
    body = """
    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return self.region == "x"
"""
    bare = declare(f"class Place(Resource):\n    {line}\n{body}").built
    assert isinstance(bare, Model), bare
    (advice,) = advise(bare.resources)
    assert advice.endswith(f" has no index. Write {fix}")
    mended = declare(f"class Place(Resource):\n    {fix}\n{body}").built
    assert isinstance(mended, Model), mended
    assert advise(mended.resources) == []


def test_the_default_model_wants_nothing() -> None:
    assert advise(default.resources) == []


# the command

PLACES = """from __future__ import annotations

from typing import Annotated

from diptych import Index, Model, Resource, Viewer, allow


class Base(Resource):
    region: str


class Shop(Base):
    name: Annotated[str, Index()]

    @allow("read")
    def same_region(self, viewer: Viewer) -> bool:
        return self.region == "north"


model = Model(Shop)
"""
WORKS = "The model works: 1 resource (Shop), roles anonymous, signed_in.\n"
ADVICE = (
    "Warning: Shop.region (places.py:9) is compared in the rule Shop.same_region and has no index. "
    "Write region: Annotated[str, Index()]\n"
)


def test_check_warns_of_a_column_without_an_index(command: Command, tmp_path: Path) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    done = command("check", "places:model")
    assert (done.returncode, done.stdout, done.stderr) == (0, WORKS + ADVICE, "")


def test_check_has_nothing_to_say_of_a_database_that_diptych_made(command: Command, database: str) -> None:
    opened(Outside(database), default)
    done = command("check", "--database", database)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The model works: 4 resources") and done.stdout.count("\n") == 1


def test_check_tells_how_to_make_the_indexes_that_a_database_lacks(command: Command, outside: Outside) -> None:
    opened(outside, default)
    drop(outside, "posts_author_id", "comments_post_id")
    before = outside.catalogue()
    done = command("check", "--database", outside.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [
        'Warning: The database has no index on posts.author_id. Run CREATE INDEX "posts_author_id" ON "posts" ("author_id", id);',
        'Warning: The database has no index on comments.post_id. Run CREATE INDEX "comments_post_id" ON "comments" ("post_id", id);',
    ]
    assert outside.catalogue() == before  # it only looks
    for line in done.stdout.splitlines()[1:]:
        outside.sql(line.partition(" Run ")[2].rstrip(";"))
    assert command("check", "--database", outside.url).stdout.count("\n") == 1


def test_check_tells_of_a_value_that_a_database_does_not_keep_unique(command: Command, outside: Outside) -> None:
    opened(outside, default)
    if outside.is_sqlite:
        text = outside.sql("SELECT sql FROM sqlite_schema WHERE name = 'users'")[0][0].replace(
            'UNIQUE ("email")', "CHECK (1)"
        )
        outside.sql(f"PRAGMA foreign_keys = OFF; DROP TABLE users; {text}")
    else:
        outside.sql("ALTER TABLE users DROP CONSTRAINT users_email_key")
    done = command("check", "--database", outside.url)
    statement = 'CREATE UNIQUE INDEX "users_email_key" ON "users" ("email")'
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.splitlines()[0]
        == "The database does not fit the model: the database does not keep users.email unique."
    )
    assert done.stderr.splitlines()[-1] == f"{statement};"
    outside.sql(statement)
    assert command("check", "--database", outside.url).stdout.count("\n") == 1


def test_check_refuses_a_database_that_does_not_fit(command: Command, outside: Outside) -> None:
    opened(outside, default)
    drop(outside, "posts_author_id")
    outside.sql("ALTER TABLE posts DROP COLUMN published")
    done = command("check", "--database", outside.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("The database does not fit the model: the column posts.published (")


def test_check_makes_no_tables_and_no_file(command: Command, new_database: NewDatabase, tmp_path: Path) -> None:
    database = new_database()
    done = command("check", "--database", "sqlite:///none.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "The SQLite database none.db cannot be opened: unable to open database file.\n"
    assert not (tmp_path / "none.db").exists()
    if database.startswith("postgresql"):
        assert command("check", "--database", database).returncode == 0
        assert Outside(database).sql("SELECT count(*) FROM pg_class WHERE relname = 'users'") == [(0,)]
    assert command("check", "--database", "sqlite:///:memory:").returncode == 2
