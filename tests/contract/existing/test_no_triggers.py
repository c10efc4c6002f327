"""`--no-triggers`: no trigger is put on a table, and what needs the feed is refused with a sentence."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated

import pytest

from diptych import Column, Counter, Model, Resource, auto, grant
from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import StartError
from tests.support.existing import run_sql
from tests.support.in_process import in_process
from tests.support.running import NewDatabase


class Person(Resource, table="tbl_person"):
    """Has names of its own."""

    full_name: Annotated[str, Column("UsrName")]

    access = (grant("read", "create", "update"),)


class Numbered(Resource):
    """Needs a trigger."""

    number: Annotated[int, Counter()] = auto()

    access = (grant("read"),)


class Kept(Resource, trash=timedelta(days=1)):
    """Needs one too."""

    name: str

    access = (grant("read"),)


MODEL = Model(Person)


def triggers_of(database: str) -> list[tuple[object, ...]]:
    if database.startswith("sqlite"):
        return run_sql(database, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    return run_sql(database, "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal")


def test_a_service_without_a_feed(new_database: NewDatabase) -> None:
    database = new_database()
    run_sql(database, "SELECT 1")  # it is used, so that its tables are not copied from elsewhere
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, triggers=False) as service:
        made = service.send_json("POST", "/persons?fields=id,version", {"fullName": "Ann"})
        assert made.status == 201, made.body
        changed = service.send_json(
            "PATCH", f"/persons/{made.json()['id']}?fields=fullName,version", {"fullName": "Bo"}
        )
        assert changed.json() == {"fullName": "Bo", "version": 2}
        refused = service.get("/persons/changes")
        assert (refused.status, refused.json()["detail"]) == (
            404,
            "Changes of persons are not recorded, and cannot be followed.",
        )
        assert "/persons/changes" not in service.get("/openapi.json").json()["paths"]
        schema = service.data("{ __schema { subscriptionType { name } } }")
        assert schema == {"__schema": {"subscriptionType": None}}
    assert triggers_of(database) == []


def test_no_command_makes_them(new_database: NewDatabase) -> None:
    """Whatever opens the database with this setting."""
    database = new_database()
    run_sql(database, "SELECT 1")

    async def opened() -> None:
        store = connect(Config(database=database, triggers=False))
        await store.open(MODEL)
        await store.close()

    asyncio.run(opened())
    assert triggers_of(database) == []


def test_names_of_ones_own_have_a_feed(new_database: NewDatabase) -> None:
    """A table and a column under other names, which Diptych made: changes are logged as everywhere."""
    database = new_database()
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        made = service.send_json("POST", "/persons?fields=id", {"fullName": "Ann"}).json()["id"]
        run_sql(database, """UPDATE tbl_person SET "UsrName" = 'Bo'""")
        changes = service.get("/persons/changes?fields=fullName").json()["data"]
        assert [(change["kind"], change["rowId"]) for change in changes] == [("CREATED", made), ("UPDATED", made)]
        assert changes[1]["person"] == {"fullName": "Bo"}
    assert triggers_of(database)


@pytest.mark.parametrize(("cls", "needs"), [(Numbered, "a counter"), (Kept, "a trash")])
def test_what_needs_triggers_is_refused(new_database: NewDatabase, cls: type[Resource], needs: str) -> None:
    store = connect(Config(database=new_database(), triggers=False))
    with pytest.raises(StartError, match=f"{cls.__name__} has {needs}, and needs triggers"):
        asyncio.run(store.open(Model(cls)))
    asyncio.run(store.close())
