"""Constraints of a class as a whole: unique keys over several fields, partial ones, and checks across fields."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any

import pytest

from diptych import Model, ReadBy, Resource, Role, check, given, grant, index, inverse, is_null, not_, unique
from diptych.errors import Mistake
from tests.contract.test_schema_changes import report_of
from tests.support.in_process import Answer, Service, in_process
from tests.support.mistakes import mistakes_in
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

boss = Role("boss")


class Team(Resource, ids="integer"):
    """A team."""

    name: str
    members: list[Membership] = inverse("team")

    access = (grant("read", "create"),)


class Membership(Resource, ids="integer"):
    """Someone's time in a team."""

    team: Team
    person: str
    since: date
    until: date | None = None
    left: bool = False
    limit: Annotated[int, ReadBy(boss)] = 10
    used: int = 0

    access = (grant("read", "create", "update", "delete"),)
    keys = (unique("team", "person", "since"), index("team", "since"))

    @check("It must end after it began.")
    def in_order(self) -> bool:
        return is_null(self.until) | (self.since <= given(self.until))

    @check("SLA: 'used' is {at most} the limit")
    def within(self) -> bool:
        return self.used <= self.limit

    @unique("team", "person")
    def one_open(self) -> bool:
        return not_(self.left)


MODEL = Model(Team, Membership)
ONE = {"teamId": "1", "person": "Ann", "since": "2026-01-01"}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(MODEL, new_database(), runner) as found:
        assert send(found, "POST", "/teams", {"name": "A"}).status == 201
        yield found


def send(service: Service, method: str, url: str, body: Any) -> Answer:
    return service.send(method, url, body=json.dumps(body).encode(), headers={"content-type": "application/json"})


def create(service: Service, **values: Any) -> Answer:
    return send(service, "POST", "/memberships", {**ONE, **values})


def faults(answer: Answer) -> list[tuple[str, str]]:
    return [(fault["pointer"], fault["message"]) for fault in answer.json()["errors"]]


TOGETHER = "another one has these values together"


def test_values_that_are_unique_together_conflict_at_each_of_them(service: Service) -> None:
    assert create(service, left=True).status == 201
    assert create(service, left=True, since="2026-01-02").status == 201
    answer = create(service, left=True)
    assert (answer.status, answer.code) == (409, "CONFLICT")
    assert answer.json()["detail"] == "Another one has these values."
    assert faults(answer) == [("/teamId", TOGETHER), ("/person", TOGETHER), ("/since", TOGETHER)]
    moved = send(service, "PATCH", "/memberships/2", {"since": "2026-01-01"})
    assert (moved.status, faults(moved)) == (409, [("/since", TOGETHER)])
    query = 'mutation { createMembership(input: {teamId: "1", person: "Ann", since: "2026-01-01", left: true}) { id } }'
    error = service.query(query).json()["errors"][0]
    assert error["extensions"]["code"] == "CONFLICT"
    assert [fault["argument"][-1] for fault in error["extensions"]["errors"]] == ["teamId", "person", "since"]


def test_a_partial_key_holds_among_the_rows_of_its_condition(service: Service) -> None:
    assert create(service).status == 201
    answer = create(service, since="2026-02-01")
    assert (answer.status, faults(answer)) == (409, [("/teamId", TOGETHER), ("/person", TOGETHER)])
    other = create(service, since="2026-02-01", left=True)
    assert other.status == 201
    back = send(service, "PATCH", other.headers["location"], {"left": False})
    assert back.status == 409
    assert send(service, "PATCH", "/memberships/1", {"left": True}).status == 200
    assert send(service, "PATCH", other.headers["location"], {"left": False}).status == 200


def test_of_two_violated_keys_both_stores_report_the_first(service: Service) -> None:
    assert create(service).status == 201
    assert [place for place, _ in faults(create(service))] == ["/teamId", "/person", "/since"]


ORDER = "it must end after it began"


def test_a_broken_check_is_told_at_each_of_its_fields_that_was_sent(service: Service) -> None:
    answer = create(service, until="2025-12-31")
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")
    assert faults(answer) == [("/since", ORDER), ("/until", ORDER)]
    assert create(service, until="2026-01-01").status == 201
    for method, body in (("PATCH", {"until": "2025-12-31"}), ("PUT", {**ONE, "until": "2025-12-31"})):
        answer = send(service, method, "/memberships/1", body)
        assert answer.status == 422, answer.body
        assert ("/until", ORDER) in faults(answer)
    query = 'mutation { updateMembership(id: "1", patch: {until: "2025-12-31"}) { id } }'
    error = service.query(query).json()["errors"][0]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert error["extensions"]["errors"] == [{"argument": ["updateMembership", "patch", "until"], "message": ORDER}]
    assert send(service, "PATCH", "/memberships/1", {"person": "Bea"}).status == 200


def test_checks_are_told_together_and_keep_the_case_of_an_acronym(service: Service) -> None:
    answer = create(service, until="2025-12-31", used=11)
    sla = "SLA: 'used' is {at most} the limit"
    assert faults(answer) == [("/since", ORDER), ("/until", ORDER), ("/used", sla)]


def test_a_check_sees_hidden_fields_and_names_only_what_was_sent(service: Service) -> None:
    assert create(service).status == 201
    answer = send(service, "PATCH", "/memberships/1", {"used": 11})
    assert answer.status == 422
    assert [place for place, _ in faults(answer)] == ["/used"]
    assert b"/limit" not in answer.body


def test_the_database_enforces_them_on_writers_from_outside(service: Service) -> None:
    assert create(service).status == 201
    for change in ("until = '2025-12-31'", "used = 11"):
        with pytest.raises(Exception, match=r"(?i)check"):
            service.execute(f"UPDATE memberships SET {change}")
    assert create(service, person="Bea").status == 201
    with pytest.raises(Exception, match=r"(?i)unique"):
        service.execute("UPDATE memberships SET person = 'Ann'")


# a database that is there

THING = """
class Thing(Resource, ids="integer"):
    a: int = 0
    b: int = 0
    access = (grant("read", "create", "update"),)
"""
CHECK = """
    @check("A is at most b.")
    def in_order(self) -> bool:
        return self.a <= self.b
"""
KEY = """
    keys = (unique("a", "b"), index("b", "a"))

    @unique("b")
    def positive(self) -> bool:
        return self.a > 0
"""
BARE, CHECKED, LOOSER, KEYED = (model_of(THING + more) for more in ("", CHECK, CHECK.replace("<=", "!="), KEY))


@pytest.fixture
def outside(database: str) -> Outside:
    return Outside(database)


def test_dev_adds_changes_and_drops_a_check(outside: Outside) -> None:
    report_of(BARE, outside)
    outside.sql("INSERT INTO things (a, b) VALUES (1, 2)")
    assert report_of(CHECKED, outside) == ""  # it is enforced all the same
    assert report_of(CHECKED, outside, add_columns=True) == "Made things check that a is at most b."
    assert report_of(CHECKED, outside, add_columns=True) == ""
    with pytest.raises(Exception, match=r"(?i)check"):
        outside.sql("UPDATE things SET a = 3")
    assert "the table things has the check things_in_order_" in report_of(LOOSER, outside)
    assert report_of(LOOSER, outside, add_columns=True).count("things_in_order_") == 1
    outside.sql("UPDATE things SET a = 3")
    assert "things_in_order_" in report_of(BARE, outside, add_columns=True)
    assert report_of(BARE, outside) == ""


def test_rows_that_break_a_new_check_are_named(outside: Outside) -> None:
    report_of(BARE, outside)
    outside.sql("INSERT INTO things (a, b) VALUES (3, 2)")
    assert report_of(CHECKED, outside) == "" == report_of(CHECKED, outside, add_columns=True)  # left to its owner
    outside.sql("UPDATE things SET a = 1")
    assert report_of(CHECKED, outside, add_columns=True) == "Made things check that a is at most b."


def test_dev_adds_keys_and_serve_refuses_without_them(outside: Outside) -> None:
    report_of(BARE, outside)
    for pair in ((1, 2), (1, 2), (0, 5), (0, 5)):
        outside.sql(f"INSERT INTO things (a, b) VALUES {pair}")
    refused = report_of(KEYED, outside)
    assert "the database does not keep things (a, b) unique" in refused
    assert "the database does not keep things.b unique where the condition of its key holds" in refused
    assert "and rows have equal values there" in report_of(KEYED, outside, add_columns=True)
    outside.sql("DELETE FROM things WHERE id IN (2, 4)")
    assert report_of(KEYED, outside, add_columns=True) == (
        "Made things (a, b) unique. Made an index on things (b, a). "
        "Made things.b unique where the condition of its key holds."
    )
    assert report_of(KEYED, outside) == "" == report_of(KEYED, outside, add_columns=True)
    assert report_of(BARE, outside) == ""


def test_replacing_a_row_from_outside_is_seen_by_the_feed(runner: asyncio.Runner, new_sqlite: NewDatabase) -> None:
    """PostgreSQL has no INSERT OR REPLACE."""
    with in_process(MODEL, new_sqlite(), runner) as service:
        assert send(service, "POST", "/teams", {"name": "A"}).status == 201
        assert create(service).status == 201
        service.execute(
            "INSERT OR REPLACE INTO memberships (id, team_id, person, since) VALUES (7, 1, 'Ann', '2026-01-01')"
        )
        kinds = [row["kind"] for row in service.send("GET", "/memberships/changes").json()["data"]]
        assert kinds == ["CREATED", "DELETED", "CREATED"]


# mistakes in a model file


MISTAKEN = """
class Other(Resource):
    word: str
    t: T
    access = (grant("read"),)

class T(Resource):
    a: int
    b: str
    extra: Json
    other: Other | None = None
    others: list[Other] = inverse("t")
    access = (grant("read"),)
    keys = ({keys})

    @check("It is fine.")
    def fine(self) -> bool:
        return {check}

"""


@pytest.mark.parametrize(
    ("keys", "cause"),
    [
        ('unique("a", "nope"),', "T has no field 'nope'"),
        ('unique("a", "a"),', "a key names each of its fields once"),
        ("unique(),", "a key names each of its fields once"),
        ('unique("extra"),', "'extra' cannot be part of a key"),
        ('unique("others"),', "T has no field 'others'"),
        ('unique("b", "a"), unique("a", "b")', "the key of a, b is declared twice"),
        ('"a",', "keys is no tuple of unique() and index()"),
    ],
)
def test_mistakes_of_keys_are_told(keys: str, cause: str) -> None:
    assert [mistake.cause for mistake in mistaken(keys, "self.a > 0")] == [cause]


@pytest.mark.parametrize(
    ("check", "cause"),
    [
        ("self.other.word == self.b", "it asks about more than the fields of its own row; write a rule with @allow"),
        ("some(self.others)", "it asks about more than the fields of its own row; write a rule with @allow"),
        ('contains(self.b, "x")', "a search in a text cannot be a constraint of the database"),
        ("self.a > 0 and self.a < 9", "'and' cannot be traced to SQL; write &"),
        ("self.a", "a condition is wanted, and this is of type Int; compare it"),
    ],
)
def test_mistakes_of_checks_are_told(check: str, cause: str) -> None:
    assert [mistake.cause for mistake in mistaken("", check)] == [cause]


def mistaken(keys: str, check: str) -> tuple[Mistake, ...]:
    return mistakes_in(MISTAKEN.format(keys=keys, check=check))
