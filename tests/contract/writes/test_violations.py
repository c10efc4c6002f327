"""What the database itself refuses, also by constraints that its owner made by hand, is a refusal and never an error."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Iterator
from typing import Annotated, Any

import apsw
import asyncpg
import pytest

from diptych import Index, MaxLen, Model, OnDelete, Resource, Unique, grant
from diptych.db.postgres.store import PostgresStore
from diptych.db.postgres.violations import VIOLATIONS, kind_in_postgres
from diptych.db.postgres.writer import BROKEN
from diptych.db.violations import refusal_of, violation_of_sqlite
from diptych.errors import Code
from tests.support.effort import LONG
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase


class Item(Resource, ids="integer"):
    """A row that constraints by hand are about."""

    name: Annotated[str, Unique()]
    code: Annotated[str, Index()] = ""
    short: Annotated[str | None, MaxLen(512), Unique()] = None
    note: str = ""
    price: int = 0
    parent: Annotated[Item | None, OnDelete("cascade")] = None

    access = (grant("read", "create", "update", "delete"),)


RANDOM = random.Random(8)
FUNCTION = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN NEW; END $$"
TRIGGER = "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION refuse()"
BY_HAND: dict[str, list[str]] = {
    "sqlite check": ["ALTER TABLE items ADD COLUMN by_hand INTEGER CHECK (price < 100)"],
    "sqlite raise": [
        "CREATE TRIGGER refuse BEFORE {} ON items WHEN NEW.price >= 100 BEGIN SELECT RAISE(ABORT, 'a secret'); END"
    ],
    "postgres check": ["ALTER TABLE items ADD CONSTRAINT secret CHECK (price < 100)"],
    "postgres domain": [
        "CREATE DOMAIN cheap AS integer CHECK (VALUE < 100)",
        "ALTER TABLE items ALTER COLUMN price TYPE cheap",
    ],
    "postgres not null": [
        "ALTER TABLE items ADD COLUMN by_hand integer NOT NULL GENERATED ALWAYS AS "
        "(CASE WHEN price < 100 THEN 1 END) STORED"
    ],
    "postgres range": ["ALTER TABLE items ADD COLUMN by_hand smallint GENERATED ALWAYS AS (price * 1000) STORED"],
    "postgres raise": [FUNCTION.format("IF NEW.price >= 100 THEN RAISE EXCEPTION 'a secret'; END IF;"), TRIGGER],
    "postgres own code": [
        FUNCTION.format("IF NEW.price >= 100 THEN RAISE 'a secret' USING ERRCODE = 'ZZ999'; END IF;"),
        TRIGGER,
    ],
    "postgres deferred": [
        FUNCTION.format("IF NEW.price >= 100 THEN RAISE EXCEPTION 'a secret'; END IF;"),
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON items DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(Model(Item), new_database(), runner) as found:
        yield found


def send(service: Service, method: str, url: str, body: Any) -> Answer:
    return service.send(method, url, body=json.dumps(body).encode(), headers={"content-type": "application/json"})


def is_postgres(service: Service) -> bool:
    return isinstance(service.app.store, PostgresStore)


@pytest.mark.parametrize(
    ("new_database", "case"), [(case.split()[0], case) for case in BY_HAND], indirect=["new_database"], ids=[*BY_HAND]
)
def test_a_constraint_by_hand_is_told_as_a_bare_fact(service: Service, case: str) -> None:
    assert send(service, "POST", "/items", {"name": "a", "price": 20}).status == 201
    for statement in BY_HAND[case]:
        for event in ("INSERT", "UPDATE") if "{}" in statement else ("",):
            service.execute(statement.replace("{}", event).replace("refuse BEFORE", f"refuse{event} BEFORE"))
    answers = [
        send(service, "POST", "/items", {"name": "b", "price": 200}),
        send(service, "PATCH", "/items/1", {"price": 200}),
        send(service, "PUT", "/items/1", {"name": "a", "price": 200}),
        service.query('mutation { updateItem(id: "1", patch: {price: 200}) { id } }'),
    ]
    assert [each.status for each in answers[:3]] == [422] * 3
    for answer in answers:
        assert answer.code == "BAD_USER_INPUT", answer.body
        assert b"The database does not accept these values." in answer.body and b"secret" not in answer.body
        assert b"price" not in answer.body
    assert send(service, "POST", "/items", {"name": "c", "price": 21}).status == 201
    assert [row["price"] for row in service.rows("/items")] == [20, 21]


@pytest.mark.parametrize("new_database", ["postgres"], indirect=True)  # SQLite has no exclusion constraints
def test_a_row_that_conflicts_with_another_by_hand_is_a_conflict(service: Service) -> None:
    service.execute("ALTER TABLE items ADD CONSTRAINT secret EXCLUDE USING btree (price WITH =)")
    assert send(service, "POST", "/items", {"name": "a"}).status == 201
    answer = send(service, "POST", "/items", {"name": "b"})
    assert (answer.status, answer.code) == (409, "CONFLICT") and b"secret" not in answer.body


# what an index can hold


def incompressible(length: int) -> str:
    return "".join(chr(RANDOM.randrange(0x4E00, 0x9FA0)) for _ in range(length // 3)) + "x" * (length % 3)


@pytest.mark.parametrize("field", ["name", "code"])
def test_text_with_an_index_has_as_many_bytes_as_every_index_can_hold(service: Service, field: str) -> None:
    fits, long = incompressible(2048), incompressible(2049)
    made = send(service, "POST", "/items", {"name": "a", field: fits})
    assert made.status == 201, made.body
    for answer in (
        send(service, "POST", "/items", {"name": "b", field: long}),
        send(service, "PATCH", "/items/1", {field: long}),
    ):
        assert (answer.status, answer.places) == (422, [f"/{field}"])
        assert "at most 2048 bytes" in answer.json()["errors"][0]["message"]
    patch = 'mutation($patch: ItemPatch!) { updateItem(id: "1", patch: $patch) { id } }'
    answer = service.query(patch, {"patch": {field: long}})
    assert (answer.status, answer.places) == (422, [f"/variables/patch/{field}"])
    schema = service.get("/openapi.json").json()["components"]["schemas"]["ItemCreate"]["properties"]
    assert schema[field]["maxLength"] == 2048 and "2048 bytes" in schema[field]["description"]
    assert schema["short"]["maxLength"] == 512 and "bytes" not in schema["short"].get("description", "")


def test_text_that_an_index_by_hand_cannot_hold_is_refused(service: Service) -> None:
    service.execute("CREATE INDEX by_hand ON items (note)")
    answer = send(service, "POST", "/items", {"name": "a", "note": incompressible(9000)})
    if is_postgres(service):
        assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
        assert b"too long for an index" in answer.body and b"by_hand" not in answer.body
    else:
        assert answer.status == 201


# how deep a cascade goes


@pytest.fixture
def patient(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    """A service that waits for a statement as long as a busy machine takes for it."""
    with in_process(Model(Item), new_database(), runner, statement_timeout=100.0, request_timeout=100.0) as found:
        yield found


@pytest.mark.slow
def test_a_cascade_of_any_depth_is_done_or_refused_as_a_conflict(patient: Service) -> None:
    service = patient
    for depth, most in ((900, 204), (1_100, 409), *((20_000, 409),) * LONG):
        service.execute("DELETE FROM items WHERE parent_id IS NULL AND id > 1000000")
        rows = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {depth})"
        start = depth * 100_000
        service.execute(
            f"{rows} INSERT INTO items (id, name, code, note, price, parent_id) SELECT {start} + i, 'n' || {start} + i, '', "
            f"'', 0, CASE WHEN i > 1 THEN {start} + i - 1 END FROM n"
        )
        answer = service.send("DELETE", f"/items/{start + 1}")
        assert answer.status in (204, most), answer.body
        if depth == 900 or (is_postgres(service) and depth == 1_100):
            assert answer.status == 204
        if answer.status == 409:
            assert answer.code == "CONFLICT" and b"begin with the lowest" in answer.body
            lower = service.send("DELETE", f"/items/{start + depth - 100}")
            assert lower.status == 204, lower.body


# the tables of errors


def test_every_error_of_the_drivers_is_a_violation_or_known_as_something_else() -> None:
    """A class that a driver adds is looked at by someone before it is an internal error."""
    ours = {
        "ConnectionNotClosedError",
        "ConnectionClosedError",
        "CursorClosedError",
        "BindingsError",
        "ExecTraceAbort",
        "ExecutionCompleteError",
        "ExtensionLoadingError",
        "ForkingViolationError",
        "IncompleteExecutionError",
        "InvalidContextError",
        "NoFTS5Error",
        "ThreadingViolationError",
        "VFSFileClosedError",
        "VFSNotImplementedError",
        "UseAfterFreeError",
        "MisuseError",
        "InternalError",
        "NotFoundError",
        "NoLFSError",
        "AuthError",
        "FormatError",
        "RangeError",
        "PermissionsError",
        "EmptyError",
        "AbortError",
        "SchemaChangeError",
        "SQLError",
        "Error",
    }
    passing = {
        "InterruptError",
        "BusyError",
        "LockedError",
        "IOError",
        "CantOpenError",
        "FullError",
        "TooBigError",
        "NoMemError",
        "CorruptError",
        "ReadOnlyError",
        "NotADBError",
        "ProtocolError",
    }
    names = {name for name, each in vars(apsw).items() if inspect.isclass(each) and issubclass(each, apsw.Error)}
    assert names - ours - passing == {"ConstraintError", "MismatchError"}
    assert violation_of_sqlite(apsw.SQLError("triggers nested too deep")) is not None
    assert violation_of_sqlite(apsw.SQLError("no such table")) is None
    kinds = {kind_in_postgres(each("x")) for each in VIOLATIONS}
    assert {refusal_of(kind).code for kind in kinds} == {Code.CONFLICT, Code.BAD_USER_INPUT, Code.UNAVAILABLE}
    roots = {each for each in asyncpg.PostgresError.__subclasses__() if getattr(each, "sqlstate", None)}
    ruled = (
        *VIOLATIONS,
        *BROKEN,
        asyncpg.TransactionRollbackError,
        asyncpg.InsufficientResourcesError,
        asyncpg.InvalidTransactionStateError,
    )
    assert {each.__name__ for each in roots if not issubclass(each, ruled)} <= LEFT


# errors of the service itself, of its set-up, of a database that fails, or of a broken function of its owner
LEFT = {
    "SQLStatementNotYetCompleteError",
    "FeatureNotSupportedError",
    "InvalidTransactionInitiationError",
    "LocatorError",
    "InvalidGrantorError",
    "InvalidRoleSpecificationError",
    "DiagnosticsError",
    "InvalidArgumentForXqueryError",
    "CaseNotFoundError",
    "CardinalityViolationError",
    "InvalidCursorStateError",
    "InvalidSQLStatementNameError",
    "InvalidAuthorizationSpecificationError",
    "DependentPrivilegeDescriptorsStillExistError",
    "InvalidTransactionTerminationError",
    "SQLRoutineError",
    "InvalidCursorNameError",
    "ExternalRoutineError",
    "ExternalRoutineInvocationError",
    "SavepointError",
    "InvalidCatalogNameError",
    "InvalidSchemaNameError",
    "SyntaxOrAccessError",
    "ObjectNotInPrerequisiteStateError",
    "PostgresSystemError",
    "SnapshotTooOldError",
    "ConfigFileError",
    "FDWError",
    "InternalServerError",
}
