"""Defaults that are another value for each row: `now()` and `today()`. What only looks like one is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from graphql import print_schema

from diptych import Model
from diptych.api.graphql.schema import build_schema
from diptych.config import Config
from diptych.db.connect import connect
from diptych.errors import StartError
from tests.support.in_process import Service, in_process
from tests.support.mistakes import assert_reported
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

TICKET = """
class Ticket(Resource):
    title: str = ""
    opened: datetime = now()
    day: date = today()
    seen: datetime | None = now()

    @action
    @classmethod
    async def make(cls, tx: Tx) -> Ticket:
        return await tx.save(Ticket(title="made"))

    @action
    @classmethod
    async def make_old(cls, tx: Tx) -> Ticket:
        return await tx.save(Ticket(title="old", opened=datetime(2020, 1, 1, tzinfo=UTC)))

    access = (grant("read", "create", "update"),)
"""
BARE = "class Ticket(Resource):\n    title: str = ''\n    access = (grant('read', 'create'),)\n"


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(TICKET)


@pytest.fixture
def service(model: Model, database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, database, runner) as service:
        yield service


def sent(service: Service, method: str, path: str, value: Any) -> Any:
    headers = {"content-type": "application/json"}
    return service.send(method, path, headers=headers, body=json.dumps(value).encode())


def is_now(moment: str) -> bool:
    return abs(datetime.now(UTC) - datetime.fromisoformat(moment)) < timedelta(minutes=1)


def test_every_row_has_its_own_moment_in_both_styles(service: Service) -> None:
    by_rest = [sent(service, "POST", "/tickets", {}).json() for _ in range(2)]
    document = 'mutation { createTicket(input: {title: "x"}) { opened day seen createdAt } }'
    rows = [*by_rest, service.data(document)["createTicket"]]
    for row in rows:
        assert is_now(row["opened"]) and is_now(row["seen"])
        assert abs(datetime.fromisoformat(row["opened"]) - datetime.fromisoformat(row["createdAt"])) < timedelta(
            seconds=1
        )
        assert row["day"] in (row["opened"][:10], row["createdAt"][:10])
    assert len({row["opened"] for row in rows}) == 3


def test_a_value_that_is_given_counts_and_null_does_not(service: Service) -> None:
    given = {"opened": "2020-01-31T12:00:00.000000Z", "day": "2020-01-31", "seen": None}
    row = sent(service, "POST", "/tickets", given).json()
    assert {name: row[name] for name in given} == given
    assert sent(service, "POST", "/tickets", {"opened": None}).status == 422
    answer = service.query("mutation { createTicket(input: {opened: null}) { id } }")
    assert answer.code == "BAD_USER_INPUT"
    assert sent(service, "PATCH", f"/tickets/{row['id']}", {"title": "y"}).json()["opened"] == given["opened"]


def test_code_of_the_model_and_sql_get_it_too(service: Service) -> None:
    assert is_now(sent(service, "POST", "/tickets/make", {}).json()["opened"])
    assert sent(service, "POST", "/tickets/make-old", {}).json()["opened"].startswith("2020-01-01")
    service.execute("INSERT INTO tickets (id, title) VALUES ('00000000-0000-7000-8000-000000000001', 'sql')")
    row = service.get("/tickets/00000000-0000-7000-8000-000000000001").json()
    assert is_now(row["opened"]) and row["day"] in (str(datetime.now(UTC).date()), row["opened"][:10])


def test_the_documents_of_both_styles_say_so(service: Service, model: Model) -> None:
    text = print_schema(build_schema(model.view_as("anonymous")))
    created = text[text.index("input TicketCreate") :]
    assert '"""If omitted, it is the time of the write."""\n  opened: DateTime\n' in created
    document = service.get("/openapi.json").json()["components"]["schemas"]["TicketCreate"]
    assert "required" not in document
    assert "default" not in document["properties"]["opened"]
    assert document["properties"]["opened"]["description"].startswith("If omitted, it is the time of the write.")
    patch = service.get("/openapi.json").json()["components"]["schemas"]["TicketPatch"]
    assert "Left out" not in json.dumps(patch)


def test_a_column_of_this_kind_is_added_where_it_can_be(new_database: NewDatabase, model: Model) -> None:
    def opened(model: Model, outside: Outside) -> tuple[str, ...]:
        async def work() -> tuple[str, ...]:
            store = connect(Config(database=outside.url))
            try:
                return (await store.open(model, add_columns=True)).done
            finally:
                await store.close()

        return asyncio.run(work())

    bare = model_of(BARE)
    empty, full = Outside(new_database()), Outside(new_database())
    for outside in (empty, full):
        opened(bare, outside)
    full.sql("INSERT INTO tickets (id) VALUES ('00000000-0000-7000-8000-000000000001')")
    assert len(opened(model, empty)) == 3
    if full.is_sqlite:
        with pytest.raises(StartError, match=r"tickets\.opened .* is missing, and the rows that are there"):
            opened(model, full)
    else:
        assert len(opened(model, full)) == 3
        assert full.sql("SELECT opened IS NULL FROM tickets") == [(False,)]


def test_what_the_file_computes_is_refused_with_what_to_write() -> None:
    once = "computed once, when the file is read: all rows would have that value"
    assert_reported(
        f"""
from uuid import uuid4
import random
import time
START = datetime.now(UTC)

class Mixin:
    begun: datetime = datetime.now(UTC)  #! T.begun: datetime.now(UTC) is {once} | Write = now()

class T(Mixin, Resource):
    opened: datetime = datetime.now(UTC)  #! T.opened: datetime.now(UTC) is {once} | Write = now()
    later: datetime = datetime.now(UTC) + dt.timedelta(days=1)  #! T.later: {once} | Write = now()
    day: date = date.today()  #! T.day: date.today() is {once} | Write = today()
    other: dt.date = dt.date.today()  #! T.other: {once} | Write = today()
    start: datetime = START  #! T.start: the default is the moment at which the file was read | Write = now()
    key: str = str(uuid4())  #! T.key: str(uuid4()) is {once} | A default is one value, or now() or today()
    luck: int = random.randint(1, 6)  #! T.luck: {once} | A default is one value
    at: float = time.time()  #! T.at: {once} | A default is one value
    made: datetime = datetime.now  #! T.made: the default is a function, and not a value | A default is one value
    text: str = now()  #! T.text: now() is no String | Declare it as a datetime for now()
    noon: date = now()  #! T.noon: now() is no Date | as a date for today()
    one: Annotated[datetime, Unique()] = now()  #! T.one: now() gives rows of one moment the same value | Remove Unique()

    @action
    async def remind(self, tx: Tx, at: datetime = datetime.now(UTC)) -> None:  #! T.remind: its argument 'at': datetime.now(UTC) is computed once | Write at: … | None = None
        pass

    @action
    async def wait(self, tx: Tx, *, until: datetime = now()) -> None:  #! T.wait: its argument 'until': the default is now(), and not a value | A default is one value
        pass
""".replace("… | None = None", "…")
    )


def test_constants_stay_defaults() -> None:
    model_of("""
class T(Resource):
    born: date = date(2026, 1, 31)
    at: datetime = datetime(2026, 1, 31, tzinfo=UTC)
    total: Annotated[Decimal, Digits(8, 2)] = Decimal("1.50")
    size: int = max(1, 2)
    data: Json = dict(a=[1])
""")


def test_a_row_does_not_share_its_default_with_others() -> None:
    model = model_of(
        "class T(Resource):\n    data: Json = []\n    day: date = today()\n    access = (grant('read'),)\n"
    )
    cls: Any = model.resources["T"].cls
    one, other = cls(), cls()
    one.data.append(1)
    assert other.data == [] == model.resources["T"].fields["data"].default
    with pytest.raises(AttributeError, match=r"T\.day is not known before the row is saved"):
        _ = one.day
