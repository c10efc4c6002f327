"""Counters: 1, 2, 3 … within a project, in both styles, on both stores, for every writer, and without holes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych import Model
from diptych.api.reply import Reply
from diptych.errors import ModelError
from diptych.serve.http.request import Request
from tests.contract.test_schema_changes import fitted, report_of
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service, in_process
from tests.support.model_files import declare, model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

WRITERS = 64
TICKETS = scaled(10_000, 320)
SOURCE = """
class Project(Resource):
    name: str
    tickets: list[Ticket] = inverse("project")
    access = (grant("read", "create", "update", "delete"),)

class Ticket(Resource):
    project: Annotated[Project, OnDelete("cascade")]
    title: Annotated[str, Unique()]
    number: Annotated[int, Counter("project")] = auto()
    serial: Annotated[BigInt, Counter(), ReadBy(staff)] = auto()

    @allow("read", "update", "delete")
    def everyone(self, viewer: Viewer) -> bool:
        return self.number > 0

    @allow("create")
    def few(self, viewer: Viewer) -> bool:
        return self.number <= 100000

class Note(Resource, ids="integer"):
    kind: str
    number: Annotated[int, Counter("kind")] = auto()
    access = (grant("read", "create", "update", "delete"),)
"""


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model_of(SOURCE), new_database(), runner) as found:
        yield found


def send(service: Service, method: str, url: str, body: Any, **headers: str) -> Answer:
    given = {"content-type": "application/json", **headers}
    return service.send(method, url, headers=given, body=json.dumps(body).encode())


def project(service: Service, name: str = "P") -> str:
    return str(send(service, "POST", "/projects", {"name": name}).json()["id"])


def create(service: Service, project: str, title: str) -> Answer:
    return send(service, "POST", "/tickets", {"projectId": project, "title": title})


def numbers(service: Service, project: str) -> list[int]:
    found, after = [], ""
    while True:
        page = service.get(f"/tickets?projectId={project}&first=100&fields=number{after}").json()
        found += [row["number"] for row in page["data"]]
        if not page["page"]["next"]:
            return sorted(found)
        after = f"&after={page['page']['next']}"


def test_each_project_counts_for_itself_in_both_styles(service: Service) -> None:
    first, second = project(service), project(service)
    assert [create(service, first, f"a{n}").json()["number"] for n in (1, 2)] == [1, 2]
    document = "mutation($p: ID!, $t: String!) { createTicket(input: {projectId: $p, title: $t}) { number } }"
    assert service.data(document, {"p": second, "t": "a3"}) == {"createTicket": {"number": 1}}
    assert service.data(document, {"p": first, "t": "a4"}) == {"createTicket": {"number": 3}}
    many = send(service, "POST", "/tickets", [{"projectId": second, "title": f"m{n}"} for n in range(3)])
    assert [row["number"] for row in many.json()] == [2, 3, 4], many.body
    steps = [
        {"id": f"s{n}", "method": "POST", "url": "/tickets", "body": {"projectId": first, "title": f"b{n}"}}
        for n in range(2)
    ]
    batch = send(service, "POST", "/batch", {"requests": steps}).json()
    assert [step["body"]["number"] for step in batch["responses"]] == [4, 5]


def test_nested_creates_and_upserts_are_numbered_too(service: Service) -> None:
    body = {"name": "N", "tickets": {"create": [{"title": "n1"}, {"title": "n2"}]}}
    here = send(service, "POST", "/projects", body).json()["id"]
    for title, status in (("n2", 200), ("n3", 201), ("n3", 200), ("n4", 201)):
        sent = send(service, "POST", "/tickets?by=title", {"projectId": here, "title": title})
        assert (sent.status, sent.json()["number"]) == (status, int(title[1])), sent.body
    assert numbers(service, here) == [1, 2, 3, 4]


def test_what_was_refused_or_rolled_back_leaves_no_hole_and_a_deleted_number_does_not_return(service: Service) -> None:
    here = project(service)
    assert create(service, here, "h1").json()["number"] == 1
    assert create(service, here, "h1").status == 409  # the title is taken
    many = [{"projectId": here, "title": title} for title in ("h2", "h3", "h1")]
    assert send(service, "POST", "/tickets", many).status == 409
    last = create(service, here, "h2").json()
    assert last["number"] == 2
    assert send(service, "DELETE", f"/tickets/{last['id']}", None).status == 204
    assert create(service, here, "h4").json()["number"] == 3


def test_it_is_read_only_and_a_row_stays_where_it_was_numbered(service: Service) -> None:
    here, there = project(service), project(service)
    row = create(service, here, "r1").json()
    url = f"/tickets/{row['id']}"
    given = send(service, "POST", "/tickets", {"projectId": here, "title": "r2", "number": 9})
    assert (given.status, given.places) == (422, ["/number"])
    assert send(service, "PATCH", url, {"number": 9}).places == ["/number"]
    moved = send(service, "PATCH", url, {"projectId": there})
    assert (moved.status, moved.places) == (422, ["/projectId"]), moved.body
    assert moved.json()["errors"][0]["message"] == "it cannot change: the row is numbered within it"
    document = "mutation($id: ID!, $p: ID!) { updateTicket(id: $id, patch: {projectId: $p}) { number } }"
    assert service.query(document, {"id": row["id"], "p": there}).code == "BAD_USER_INPUT"
    assert send(service, "PATCH", url, {"projectId": here, "title": "r3"}).json()["number"] == 1
    whole = {name: value for name, value in row.items() if name not in ("version", "updatedAt")} | {"title": "r4"}
    assert send(service, "PUT", url, {**whole, "number": 2}).places == ["/number"]
    assert send(service, "PUT", url, whole).status == 200


def test_writers_in_sql_are_numbered_too_and_their_own_numbers_are_not_given_again(service: Service) -> None:
    rows = "INSERT INTO notes (kind{}) VALUES {}"
    service.execute(rows.format("", "('a'), ('b'), ('a')"))
    service.execute(rows.format(", number", "('a', 7)"))
    service.execute("UPDATE notes SET kind = 'b' WHERE kind = 'a' AND number = 7")
    made = [send(service, "POST", "/notes", {"kind": kind}).json()["number"] for kind in "ab"]
    assert made == [8, 8]
    found = service.rows("/notes?sort=kind,number&fields=kind,number")
    assert [(row["kind"], row["number"]) for row in found] == [
        ("a", 1), ("a", 2), ("a", 8), ("b", 1), ("b", 7), ("b", 8),
    ]  # fmt: skip
    with pytest.raises(Exception, match=r"(?i)unique"):
        service.execute(rows.format(", number", "('a', 8)"))


def test_many_writers_number_without_holes(service: Service) -> None:
    projects = [project(service, f"race {n}") for n in range(3)]
    left = iter(range(TICKETS))

    async def write() -> None:
        for n in left:
            body: Any = {"projectId": projects[n % 3], "title": f"race {n}" if n % 10 else "taken"}
            if n % 7 == 0:
                body = [body, {**body, "title": f"race {n} too"}]

            async def read(most: int, body: Any = body) -> bytes:
                return json.dumps(body).encode()

            headers = {b"content-type": b"application/json"}
            reply: Reply = await service.handler.handle(Request("POST", "/tickets", "", headers, read))
            assert reply.status in (201, 409), reply.body

    async def all_of_them() -> None:
        await asyncio.gather(*(write() for _ in range(WRITERS)))

    create(service, projects[0], "taken")
    service.runner.run(all_of_them())
    counts = [numbers(service, found) for found in projects]
    assert all(found == list(range(1, len(found) + 1)) for found in counts)
    assert sum(map(len, counts)) > TICKETS * 0.9
    serials = [int(row["serial"]) for row in _serials(service)]
    assert sorted(serials) == list(range(min(serials), max(serials) + 1))


def _serials(service: Service) -> Iterator[Any]:
    token, after = service.token(None, "staff"), ""
    while True:
        page = service.get(f"/tickets?title[startsWith]=race&first=100&fields=serial{after}", token=token).json()
        yield from page["data"]
        if not page["page"]["next"]:
            return
        after = f"&after={page['page']['next']}"


PLAIN = """
class Group(Resource):
    name: str
    access = (grant("read", "create"),)

class Thing(Resource):
    group: Group
    {}
    access = (grant("read", "create"),)
"""
COUNTED = 'number: Annotated[int, Counter("group")] = auto()\n    serial: Annotated[int, Counter()] = auto()'


def test_a_counter_that_is_added_numbers_the_rows_that_are_there(database: str) -> None:
    before, after = (model_of(PLAIN.format(line)) for line in ("", COUNTED))
    outside = Outside(database)
    with asyncio.Runner() as runner, in_process(before, database, runner) as service:
        groups = [send(service, "POST", "/groups", {"name": name}).json()["id"] for name in "ab"]
        for group in (0, 1, 0):
            assert send(service, "POST", "/things", {"groupId": groups[group]}).status == 201
    assert "the column things.number (integer) is missing" in report_of(after, outside).replace("INTEGER", "integer")
    assert "Added the column things.number" in report_of(after, outside, add_columns=True)
    assert fitted(after, outside).done == ()
    with asyncio.Runner() as runner, in_process(after, database, runner) as service:
        assert [(row["number"], row["serial"]) for row in service.rows("/things")] == [(1, 1), (1, 2), (2, 3)]
        made = send(service, "POST", "/things", {"groupId": groups[0]}).json()
        assert (made["number"], made["serial"]) == (3, 4)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('number: Annotated[int, Counter("nobody")] = auto()', "Thing has no field 'nobody'"),
        ('number: Annotated[int, Counter("other")] = auto()', "'other' is nothing to count within"),
        ('number: Annotated[int, Counter("at")] = auto()', "'at' is nothing to count within"),
        ('number: Annotated[int, Counter("group")] = 1', "a counter is a whole number that the server sets"),
        ('number: Annotated[int | None, Counter("group")] = auto()', "a counter is a whole number that the server"),
        ('number: Annotated[str, Counter("group")] = auto()', "Counter means nothing on String"),
        ('number: Annotated[int, Counter("group"), Unique()] = auto()', "Unique means nothing on a counter"),
        ("number: int = auto()", "auto() is for the fields that every resource has, and for counters"),
        ("number: Annotated[int, Counter(5)] = auto()", "Counter(5) does not name a field"),
        (
            'number: Annotated[int, Counter("group")] = auto()\n\n    @check("Few.")\n'
            "    def few(self) -> bool:\n        return self.number < 9",
            "'number' is a counter, which is not known before the row is written",
        ),
    ],
)
def test_mistakes_of_a_model_file(line: str, cause: str) -> None:
    more = f"other: Group | None = None\n    at: datetime\n    {line}"
    found = declare(PLAIN.format(more)).built
    assert isinstance(found, ModelError) and cause in str(found), found


def test_a_model_without_counters_has_no_table_for_them(database: str) -> None:
    outside = Outside(database)
    fitted(model_of(PLAIN.format("")), outside)
    catalogue = "sqlite_schema" if outside.is_sqlite else "(SELECT relname AS name FROM pg_class) c"
    assert not outside.sql(f"SELECT 1 FROM {catalogue} WHERE name = 'diptych_counters'")


def test_documents_describe_it(service: Service) -> None:
    document = service.get("/openapi.json").json()["components"]["schemas"]
    assert "number" not in document["TicketCreate"]["properties"]
    assert "Set by the server: 1, 2, 3 … for each projectId." in json.dumps(document["Ticket"], ensure_ascii=False)
    types = service.data('{ c: __type(name: "TicketCreate") { inputFields { name } } }')
    assert {field["name"] for field in types["c"]["inputFields"]} == {"projectId", "project", "title"}


def test_the_model_says_within_what_it_counts() -> None:
    found: Model = model_of(SOURCE)
    assert found.resources["Ticket"].counters["number"].counts == "projectId"
    assert [key.fields for key in found.resources["Ticket"].keys] == [("projectId", "number")]
