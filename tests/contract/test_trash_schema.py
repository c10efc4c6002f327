"""A class gets a trash, and loses it again: what `dev` changes in a database, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated

import pytest

from diptych import Model, Resource, Unique, grant, unique
from diptych.testing import Api, serve
from tests.contract.test_schema_changes import report_of
from tests.support.mistakes import assert_reported
from tests.unit.compile.test_tables import Outside

_ALL = (grant("read", "create", "update", "delete"),)


def shop(trash: timedelta | None) -> Model:
    class Item(Resource, trash=trash):
        name: Annotated[str, Unique()]
        place: int = 0
        access = _ALL
        keys = (unique("name", "place"),)

    return Model(Item)


@pytest.fixture
def outside(database: str) -> Outside:
    return Outside(database)


@contextmanager
def serving(model: Model, outside: Outside) -> Iterator[Api]:
    with serve(model, database=outside.url) as api:
        yield api


def test_a_trash_is_added_and_taken_away(outside: Outside) -> None:
    with_trash, without = shop(timedelta(days=1)), shop(None)
    with serving(without, outside) as api:
        item = api.anonymous.post("/items", {"name": "A"}).expect(201).json()["id"]
    assert "the column items.deleted_at" in report_of(with_trash, outside)
    done = report_of(with_trash, outside, add_columns=True)
    assert "Added the column items.deleted_at." in done
    assert "Dropped the key of all rows of items (name)." in done
    assert report_of(with_trash, outside) == ""
    with serving(with_trash, outside) as api:
        api.anonymous.delete(f"/items/{item}").expect(204)
        api.anonymous.post("/items", {"name": "A"}).expect(201)
    refused = "the table items holds deleted rows, and the model has no trash for them"
    assert refused in report_of(without, outside)
    assert refused in report_of(without, outside, add_columns=True)
    outside.sql("DELETE FROM items WHERE deleted_at IS NOT NULL")
    report_of(without, outside, add_columns=True)
    with serving(without, outside) as api:
        api.anonymous.post("/items", {"name": "A"}).expect(409)


def test_what_is_deleted_along_needs_a_trash_too() -> None:
    assert_reported(
        """
class Folder(Resource, trash=timedelta(days=1)):
    name: str

class Sheet(Resource):
    folder: Annotated[Folder, OnDelete("cascade")]  #! Sheet.folder: a Folder can be restored | Sheet(Resource, trash=

class Slot(Resource, trash=30):  #! Slot: trash=30 is no time of whole seconds | Write trash=timedelta(days=30)
    name: str

class Void(Resource, trash=timedelta(0)):  #! Void: is no time of whole seconds | Write trash=timedelta(days=30)
    name: str

class Own(Resource, trash=timedelta(days=1)):
    deleted_at: str  #! Own.deleted_at: the name deletedAt is also that of 'deleted_at' | Rename one


"""
    )
