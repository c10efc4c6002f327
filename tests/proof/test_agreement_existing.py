"""On tables that others made, the engine answers random Asks as the oracle does, on both stores.

The model is that of Northwind, with rules that were written by hand: natural keys, a key of two columns, integer keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from diptych.api.graphql.translate import translate
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.policy.limits import Checks
from tests.contract.existing.northwind import MODEL
from tests.support.edge_cases import in_order, load
from tests.support.effort import scaled
from tests.support.existing import make_existing, run_sql
from tests.support.proof import Proof
from tests.support.reading import parsed
from tests.support.running import NewDatabase

EXAMPLES = scaled(300, 12)
TABLES = (
    "Order Details",
    "Orders",
    "Products",
    "Suppliers",
    "EmployeeTerritories",
    "Territories",
    "Region",
    "Customers",
)
TEXTS = ("Ann", "ann", "Żal", "a,b%", 'x"y', "\\", "", "zz", "Ä")


class ExistingProof(Proof):
    """One data set in tables that were there before."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        self.model = MODEL
        self.rows = _rows(Random(7))
        self.engine = Engine(MODEL, store, Checks(), secret=b"secret")
        self.runner = runner
        runner.run(store.open(MODEL))
        runner.run(load(store, MODEL, self.rows))
        for resource in MODEL.resources.values():
            digest = _versions(store, resource.name, runner)
            for row in self.rows[resource.name]:
                row["version"] = digest[str(row["id"])]

    def viewers(self) -> Mapping[str, Viewer]:
        return {"anonymous": MODEL.anonymous, "admin": MODEL.viewer(frozenset({"admin"}))}


def _rows(random: Random) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in MODEL.resources}
    for resource in in_order(MODEL):
        for number in range(9):
            row: dict[str, Any] = {}
            for name, field in resource.fields.items():
                if not field.stored:
                    continue
                if name == "id":
                    row[name] = number + 1 if field.scalar.python is int else f"{random.choice(TEXTS)}{number}"
                elif field.nullable and random.random() < 0.3:
                    row[name] = None
                elif field.relation:
                    row[name] = random.choice(rows[resource.relations[field.relation].target])["id"]
                elif field.scalar.python is str:
                    row[name] = random.choice(TEXTS) + (str(number) if field.unique else "")
                else:
                    row[name] = random.choice((True, False)) if field.scalar.python is bool else random.randrange(1, 9)
            if resource.name == "OrderLine":
                row["id"] = f"{row['orderId']},{row['productId']}"
            if row["id"] not in {other["id"] for other in rows[resource.name]}:
                rows[resource.name].append(row)
    return rows


def _versions(store: Store, name: str, runner: asyncio.Runner) -> dict[str, int]:
    """The version of each row, by its id."""
    resource = MODEL.resources[name]
    document = f"{{ {resource.many}(first: 100) {{ id version }} }}"
    return {row["id"]: row["version"] for row in _asked(store, document, runner)[resource.many]}


def _asked(store: Store, document: str, runner: asyncio.Runner) -> Any:

    engine = Engine(MODEL, store, Checks(), secret=b"secret")
    viewer = MODEL.viewer(frozenset({"admin"}))
    view = MODEL.view(MODEL.signature(viewer))
    operation = translate(*parsed(document), {}, view)
    ready = engine.prepare(operation.wish, view, Code.BAD_USER_INPUT)

    async def answered() -> Sequence[bytes | None]:
        return await engine.answer(ready, {}, viewer)

    (answer,) = runner.run(answered())
    return {operation.roots[0].label: msgspec.json.decode(answer or b"null")}


@pytest.fixture
def proof(new_database: NewDatabase) -> Iterator[ExistingProof]:
    database = make_existing(new_database(), "northwind")
    for table in TABLES:
        run_sql(database, f'DELETE FROM "{table}"')
    store = connect(Config(database=database))
    with asyncio.Runner() as runner:
        yield ExistingProof(store, runner)
        runner.run(store.close())


@pytest.mark.parametrize("viewer", ["anonymous", "admin"])
def test_random_asks(proof: ExistingProof, viewer: str) -> None:
    proof.prove(proof.viewers()[viewer], EXAMPLES)
