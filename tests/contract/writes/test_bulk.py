"""Changes of many rows by a filter: all of them or none, with a cap, and dry runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any

import pytest

from diptych import Model, Move, OnDelete, Resource, Role, States, Unique, Viewer, allow, check, computed, grant, not_
from diptych.api.reply import Reply
from diptych.serve.http.request import Request
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase

boss = Role("boss")


class Phase(Enum):
    """Of a task."""

    open = "open"
    done = "done"


class Task(Resource):
    """Some are hidden, and some may not be changed."""

    number: Annotated[int, Unique()]
    title: str = "t"
    hidden: bool = False
    locked: bool = False
    phase: Annotated[Phase, States(Move(Phase.open, Phase.done))] = Phase.open
    parent: Annotated[Task | None, OnDelete("cascade")] = None

    access = (grant("create"), grant("read", "update", "delete", to=boss))

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)

    @allow("update", "delete")
    def free(self, viewer: Viewer) -> bool:
        return not_(self.locked)

    @check("It is too long.")
    def short(self) -> bool:
        return self.number < 5_000

    @computed(needs=("title",))
    def shout(self) -> str:
        return self.title.upper()


MODEL = Model(Task)
HEAD = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def shared(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(MODEL, new_database(), runner) as found:
        yield found


@pytest.fixture
def service(shared: Service) -> Service:
    shared.execute("DELETE FROM tasks")
    rows = [{"number": number, "hidden": number == 5, "locked": number == 6} for number in range(1, 9)]
    made = send(shared, "POST", "/tasks", rows, shared.token(None, "boss"))
    assert made.status == 201, made.body
    return shared


def send(service: Service, method: str, url: str, body: Any = None, token: str | None = None) -> Answer:
    raw = b"" if body is None else json.dumps(body).encode()
    return service.send(method, url, body=raw, headers=HEAD if raw else {}, token=token)


def titles(service: Service) -> list[str]:
    rows = service.rows("/tasks?fields=title&sort=number&first=100", token=service.token(None, "boss"))
    return [row["title"] for row in rows]


def test_it_reaches_the_rows_that_the_caller_may_read_and_change(service: Service) -> None:
    changed = send(service, "PATCH", "/tasks?number[gte]=4&most=10&fields=number,version", {"title": "x"})
    assert changed.status == 200, changed.body
    data = [{"number": number, "version": 2} for number in (4, 7, 8)]
    assert changed.json() == {"matched": 3, "changed": 3, "dryRun": False, "data": data}
    assert titles(service) == ["t", "t", "t", "x", "t", "t", "x", "x"]
    document = """mutation($where: TaskWhere!, $most: Int!, $dry: Boolean! = false) {
        updateTasks(where: $where, patch: {title: "y"}, most: $most, dryRun: $dry) {
            __typename m: matched changed dryRun nodes { title shout } } }"""
    where = {"title": {"eq": "x"}}
    nodes = [{"title": "y", "shout": "Y"}] * 3
    wanted = {"__typename": "TasksBulk", "m": 3, "changed": 0, "dryRun": True, "nodes": nodes}
    assert service.data(document, {"where": where, "most": 3, "dry": True})["updateTasks"] == wanted
    assert titles(service).count("x") == 3
    wanted |= {"changed": 3, "dryRun": False}
    assert service.data(document, {"where": where, "most": 3})["updateTasks"] == wanted
    assert service.data(document, {"where": where, "most": 3})["updateTasks"]["m"] == 0


def test_the_cap_is_exact(service: Service) -> None:
    for method, body in (("PATCH", {"title": "x"}), ("DELETE", None)):
        refused = send(service, method, "/tasks?number[gte]=4&most=2", body)
        assert refused.status == 409
        assert (refused.json()["detail"], refused.json()["allowed"]) == ("More than 2 rows match.", 2)
    error = service.query("mutation { deleteTasks(where: {number: {gte: 4}}, most: 2) { matched } }").json()["errors"][
        0
    ]
    assert error["message"] == "More than 2 rows match." and error["extensions"]["allowed"] == 2
    assert titles(service) == ["t"] * 8


def test_deletion(service: Service) -> None:
    first, second = (service.rows(f"/tasks?number={number}&fields=id")[0]["id"] for number in (1, 2))
    assert send(service, "PATCH", f"/tasks/{second}", {"parentId": first}).status == 200
    end = service.end_of_changes()
    dry = send(service, "DELETE", "/tasks?number[lt]=4&most=9&dryRun=true")
    assert dry.json() == {"matched": 3, "changed": 0, "dryRun": True}
    assert service.changes(f"/tasks/changes?after={end}")["data"] == []
    gone = send(service, "DELETE", "/tasks?number[lt]=4&most=9&fields=number")
    data = [{"number": number} for number in (1, 2, 3)]
    assert gone.json() == {"matched": 3, "changed": 3, "dryRun": False, "data": data}
    assert len(titles(service)) == 5
    kinds = [change["kind"] for change in service.changes(f"/tasks/changes?after={end}")["data"]]
    assert kinds == ["DELETED"] * 3


def test_what_a_row_would_become_refuses_all_and_names_the_first(service: Service) -> None:
    ids = {row["number"]: row["id"] for row in service.rows("/tasks?fields=id,number&first=100")}
    assert send(service, "PATCH", f"/tasks/{ids[3]}", {"phase": "done"}).status == 200
    refused = send(service, "PATCH", "/tasks?number[gte]=1&most=9", {"phase": "open", "title": "x"})
    assert (refused.status, refused.json()["row"], refused.places) == (409, ids[3], ["/phase"])
    hides = send(service, "PATCH", "/tasks?number=2&most=9", {"hidden": True})
    assert (hides.status, hides.json()["row"]) == (401, ids[2])
    taken = send(service, "PATCH", "/tasks?number[lte]=2&most=9", {"number": 99})
    assert (taken.status, taken.json()["row"], taken.places) == (409, ids[2], ["/number"])
    long = send(service, "PATCH", "/tasks?number=2&most=9", {"number": 9_999})
    assert (long.status, long.json()["row"], long.places) == (422, ids[2], ["/number"])
    assert titles(service) == ["t"] * 8


def test_what_is_wrong_with_it(service: Service) -> None:
    for url in ("/tasks?most=5", "/tasks?number=1", "/tasks?number=1&most=0", "/tasks?number=1&most=1001"):
        assert send(service, "PATCH", url, {"title": "x"}).status == 400, url
    for url in ("/tasks?where={}&most=5", "/tasks?nope=1&most=5", "/tasks?number=1&most=5&sort=number&first=3"):
        assert send(service, "DELETE", url).status == 400, url
    for url in ("/tasks?number=x&most=5", "/tasks?number=1&most=5&dryRun=perhaps"):
        assert send(service, "DELETE", url).status == 400, url
    wrong = send(service, "PATCH", "/tasks?title=x&most=5", {"title": 5, "version": 1})
    assert (wrong.status, wrong.places) == (422, ["/version", "/title"])
    none = service.query("mutation { deleteTasks(where: {}, most: 5) { matched } }")
    assert (none.code, none.places) == ("BAD_USER_INPUT", ["/deleteTasks/where"])
    many = service.query("mutation { deleteTasks(where: {number: {eq: 1}}, most: 1001) { matched } }")
    assert many.code == "BAD_USER_INPUT"
    patch = service.send(
        "PATCH", "/tasks?number=1&most=5", body=b"[]", headers={"content-type": "application/json-patch+json"}
    )
    assert patch.status == 415


def test_in_a_batch_and_its_price(service: Service) -> None:
    steps = [
        {"id": "many", "method": "PATCH", "url": "/tasks?number[lte]=2&most=2", "body": {"title": "b"}},
        {"id": "dry", "method": "DELETE", "url": "/tasks?title=b&most=5&dryRun=true&fields=title"},
        {"method": "POST", "url": "/tasks?fields=title", "body": {"number": 100, "title": "new"}},
    ]
    answer = send(service, "POST", "/batch", {"requests": steps})
    assert answer.status == 200, answer.body
    bodies = [response["body"] for response in answer.json()["responses"]]
    shown = [{"title": "b"}, {"title": "b"}]
    assert bodies[1] == {"matched": 2, "changed": 0, "dryRun": True, "data": shown}
    assert titles(service) == ["b", "b", "t", "t", "t", "t", "t", "t", "new"]
    refers = [steps[0], {"method": "PATCH", "url": "/tasks/$many", "body": {"title": "c"}}]
    assert send(service, "POST", "/batch", {"requests": refers}).status in (404, 422)
    headers = {**HEAD, "prefer": "cost"}
    for url, price in (("/tasks?number=1&most=7", 7), ("/tasks?number=1&most=7&fields=id", 14)):
        cost = service.send("PATCH", url, body=b"{}", headers=headers).headers["cost"]
        assert f"price={price}," in cost


def test_a_thousand_rows(service: Service) -> None:
    for first in range(1_000, 1_950, 100):
        assert (
            send(service, "POST", "/tasks?fields=id", [{"number": first + each} for each in range(100)]).status == 201
        )
    token = service.token(None, "boss")
    changed = send(service, "PATCH", "/tasks?number[gte]=1000&most=1000", {"title": "z"}, token)
    assert changed.json() == {"matched": 1_000, "changed": 1_000, "dryRun": False}, changed.body


WRITERS = 16


def test_changes_of_the_same_rows_wait_for_each_other(service: Service) -> None:
    """None fails, and each is whole: the versions show how many there were."""

    async def one(number: int) -> Reply:
        async def read(most: int) -> bytes:
            return json.dumps({"title": f"w{number}"}).encode()

        query = f"number[{'gte' if number % 2 else 'gt'}]=1&most=8"
        headers = {b"content-type": b"application/json"}
        return await service.handler.handle(Request("PATCH", "/tasks", query, headers, read))

    async def race() -> list[Reply]:
        return list(await asyncio.gather(*map(one, range(WRITERS))))

    replies = service.runner.run(race())
    assert {reply.status for reply in replies} == {200}, [reply.body for reply in replies]
    rows = service.rows("/tasks?number[in]=2,3,4,7,8&fields=title,version")
    assert {row["version"] for row in rows} == {WRITERS + 1}
    assert len({row["title"] for row in rows}) == 1


def test_rows_that_appear_meanwhile_are_not_changed_above_the_cap(service: Service) -> None:
    """Creates and changes race: each change reaches at most its cap, and exactly the rows that it counts."""
    service.execute("DELETE FROM tasks")

    async def ask(method: str, query: str, body: Any) -> Reply:
        async def read(most: int) -> bytes:
            return json.dumps(body).encode()

        headers = {b"content-type": b"application/json"}
        return await service.handler.handle(Request(method, "/tasks", query, headers, read))

    async def race(first: int) -> tuple[list[Reply], list[Reply]]:
        creates = [ask("POST", "fields=id", {"number": first + each}) for each in range(24)]
        changes = [ask("PATCH", "title=t&most=5", {"title": "u"}) for _ in range(12)]
        mixed = await asyncio.gather(
            *(each for pair in zip(creates[::2], creates[1::2], changes, strict=True) for each in pair)
        )
        return [reply for number, reply in enumerate(mixed) if number % 3 != 2], mixed[2::3]

    reached = 0
    for first in range(0, 24 * scaled(20, 2), 24):
        made, changed = service.runner.run(race(first))
        assert {reply.status for reply in made} == {201}
        assert {reply.status for reply in changed} <= {200, 409}, [reply.body for reply in changed]
        done = [json.loads(reply.body)["changed"] for reply in changed if reply.status == 200]
        assert max(done, default=0) <= 5
        reached += sum(done)
        assert service.get("/tasks/summary?title=u&fields=count").json()["count"] == reached
