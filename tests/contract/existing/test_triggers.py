"""`triggers=True`: changes of tables that others made are followed, whoever makes them, until the triggers are taken off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from diptych import Audited, Column, Config, Diptych, Model, OnDelete, Resource, Role, Viewer, allow, grant, inverse
from diptych.errors import ModelError, Refusal
from diptych.identity.owner import fixed_owner
from diptych.webhooks import dispatcher, manage, service
from tests.contract.existing import northwind, pagila
from tests.contract.existing.test_existing import send
from tests.support.existing import catalogue_of, make_existing, run_sql
from tests.support.in_process import Service, in_process
from tests.support.running import Command, NewDatabase
from tests.support.webhooks import Receiver

admin = Role("admin")
OPEN = (grant("read"), grant("create", "update", "delete", to=admin))


class Customer(Resource, table="Customers", key="CustomerID", ids="text", managed=False, triggers=True):
    """Has a key that people know."""

    company: Annotated[str, Column("CompanyName")]
    contact: Annotated[str | None, Column("Contact Name")] = None
    orders: list[Order] = inverse("customer")

    access = OPEN


class Order(Resource, table="Orders", key="OrderID", ids="integer", managed=False, triggers=True):
    """Has a number that the database makes."""

    customer: Annotated[Customer | None, Column("CustomerID")] = None
    lines: list[OrderLine] = inverse("order")

    access = OPEN


class OrderLine(Resource, table="Order Details", key=("OrderID", "ProductID"), managed=False, triggers=True):
    """Has a key of two columns."""

    order: Annotated[Order, Column("OrderID"), OnDelete("cascade")]
    product_id: Annotated[int, Column("ProductID")]
    quantity: Annotated[int, Column("Quantity")]
    note: Annotated[str | None, Column("Note")] = None

    access = OPEN


class Supplier(Resource, table="Suppliers", key="SupplierID", ids="integer", managed=False):
    """Has no triggers."""

    company: Annotated[str, Column("CompanyName")]

    access = OPEN


class Note(Resource, audit=Audited()):
    """Is of Diptych."""

    text: str

    access = OPEN


MODEL = Model(Customer, Order, OrderLine, Supplier)
AUDITED = Model(Customer, Order, OrderLine, Note)
HERE = "tests.contract.existing.test_triggers:MODEL"


class Film(Resource, table="film", key="film_id", ids="integer", managed=False, triggers=True):
    """Only some are seen by all."""

    title: str
    release_year: int | None = None
    rating: Annotated[pagila.Rating | None, Column("rating", type="mpaa_rating")] = pagila.Rating.G

    access = (grant("read", "update", "delete", to=admin),)

    @allow("read")
    def for_all(self, viewer: Viewer) -> bool:
        return self.rating != pagila.Rating.R


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    return make_existing(new_database(), "northwind")


@pytest.fixture
def shop(database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        yield service


def told(service: Service, path: str, fields: str) -> list[tuple[str, str, Any]]:
    """The changes of a resource: of each its kind, its row, and what is shown of that."""
    service.settle()
    changes = service.changes(f"/{path}/changes?fields={fields}&first=100")["data"]
    rows = [next((value for value in change.values() if isinstance(value, dict)), None) for change in changes]
    return [(change["kind"], change["rowId"], row) for change, row in zip(changes, rows, strict=True)]


def test_changes_of_a_table_with_a_natural_key(shop: Service, database: str) -> None:
    assert send(shop, "POST", "/customers", {"id": "a,b", "company": "Made"}).status == 201
    run_sql(database, """UPDATE "Customers" SET "Contact Name" = 'Bo' WHERE "CustomerID" = 'a,b'""")
    run_sql(database, """UPDATE "Customers" SET "CustomerID" = 'MOVED' WHERE "CustomerID" = 'a,b'""")
    run_sql(database, """DELETE FROM "Customers" WHERE "CustomerID" = 'MOVED'""")
    assert [change[:2] for change in told(shop, "customers", "company")] == [
        ("CREATED", "a,b"),
        ("UPDATED", "a,b"),
        ("DELETED", "a,b"),
        ("CREATED", "MOVED"),
        ("DELETED", "MOVED"),
    ]


def test_changes_of_a_key_of_several_columns(shop: Service, database: str) -> None:
    run_sql(database, """INSERT INTO "Order Details" VALUES (2, 2, 7, 'x')""")
    run_sql(database, """UPDATE "Order Details" SET "Quantity" = 8 WHERE "OrderID" = 2 AND "ProductID" = 2""")
    changes = told(shop, "order-lines", "id,quantity,version")
    version = shop.get("/order-lines/2,2?fields=version").json()["version"]
    assert [change[:2] for change in changes] == [("CREATED", "2,2"), ("UPDATED", "2,2")]
    assert changes[1][2] == {"id": "2,2", "quantity": 8, "version": version}
    assert changes[0][2]["version"] != version
    shop.execute("""DELETE FROM "Order Details" WHERE "OrderID" = 2 AND "ProductID" = 2""")
    assert [change[2] for change in told(shop, "order-lines", "id")] == [None] * 3, "another line of the order is there"
    shop.execute("""DELETE FROM "Orders" WHERE "OrderID" = 1""")  # and its lines, by the foreign key
    assert sorted(change[:2] for change in told(shop, "order-lines", "id")[3:]) == [
        ("DELETED", "1,1"),
        ("DELETED", "1,2"),
    ]


def test_a_subscription_follows_sql_from_outside(shop: Service, database: str) -> None:
    followed = shop.follow(
        """subscription { orderLineChanged(where: {quantity: {gt: 5}}) { kind rowId orderLine { quantity } } }"""
    )
    run_sql(database, """UPDATE "Order Details" SET "Quantity" = 6 WHERE "OrderID" = 2""")
    run_sql(database, """UPDATE "Order Details" SET "Quantity" = 5 WHERE "OrderID" = 1 AND "ProductID" = 1""")
    shop.settle()
    assert followed.events == [
        {"kind": "UPDATED", "rowId": "2,1", "orderLine": {"quantity": 6}},
        {"kind": "LEFT", "rowId": "1,1", "orderLine": None},
    ]


def test_a_cursor_resumes(shop: Service, database: str) -> None:
    run_sql(database, """UPDATE "Orders" SET "CustomerID" = 'BERGS'""")
    page = shop.changes("/orders/changes?fields=id&first=1")
    run_sql(database, """UPDATE "Orders" SET "CustomerID" = NULL WHERE "OrderID" = 1""")
    rest = shop.changes(f"/orders/changes?fields=customerId&after={page['page']['next']}")["data"]
    assert [(change["rowId"], change["order"]) for change in rest] == [
        ("2", {"customerId": "BERGS"}),
        ("1", {"customerId": None}),
    ]


def test_a_long_value_that_stays(shop: Service, database: str) -> None:
    """It is not repeated in the feed, and shown all the same."""
    run_sql(database, f"""UPDATE "Order Details" SET "Note" = '{"n" * 3000}' WHERE "OrderID" = 2""")
    run_sql(database, """UPDATE "Order Details" SET "Quantity" = 3 WHERE "OrderID" = 2""")
    run_sql(database, """UPDATE "Order Details" SET "Note" = 'short' WHERE "OrderID" = 2""")
    notes = [change[2]["note"] for change in told(shop, "order-lines", "note")]
    assert notes == ["n" * 3000, "n" * 3000, "short"]


def test_rows_that_are_replaced(shop: Service, database: str) -> None:
    """By SQL that fires no trigger for the row in its way."""
    if database.startswith("sqlite"):
        run_sql(database, """INSERT OR REPLACE INTO "Order Details" VALUES (1, 1, 99, NULL)""")
        expected = [("DELETED", "1,1"), ("CREATED", "1,1")]
    else:
        run_sql(database, 'TRUNCATE "Order Details" CASCADE')
        expected = [("DELETED", "1,1"), ("DELETED", "1,2"), ("DELETED", "2,1")]
    assert [change[:2] for change in told(shop, "order-lines", "id")] == expected


def test_a_trigger_of_the_owner(database: str) -> None:
    """It changes the row once more: the newest change has the row as it is."""
    if database.startswith("sqlite"):
        row = """"OrderID" = NEW."OrderID" AND "ProductID" = NEW."ProductID\""""
        body = f"""UPDATE "Order Details" SET "Note" = 'seen' WHERE {row};"""
        run_sql(database, f"""CREATE TRIGGER a_note AFTER UPDATE OF "Quantity" ON "Order Details" BEGIN {body} END""")
    else:
        body = "BEGIN NEW.\"Note\" := 'seen'; RETURN NEW; END"
        run_sql(
            database,
            f"""CREATE FUNCTION a_note() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$;
            CREATE TRIGGER a_note BEFORE UPDATE ON "Order Details" FOR EACH ROW EXECUTE FUNCTION a_note()""",
        )
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        run_sql(database, """UPDATE "Order Details" SET "Quantity" = 4 WHERE "OrderID" = 2""")
        assert told(service, "order-lines", "quantity,note")[-1][2] == {"quantity": 4, "note": "seen"}


def test_without_the_word_both_styles_refuse(shop: Service) -> None:
    sentence = "Changes of suppliers are not recorded, and cannot be followed."
    refused = shop.get("/suppliers/changes")
    assert (refused.status, refused.json()["detail"]) == (404, sentence)
    with pytest.raises(Refusal, match=sentence):
        shop.follow("subscription { supplierChanged { kind } }")


def test_a_model_without_any_feed(new_database: NewDatabase) -> None:
    database = make_existing(new_database(), "northwind")
    with (
        asyncio.Runner() as runner,
        in_process(northwind.MODEL, database, runner) as service,
        pytest.raises(Refusal, match="Changes of customers are not recorded"),
    ):
        service.follow("subscription { customerChanged { kind } }")


def test_no_triggers_serves_without_the_feed(database: str) -> None:
    before = not_ours(database)
    with asyncio.Runner() as runner, in_process(MODEL, database, runner, triggers=False) as service:
        assert service.get("/order-lines/1,1?fields=quantity").json() == {"quantity": 10}
        assert service.get("/order-lines/changes").status == 404
        with pytest.raises(Refusal, match="Changes of order-lines are not recorded"):
            service.follow("subscription { orderLineChanged { kind } }")
    assert not_ours(database) == before


def test_starts_leave_the_triggers_alone(database: str) -> None:
    def started() -> list[tuple[object, ...]]:
        with asyncio.Runner() as runner, in_process(MODEL, database, runner):
            return catalogue_of(database)

    assert started() == started()


def test_a_column_that_the_owner_adds(database: str) -> None:
    class Wider(Resource, table="Orders", key="OrderID", ids="integer", managed=False, triggers=True, plural="wides"):
        """Has one more column."""

        flag: Annotated[str | None, Column("Flag")] = None

        access = OPEN

    with asyncio.Runner() as runner, in_process(MODEL, database, runner):
        pass
    run_sql(database, 'ALTER TABLE "Orders" ADD COLUMN "Flag" VARCHAR(9)')
    with asyncio.Runner() as runner:
        with in_process(Model(Wider), database, runner) as service:
            run_sql(database, """UPDATE "Orders" SET "Flag" = 'red' WHERE "OrderID" = 1""")
        with in_process(MODEL, database, runner):  # an older model: its triggers log the column too
            run_sql(database, """UPDATE "Orders" SET "Flag" = 'blue' WHERE "OrderID" = 1""")
        with in_process(Model(Wider), database, runner) as service:
            assert [change[2] for change in told(service, "wides", "flag")] == [{"flag": "red"}, {"flag": "blue"}]


def not_ours(database: str) -> list[tuple[object, ...]]:
    """What a database has besides the tables of Diptych."""
    name = 1 if database.startswith("sqlite") else 0
    return [
        row for row in catalogue_of(database) if not str(row[name]).startswith(("diptych_", "sqlite_autoindex_diptych"))
    ]


def test_they_are_taken_off(database: str, command: Command) -> None:
    """By a command; who followed before gets a gap, and not silence."""
    before = not_ours(database)
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        run_sql(database, """UPDATE "Orders" SET "CustomerID" = 'BERGS'""")
        cursor = service.end_of_changes()
    listed = command("triggers", HERE, "--database", database)
    assert listed.stderr == ""
    assert listed.stdout.splitlines() == ["Customers", "Orders", "Order Details"]
    removed = command("triggers", HERE, "--remove", "--database", database)
    assert "Took the triggers off 3 tables." in removed.stderr
    assert not_ours(database) == before
    if not database.startswith("sqlite"):
        assert run_sql(database, "SELECT proname FROM pg_proc WHERE proname LIKE 'diptych_feed\\_%'") == []
    none = command("triggers", HERE, "--database", database)
    assert (none.stdout, none.stderr) == ("", "There are none.\n")
    again = command("triggers", HERE, "--remove", "--database", database)
    assert "There were none." in again.stderr
    run_sql(database, """UPDATE "Orders" SET "CustomerID" = NULL""")
    with asyncio.Runner() as runner, in_process(MODEL, database, runner) as service:
        gap = service.get(f"/orders/changes?after={cursor}")
        assert (gap.status, gap.json()["code"]) == (410, "RESUME_GAP")
        run_sql(database, """UPDATE "Orders" SET "CustomerID" = 'ALFKI' WHERE "OrderID" = 1""")
        assert told(service, "orders", "customerId") == [("UPDATED", "1", {"customerId": "ALFKI"})]


def test_webhooks(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EVERY", 0.05)
    monkeypatch.setattr(dispatcher.BACKOFF, "first", 0.1)

    async def run() -> list[Any]:
        async with Receiver() as receiver:
            app = Diptych(MODEL, config=Config(database=database, webhook_networks="127.0.0.1"))
            handler = await app.start()
            try:
                engine, url = handler.live.watch_engine, receiver.url("good")
                owner = fixed_owner(["admin"])
                await manage.add(engine, "lines", url, "order-lines", "fields=quantity", owner, allowed="127.0.0.1")
                run_sql(database, """UPDATE "Order Details" SET "Quantity" = 12 WHERE "OrderID" = 2""")
                for _ in range(500):
                    if receiver.messages["good"]:
                        break
                    await asyncio.sleep(0.02)
                return [json.loads(message.body)["data"] for message in receiver.messages["good"]]
            finally:
                await app.stop()

    (sent,) = asyncio.run(run())
    assert (sent["rowId"], sent["orderLine"]) == ("2,1", {"quantity": 12})


def test_webhooks_and_the_audit_log_go_on_after_they_were_taken_off(
    database: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EVERY", 0.05)
    there = f"{__name__}:AUDITED"

    async def serve(receiver: Receiver, *changes: str, failing: bool = False) -> None:
        app = Diptych(AUDITED, config=Config(database=database, webhook_networks="127.0.0.1"))
        handler = await app.start()
        try:
            if not await manage.statuses(app.store):
                engine, owner = handler.live.watch_engine, fixed_owner(["admin"])
                url, query = receiver.url("good"), "fields=quantity"
                await manage.add(engine, "lines", url, "order-lines", query, owner, allowed="127.0.0.1")
            for change in changes:
                run_sql(database, change)
            for _ in range(500):
                (status,) = await manage.statuses(app.store)
                if status.behind == 0 and status.pending == failing:
                    break
                await asyncio.sleep(0.02)
        finally:
            await app.stop()

    def audit_log() -> int:
        assert command("audit", "head", "--model", there, "--database", database).returncode == 0
        ((count,),) = run_sql(database, "SELECT count(*) FROM diptych_audit")
        return int(str(count))

    update = """UPDATE "Order Details" SET "Quantity" = {} WHERE "OrderID" = 2"""
    with asyncio.Runner() as runner:
        receiver = runner.run(Receiver().__aenter__())
        try:
            runner.run(serve(receiver, note(1), note(2), update.format(12)))
            receiver.statuses["good"] = 500
            runner.run(serve(receiver, update.format(13), failing=True))
            run_sql(database, note(3))
            refused = command("triggers", there, "--remove", "--database", database)
            assert refused.returncode == 2 and "diptych audit head" in refused.stderr
            assert audit_log() == 3
            removed = command("triggers", there, "--remove", "--database", database)
            assert "Took the triggers off 3 tables." in removed.stderr
            del receiver.statuses["good"]
            runner.run(serve(receiver, note(4), update.format(14)))
            assert [message.event["data"]["orderLine"]["quantity"] for message in receiver.messages["good"]] == [12, 14]
        finally:
            runner.run(receiver.__aexit__())
    assert run_sql(database, "SELECT state FROM diptych_webhook_deliveries") == [("gap",), ("gap",)]
    assert audit_log() == 4


def note(number: int) -> str:
    return f"INSERT INTO notes (id, text) VALUES ('00000000-0000-7000-8000-{number:012}', 'a')"


def test_types_of_others(new_database: NewDatabase) -> None:
    """Enums, domains, arrays and moments of the database are logged, whether the model has them or not."""

    database = make_existing(new_database(), "pagila")
    with asyncio.Runner() as runner, in_process(Model(Film), database, runner) as service:
        run_sql(database, "UPDATE film SET rating = 'R', release_year = 2008 WHERE film_id = 1")
        run_sql(database, "UPDATE film SET rating = 'PG_13' WHERE film_id = 2")
        changes = service.changes("/films/changes?fields=rating,releaseYear")["data"]
        assert [(change["kind"], change["rowId"], change["film"]) for change in changes] == [
            ("LEFT", "1", None),
            ("UPDATED", "2", {"rating": "PG_13", "releaseYear": 2006}),
        ]


@pytest.mark.parametrize(
    ("options", "cause"),
    [({"view": "x", "key": "y"}, "a view has no triggers"), ({}, "triggers= is for a table that exists")],
)
def test_where_the_word_means_nothing(options: dict[str, Any], cause: str) -> None:
    cls = type("Odd", (Resource,), {"__doc__": "Odd.", "access": (grant("read"),)}, triggers=True, **options)
    with pytest.raises(ModelError, match=cause):
        Model(cls)
