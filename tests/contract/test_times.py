"""The current time in rules and computed fields, arithmetic with it, and the types of times: alike on both databases."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from diptych import Model
from tests.support.in_process import Answer, Service, in_process
from tests.support.mistakes import assert_reported
from tests.support.model_files import model_of

TASKS = """
import uuid
from datetime import time, timedelta

class Task(Resource, public=60):
    name: str = ""
    due: datetime | None = None
    day: date = today() + timedelta(days=2)
    until: datetime = now() + timedelta(days=7)
    at: time = time(8, 30)
    lasts: timedelta = timedelta(hours=1, microseconds=5)
    key: uuid.UUID | None = None

    @computed
    def overdue(self) -> bool:
        return self.due < now()

    @computed(public=5)
    def past(self) -> bool:
        return self.day < today() - timedelta(days=1)

    @computed
    def later(self) -> datetime | None:
        return self.due + timedelta(days=1, microseconds=999_999)

    @computed
    def earlier(self) -> datetime | None:
        return self.due - timedelta(hours=36)

    @computed
    def eve(self) -> date:
        return self.day - timedelta(days=1)

    @computed
    def ahead(self) -> timedelta:
        return self.day - date(2026, 1, 31)

    @computed
    def gap(self) -> timedelta | None:
        return datetime(2026, 1, 31, tzinfo=UTC) - self.due

    @action
    async def move(self, tx: Tx, by: timedelta, at: time = time(9), key: uuid.UUID | None = None) -> timedelta:
        assert isinstance(self.lasts, timedelta) and isinstance(self.at, time)
        self.lasts, self.at, self.key = self.lasts + by, at, key
        await tx.save(self)
        return self.lasts

    access = (grant("read", "create", "update"),)


class Note(Resource):
    text: str = ""
    opens: datetime = now()

    @allow("read", "create")
    def open(self, viewer: Viewer) -> bool:
        return (self.opens <= now()) & (self.opens > now() - timedelta(days=7)) & (now() - self.opens < timedelta(days=9))
"""
DUES = (
    "2020-02-29T23:59:59.000001Z",
    "2020-02-29T00:00:00.000000Z",
    "9999-12-31T23:59:59.000001Z",
    "0001-01-01T00:00:00.000000Z",
    "1582-10-10T12:00:00.123456Z",
    "2026-01-31T00:00:00.000001Z",
)
LENGTHS = ("PT0S", "PT0.000001S", "-PT0.5S", "P7D", "-P1DT2H3M4.567891S", "PT1H", "PT59M", "P106751991DT4H54.775807S")


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(TASKS)


@pytest.fixture
def service(model: Model, database: str) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, database, runner) as service:
        yield service


def sent(service: Service, method: str, path: str, value: Any) -> Answer:
    return service.send(method, path, headers={"content-type": "application/json"}, body=json.dumps(value).encode())


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shifted(text: str, delta: timedelta) -> str:
    """What Python computes, within the years that there are."""
    try:
        return (moment(text) + delta).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except OverflowError:
        return "9999-12-31T23:59:59.999999Z" if delta > timedelta() else "0001-01-01T00:00:00.000000Z"


def test_arithmetic_is_exact_to_the_microsecond(service: Service) -> None:
    for due in DUES:
        row = sent(service, "POST", "/tasks", {"due": due, "day": due[:10]}).json()
        assert row["later"] == shifted(due, timedelta(days=1, microseconds=999_999))
        assert row["earlier"] == shifted(due, timedelta(hours=-36))
        assert row["eve"] == (shifted(due[:10] + "T00:00:00Z", timedelta(days=-1)))[:10]
        assert row["ahead"] == iso(date.fromisoformat(due[:10]) - date(2026, 1, 31))
        assert row["gap"] == iso(datetime(2026, 1, 31, tzinfo=UTC) - moment(due))
        assert row["overdue"] == (moment(due) < datetime.now(UTC)) and row["past"] == row["overdue"]
    row = sent(service, "POST", "/tasks", {}).json()
    assert (row["later"], row["gap"], row["overdue"]) == (None, None, False)


def iso(delta: timedelta) -> str:
    """The canonical form, by Python's own arithmetic."""
    text = "-P" if delta < timedelta() else "P"
    delta = abs(delta)
    hours, rest = divmod(delta.seconds, 3600)
    seconds = f"{rest % 60}.{delta.microseconds:06}".rstrip("0").rstrip(".")
    parts = [(hours, "H"), (rest // 60, "M"), ("" if seconds == "0" else seconds, "S")]
    clock = "".join(f"{number}{unit}" for number, unit in parts if number)
    text += (f"{delta.days}D" if delta.days else "") + (f"T{clock}" if clock else "")
    return "PT0S" if text == "P" else text


def test_an_overdue_flag_filters_sorts_and_shows_in_both_styles(service: Service) -> None:
    for due in (*DUES, None):
        sent(service, "POST", "/tasks", {"due": due})
    expected = {due for due in DUES if moment(due) < datetime.now(UTC)}
    assert {row["due"] for row in service.rows("/tasks?overdue=true")} == expected
    document = "{ tasks(where: {overdue: {eq: true}}) { due overdue } }"
    assert {row["due"] for row in service.data(document)["tasks"] if row["overdue"]} == expected
    by_rest = [row["overdue"] for row in service.rows("/tasks?sort=-overdue&fields=overdue")]
    by_graphql = [row["overdue"] for row in service.data("{ tasks(orderBy: {overdue: DESC}) { overdue } }")["tasks"]]
    assert by_rest == by_graphql == [True] * len(expected) + [False] * (7 - len(expected))
    pages, url = [], "/tasks?sort=overdue,-lasts&first=3&fields=due"
    while url:
        page = service.get(url).json()
        pages += [row["due"] for row in page["data"]]
        url = (
            f"/tasks?sort=overdue,-lasts&first=3&fields=due&after={page['page']['next']}"
            if page["page"]["next"]
            else ""
        )
    assert len(pages) == len(set(pages)) == 7


def test_an_answer_that_depends_on_the_time_is_not_public_unless_the_field_says_so(service: Service) -> None:
    ages = {"name": "public, max-age=60", "overdue": "private, no-cache", "past": "public, max-age=5"}
    for name, age in ages.items():
        assert service.get(f"/tasks?fields={name}").headers["cache-control"] == age
    assert service.get("/tasks?fields=name&overdue=true").headers["cache-control"] == "private, no-cache"
    assert service.get("/tasks?fields=name&sort=overdue").headers["cache-control"] == "private, no-cache"


def due_soon(service: Service) -> tuple[str, Answer]:
    """The address of a task that will be overdue soon, and how it is until then, also where the machine is slow."""
    for seconds in (0.4, 1.6, 6.4, 25.6):
        soon = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        url = f"/tasks/{sent(service, 'POST', '/tasks', {'due': soon}).json()['id']}?fields=version,overdue"
        if not (before := service.get(url)).json()["overdue"]:
            return url, before
    raise AssertionError("a task whose time has not come is overdue")


@pytest.mark.slow
def test_the_tag_of_a_row_changes_when_time_alone_changes_it(service: Service) -> None:
    url, before = due_soon(service)
    while not (after := service.get(url, headers={"if-none-match": before.headers["etag"]})).body:
        assert after.status == 304
        time.sleep(0.02)
    assert after.status == 200 and after.json() == {"version": 1, "overdue": True}
    headers = {"content-type": "application/json", "if-match": before.headers["etag"]}  # the row is the same
    assert service.send("PATCH", url.partition("?")[0], headers=headers, body=b'{"name": "x"}').status == 200


def test_a_rule_of_the_time_holds_when_it_is_asked(service: Service) -> None:
    now = datetime.now(UTC)
    for hours, status in ((-1, 201), (1, 401), (-24 * 8, 401)):
        opens = (now + timedelta(hours=hours)).isoformat()
        assert sent(service, "POST", "/notes", {"opens": opens}).status == status
    service.execute(
        "INSERT INTO notes (id, opens) VALUES ('00000000-0000-7000-8000-000000000001', '2020-01-01T00:00:00.000000Z')"
    )
    assert len(service.rows("/notes")) == 1


@pytest.mark.slow
def test_time_that_passes_makes_no_event_and_a_change_is_judged_by_the_time_it_is_read(service: Service) -> None:
    followed = service.follow("subscription { taskChanged(where: {overdue: {eq: true}}) { kind task { name } } }")
    url, _ = due_soon(service)
    service.settle()
    followed.bodies.clear()  # of those that were due at once
    while not service.get(url).json()["overdue"]:
        time.sleep(0.02)
    service.settle()
    assert followed.events == []
    sent(service, "PATCH", url.partition("?")[0], {"name": "late"})
    service.settle()
    assert followed.events == [{"kind": "UPDATED", "task": {"name": "late"}}]


def test_durations_times_and_uuids_have_one_form_filters_and_a_sort(service: Service) -> None:
    for length in LENGTHS:
        assert sent(service, "POST", "/tasks", {"lasts": length}).json()["lasts"] == length
    listed = [row["lasts"] for row in service.rows("/tasks?sort=lasts&fields=lasts")]
    assert listed[:2] == ["-P1DT2H3M4.567891S", "-PT0.5S"] and listed[-2:] == ["P7D", "P106751991DT4H54.775807S"]
    assert [row["lasts"] for row in service.rows("/tasks?lasts[gt]=PT60M&sort=lasts&fields=lasts")] == listed[-2:]
    assert len(service.rows("/tasks?lasts=PT60M")) == 1 and len(service.rows("/tasks?lasts[in]=PT60M,P1W")) == 2
    other = {"lasts": "+P1W", "at": "23:59", "key": "9B2D7A3E-5C1F-4E8A-B6D0-2F4C8E1A7B93"}
    row = sent(service, "POST", "/tasks", other).json()
    assert (row["lasts"], row["at"], row["key"]) == ("P7D", "23:59:00.000000", other["key"].lower())
    where = f'{{at: {{gt: "12:00"}}, key: {{in: ["{other["key"]}"]}}, lasts: {{eq: "P7D"}}}}'
    assert service.data(f"{{ tasks(where: {where}) {{ at }} }}")["tasks"] == [{"at": row["at"]}]
    faults = {"lasts": "P1M", "at": "24:00", "key": "x"}
    assert sent(service, "POST", "/tasks", faults).places == ["/at", "/lasts", "/key"]
    for name, value in faults.items():
        assert service.get(f"/tasks?{name}={value}").status == 400
        assert service.query(f'{{ tasks(where: {{{name}: {{eq: "{value}"}}}}) {{ id }} }}').status == 400
    called = sent(service, "POST", f"/tasks/{row['id']}/move", {"by": "-P1D", "key": other["key"]})
    assert called.json() == "P6D" and service.get(f"/tasks/{row['id']}").json()["at"] == "09:00:00.000000"
    document = f'mutation {{ moveTask(id: "{row["id"]}", by: "PT0.25S", at: "00:00") }}'
    assert service.data(document) == {"moveTask": "P6DT0.25S"}


def test_defaults_lie_ahead(service: Service) -> None:
    row = sent(service, "POST", "/tasks", {}).json()
    assert abs(moment(row["until"]) - moment(row["createdAt"]) - timedelta(days=7)) < timedelta(seconds=1)
    assert date.fromisoformat(row["day"]) - datetime.now(UTC).date() in (timedelta(days=1), timedelta(days=2))


def test_the_documents_name_the_types(service: Service) -> None:
    schemas = service.get("/openapi.json").json()["components"]["schemas"]
    shown = schemas["Task"]["allOf"][1]["properties"]
    assert {name: shown[name]["format"] for name in ("at", "lasts")} == {"at": "time-local", "lasts": "duration"}
    assert "uuid" in shown["key"]["format"] and shown["overdue"]["readOnly"]


def test_what_cannot_be_computed_is_reported() -> None:
    assert_reported("""
from datetime import timedelta

class T(Resource):
    day: date
    at: datetime
    name: str

    @computed
    def a(self) -> date:  #! T.a: only whole days can be added to a date
        return self.day + timedelta(hours=1)

    @computed
    def b(self) -> str:  #! T.b: a timedelta cannot be added to a value of type String
        return self.name + timedelta(hours=1)

    @computed
    def c(self) -> datetime:  #! T.c: at most 1,000 years can be added or subtracted
        return self.at + timedelta(days=400_000)

    @computed
    def d(self) -> bool:  #! T.d: Date and DateTime cannot be compared
        return self.day < now()

    @check("It is not over.")
    def e(self) -> bool:  #! T.e: it asks about more than the fields of its own row
        return self.at > now()

    soon: date = today() + timedelta(hours=1)  #! T.soon: only whole days can be added to a date
""")
