"""On tables that others made, the engine answers random Asks as the oracle does, on both stores.

The models are those of Northwind, Chinook and Pagila, with rules that were written by hand: natural keys, keys of two
columns, integer keys, junction tables, enums, rules through relations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from diptych import Model
from diptych.api.graphql.translate import translate
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.scalars import DATE
from diptych.policy.limits import Checks
from tests.contract.existing import chinook, northwind, pagila
from tests.support.effort import scaled
from tests.support.existing import make_existing, run_sql
from tests.support.oracle import key_text
from tests.support.proof import Proof
from tests.support.reading import parsed
from tests.support.running import NewDatabase

EXAMPLES = scaled(300, 8)
TEXTS = ("Ann", "ann", "Żal", "a,b%", 'x"y', "\\", "", "zz", "Ä")
DAYS = {"rented": ("2026-01-02", "2026-01-03", "2025-12-31"), "returned": ("2026-01-03", "2026-02-01")}


class Schema(NamedTuple):
    """A schema, its model by hand, and the tables that are emptied before, in this order."""

    model: Model
    tables: tuple[str, ...]
    more: str = ""
    """What rows refer to, and no class has."""


SCHEMAS = {
    "northwind": Schema(
        northwind.MODEL,
        (
            *(
                "Crate Lines",
                "Crates",
                "Shipments",
                "Order Details",
                "Orders",
                "Products",
                "Suppliers",
                "EmployeeTerritories",
                "Territories",
                "Region",
            ),
            "Customers",
        ),
    ),
    "chinook": Schema(
        Model(chinook.Artist, chinook.Album, chinook.Genre, chinook.Track, chinook.Playlist, chinook.PlaylistTrack),
        ("InvoiceLine", "PlaylistTrack", "Playlist", "Track", "Genre", "Album", "Artist", "MediaType"),
        'INSERT INTO "MediaType" ("MediaTypeId", "Name") VALUES '
        + ", ".join(f"({number}, 'M{number}')" for number in range(1, 9)),
    ),
    "pagila": Schema(
        pagila.MODEL,
        (
            *("rental", "inventory", "customer", "store", "film_category", "film_actor", "film", "actor", "category"),
            "language",
        ),
    ),
}


class ExistingProof(Proof):
    """One data set in tables that were there before."""

    def __init__(self, model: Model, store: Store, runner: asyncio.Runner) -> None:
        self.model = model
        self.rows = _Maker(model, Random(7)).rows
        self.engine = Engine(model, store, Checks(), secret=b"secret")
        self.runner = runner
        runner.run(store.open(model))
        runner.run(_load(store, model, self.rows))
        for resource in model.resources.values():
            digest = self._versions(store, resource)
            for row in self.rows[resource.name]:
                row["version"] = digest[str(row["id"])]

    def viewers(self) -> Mapping[str, Viewer]:
        return {"anonymous": self.model.anonymous, "admin": self.model.viewer(frozenset({"admin"}))}

    def _versions(self, store: Store, resource: ResourceDef) -> dict[str, int]:
        """The version of each row, by its id."""
        viewer = self.viewers()["admin"]
        view = self.model.view(self.model.signature(viewer))
        operation = translate(*parsed(f"{{ {resource.many}(first: 100) {{ id version }} }}"), {}, view)
        ready = self.engine.prepare(operation.wish, view, Code.BAD_USER_INPUT)

        async def answered() -> Sequence[bytes | None]:
            return await self.engine.answer(ready, {}, viewer)

        (answer,) = self.runner.run(answered())
        return {row["id"]: row["version"] for row in msgspec.json.decode(answer or b"null")}


def _in_order(model: Model) -> Iterator[ResourceDef]:
    """Every resource after those that its rows may refer to."""
    left = dict(model.resources)
    while left:
        for name, resource in [*left.items()]:
            targets = {each.target for each in resource.relations.values() if each.kind == "one"}
            if not targets & (left.keys() - {name}):
                yield left.pop(name)


async def _load(store: Store, model: Model, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    for resource in _in_order(model):
        names = [field.name for field in resource.fields.values() if field.stored]
        await store.insert(resource, names, [[row[name] for name in names] for row in rows[resource.name]])


class _Maker:
    """Random rows of a model."""

    def __init__(self, model: Model, random: Random) -> None:
        self.random = random
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in model.resources}
        self.keys = {
            name: [
                next(field.name for field in resource.fields.values() if field.stored and field.column == column)
                for column in resource.key_columns
            ]
            for name, resource in model.resources.items()
        }
        for resource in _in_order(model):
            for number in range(9):
                stored = {name: field for name, field in resource.fields.items() if field.stored}
                row = {name: self._value(resource, field, number) for name, field in stored.items()}
                names = {field.column: name for name, field in stored.items()}
                self._refer(resource, row, names)
                if len(resource.key_columns) > 1:
                    row["id"] = key_text([row[names[column]] for column in resource.key_columns])
                if row["id"] not in {other["id"] for other in self.rows[resource.name]}:
                    self.rows[resource.name].append(row)

    def _refer(self, resource: ResourceDef, row: dict[str, Any], names: Mapping[str, str]) -> None:
        """Make references by several columns lead to rows that are there; one of them is null at times."""
        for relation in resource.relations.values():
            if relation.kind == "one" and relation.columns:
                target = self.random.choice(self.rows[relation.target])
                keys = self.keys[relation.target]
                for column, key in zip(relation.columns, keys, strict=True):
                    row[names[column]] = target[key]
                if relation.nullable and self.random.random() < 0.4:
                    row[names[self.random.choice(relation.columns)]] = None
                parts = [row[names[column]] for column in relation.columns]
                row[relation.name + "Id"] = None if None in parts else key_text(parts)

    def _value(self, resource: ResourceDef, field: FieldDef, number: int) -> Any:
        random, kind = self.random, field.scalar.python
        if field.name == "id":
            return number + 1 if kind is int else f"{random.choice(TEXTS)}{number}"
        if field.nullable and random.random() < 0.3:
            return None
        if field.relation:
            there = self.rows[resource.relations[field.relation].target]
            return random.choice(there)["id"] if there else None
        if field.scalar.choices:
            return random.choice(field.scalar.choices)
        if field.scalar is DATE:
            return random.choice(DAYS[field.name])
        if kind is str:
            return random.choice(TEXTS) + (str(number) if field.unique or field.name == "email" else "")
        if field.name == "releaseYear":
            return random.randrange(2000, 2004)
        if kind is float:
            return random.choice((0.99, 1.0, 2.25, 0.1))
        return random.choice((True, False)) if kind is bool else random.randrange(1, 9)


@pytest.fixture(params=SCHEMAS)
def proof(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[ExistingProof]:
    schema = SCHEMAS[request.param]
    database = make_existing(new_database(), request.param)
    for table in schema.tables:
        run_sql(database, f'DELETE FROM "{table}"')
    if schema.more:
        run_sql(database, schema.more)
    store = connect(Config(database=database))
    with asyncio.Runner() as runner:
        yield ExistingProof(schema.model, store, runner)
        runner.run(store.close())


@pytest.mark.parametrize("viewer", ["anonymous", "admin"])
def test_random_asks(proof: ExistingProof, viewer: str) -> None:
    proof.prove(proof.viewers()[viewer], EXAMPLES)
