"""Lists and value objects in a database: `dev` adds their columns, and `serve` and `check` name what differs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from diptych import Model, Resource, Value, grant
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.fitting import Fitted
from diptych.errors import StartError
from tests.support.in_process import in_process


class Address(Value):
    """Where something is."""

    city: str
    street: str | None = None


def old() -> Model:
    class Thing(Resource):
        name: str
        access = (grant("read", "create"),)

    return Model(Thing)


def new() -> Model:
    class Thing(Resource):
        name: str
        marks: list[str] | None = None
        address: Address | None = None
        access = (grant("read", "create"),)

    return Model(Thing)


def of_numbers() -> Model:
    class Thing(Resource):
        name: str
        marks: list[int] | None = None
        address: Address | None = None
        access = (grant("read", "create"),)

    return Model(Thing)


def opened(model: Model, url: str, **how: Any) -> Fitted:
    async def work() -> Fitted:
        store = connect(Config(database=url))
        try:
            return await store.open(model, **how)
        finally:
            await store.close()

    return asyncio.run(work())


def looked(model: Model, url: str) -> list[str]:
    """What `check --database` compares."""
    return [difference.sentence for difference in asyncio.run(connect(Config(database=url)).look(model))]


def test_columns_of_lists_and_values_are_added_and_compared(database: str) -> None:
    opened(old(), database)
    missing = looked(new(), database)
    assert any("things.marks" in each for each in missing) and any("things.address" in each for each in missing), (
        missing
    )
    with pytest.raises(StartError, match=r"things\.(marks|address)"):
        opened(new(), database)
    done = " ".join(opened(new(), database, add_columns=True).done)
    assert "things.marks" in done and "things.address" in done
    assert looked(new(), database) == [] and opened(new(), database).done == ()
    with asyncio.Runner() as runner, in_process(new(), database, runner) as service:
        body = b'{"name": "a", "marks": ["x"], "address": {"city": "Oslo"}}'
        made = service.send("POST", "/things", body=body, headers={"content-type": "application/json"})
        assert made.status == 201 and made.json()["address"] == {"city": "Oslo", "street": None}
    assert any("things.marks" in each for each in looked(of_numbers(), database)), "a list of other values"
    with pytest.raises(StartError, match=r"things\.marks"):
        opened(of_numbers(), database)
