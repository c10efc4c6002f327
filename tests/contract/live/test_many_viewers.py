"""Many viewers of one plan are told by one statement for each batch of them: each what it may see, and nobody twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from diptych.compile.dialect import POSTGRES, SQLITE
from diptych.compile.plan import SealBind, SlotBind, ViewerBind
from diptych.compile.watch_batch import is_exact
from diptych.demo.model import model
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.live import batches, delivery
from diptych.live.batches import EvaluationBatches
from diptych.live.shares import BatchKey, CallerAccount
from diptych.model.scalars import STRING
from tests.contract.http import data
from tests.contract.http.data import ANN, POST
from tests.contract.live.test_groups import evaluations
from tests.support.following import Recorder, caller_of, follow
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

TITLES = "subscription { postChanged { kind rowId post { title } } }"
EXACT = "subscription($t: String!) { postChanged(where: {title: {eq: $t}}) { kind post { title } } }"
VIEWERS = 500
BATCHES = -(-VIEWERS // batches.MOST)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, data.ROWS, stream_share=0.0) as found:
        found.settle()
        yield found


def viewer_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def follow_as(service: Service, name: str, token: str | None, document: str = TITLES, **variables: Any) -> Recorder:
    """A stream of a caller of this name."""

    async def begin() -> Recorder:
        before = CALLER.set(name)
        try:
            return await follow(service.handler, await caller_of(service.handler, token), document, variables)
        finally:
            CALLER.reset(before)

    return service.runner.run(begin())


def viewers(service: Service, many: int = VIEWERS) -> list[Recorder]:
    return [follow_as(service, f"viewer {each}", service.token(viewer_id(each))) for each in range(many)]


def rename(service: Service, title: str, post: str = POST[1]) -> None:
    service.execute(f"UPDATE posts SET title = '{title}' WHERE id = '{post}'")


@pytest.mark.slow
def test_five_hundred_viewers_cost_one_statement_for_each_batch(service: Service) -> None:
    told = viewers(service)
    assert service.handler.live.group_count == VIEWERS
    with evaluations(service.app.store) as seen:
        rename(service, "one")
        service.settle()
    assert len(seen) == BATCHES
    assert [each.events for each in told] == [
        [{"kind": "UPDATED", "rowId": POST[1], "post": {"title": "one"}}]
    ] * VIEWERS
    assert len({id(each.bodies[0]) for each in told}) == BATCHES, "equal bytes are shared in a batch"


def test_it_would_be_one_for_each_viewer(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without batches it is."""
    monkeypatch.setattr(batches, "MOST", 1)
    viewers(service, 20)
    with evaluations(service.app.store) as seen:
        rename(service, "one")
        service.settle()
    assert len(seen) == 20


def test_each_is_told_of_its_own_rows_and_of_those_that_leave_its_sight(service: Service) -> None:
    """Every viewer has a draft that no other one sees; then all are given to one of them."""
    many = 40
    people = ", ".join(
        f"('{viewer_id(each)}', 1, '{data.day(1)}', '{data.day(1)}', 'v{each}', '{each}@example.org')"
        for each in range(many)
    )
    service.execute(f"INSERT INTO users (id, version, created_at, updated_at, name, email) VALUES {people}")
    told = viewers(service, many)
    drafts = ", ".join(
        f"('{viewer_id(1000 + each)}', 1, '{data.day(1)}', '{data.day(1)}', '{viewer_id(each)}', 't{each}', 'x', "
        f"{'false' if service.app.store.dialect is POSTGRES else 0})"
        for each in range(many)
    )
    columns = "id, version, created_at, updated_at, author_id, title, body, published"
    service.execute(f"INSERT INTO posts ({columns}) VALUES {drafts}")
    service.settle()
    for number, each in enumerate(told):
        row = viewer_id(1000 + number)
        assert each.events == [{"kind": "CREATED", "rowId": row, "post": {"title": f"t{number}"}}]
    service.execute(f"UPDATE posts SET author_id = '{viewer_id(7)}' WHERE title LIKE 't%'")
    service.settle()
    for number, each in enumerate(told):
        if number != 7:
            assert each.events[1:] == [{"kind": "LEFT", "rowId": viewer_id(1000 + number), "post": None}]
    assert sorted(event["kind"] for event in told[7].events[1:]) == ["UPDATED"] * many


@pytest.mark.parametrize(
    "titles",
    [
        [
            "a",
            "a ",
            "A",
            "",
            "null",
            '"a"',
            "[1]",
            "a'--",
            "{}",
            "1",
            "1.0",
            "true",
            "\u00e9",
            "e\u0301",
            "\\u0061",
            "$1",
        ],
    ],
)
def test_values_that_look_alike_are_told_apart(service: Service, titles: Sequence[str]) -> None:
    told = {title: follow_as(service, title, None, EXACT, t=title) for title in titles}
    with evaluations(service.app.store) as seen:
        for title in filter(None, titles):
            service.execute(f"UPDATE posts SET title = '{title.replace(chr(39), chr(39) * 2)}' WHERE id = '{POST[1]}'")
        service.settle()
    assert len(seen) < len(titles)
    for title, each in told.items():
        here = [event for event in each.events if event["kind"] == "UPDATED"]
        assert {event["post"]["title"] for event in here if event["post"]} <= {title}
        assert len(here) == (1 if title else 0)


def test_a_batch_that_fails_is_evaluated_one_by_one(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    told = viewers(service, 30)

    async def fails(*_: Any) -> Any:
        raise Refusal(Code.TIMEOUT, "The request took too long.")

    monkeypatch.setattr(delivery, "changes_together", fails)
    with evaluations(service.app.store) as seen:
        rename(service, "one")
        service.settle()
    assert len(seen) == 30 and all(len(each.events) == 1 for each in told)
    monkeypatch.undo()
    with evaluations(service.app.store) as seen:
        rename(service, "two")
        service.settle()
    assert len(seen) == 1 and all(len(each.events) == 2 for each in told)


def test_an_answer_without_a_part_for_each_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    told = viewers(service, 5)
    run = service.app.store.run

    async def lacks(plan: Any, parameters: Any) -> Any:
        found: Any = await run(plan, parameters)
        if "AS _becomes" in plan.sql and "_groups" in plan.sql:
            return [found[0].replace(b"[2,", b"[3,", 1)]
        return found

    monkeypatch.setattr(service.app.store, "run", lacks)
    rename(service, "one")
    service.settle()
    assert all(len(each.events) == 1 for each in told)


def test_changes_of_many_at_a_time_are_told_in_order_and_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_ROWS", 30)  # one change of ten groups in three
    told = viewers(service, 10)
    for number in range(12):
        rename(service, f"t{number}")
        service.execute(f"UPDATE users SET name = 'n{number}' WHERE id = '{ANN}'")
    service.settle()
    for each in told:
        assert [event["post"]["title"] for event in each.events] == [f"t{number}" for number in range(12)]


# which evaluations run together


class Queued:
    def __init__(self, account: CallerAccount) -> None:
        self.account = account


KEY = BatchKey("plan", 7)


def queued(found: EvaluationBatches, **many: int) -> dict[str, list[Any]]:
    accounts = {name: CallerAccount(name) for name in many}
    works = {name: [Queued(accounts[name]) for _ in range(number)] for name, number in many.items()}
    for name, each in works.items():
        for work in each:
            found.add(KEY, work, accounts[name])  # type: ignore[arg-type]  # it is only put somewhere
    return works


def test_a_caller_with_many_is_not_in_the_way_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST", 8)
    found = EvaluationBatches()
    works = queued(found, greedy=1_000, **{f"c{number}": 1 for number in range(6)})
    taken = found.companions(KEY, works["greedy"][0], lambda account: True)
    assert len(taken) == 7
    assert {work.account.name for work in taken if work.account} == {"greedy", *(f"c{number}" for number in range(6))}


def test_who_may_not_run_now_joins_no_batch() -> None:
    found = EvaluationBatches()
    works = queued(found, one=3, debtor=3)
    taken = found.companions(KEY, works["one"][0], lambda account: account.name != "debtor")
    assert taken == works["one"][1:]


def test_all_come_in_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST", 4)
    found = EvaluationBatches()
    works = queued(found, **{f"c{number}": 1 for number in range(12)})
    seen: set[Any] = set()
    for _ in range(4):
        seen |= set(found.companions(KEY, works["c0"][0], lambda account: True))
    assert len(seen) == 11


def test_the_size_of_batches_follows_the_time_that_they_take() -> None:
    found = EvaluationBatches()
    works = queued(found, many=400)["many"]

    def size() -> int:
        return 1 + len(found.companions(KEY, works[0], lambda account: True))

    sizes = [size()]
    for seconds in (1.0, 1.0, 0.2, 0.01, 0.01):
        found.adapt(KEY, size(), seconds)
        sizes.append(size())
    assert sizes == [128, 64, 32, 32, 64, 128]
    for _ in range(12):
        found.adapt(KEY, size(), 1.0)
    assert size() == 1
    found.adapt(KEY, 1, 0.001)
    assert size() == 2


# which values a batch binds


@pytest.mark.parametrize("value", ["a\0b", "\ud800", 2**63, -(2**63) - 1, 1.5, float("inf"), b"x", ["a"]])
def test_sqlite_evaluates_values_alone_that_json_does_not_hold(value: Any) -> None:
    assert not is_exact(SQLITE, [SlotBind(0, STRING)], [value], [0])
    assert is_exact(SQLITE, [SlotBind(0, STRING)], [value], [])


@pytest.mark.parametrize("value", ["a", "", "\u00e9\U0001f600", 2**63 - 1, -(2**63), 0, True, None])
def test_others_it_evaluates_together(value: Any) -> None:
    assert is_exact(SQLITE, [SlotBind(0, STRING)], [value], [0])


def test_postgresql_evaluates_lists_together_but_no_lists_of_lists() -> None:
    many, one, key = SlotBind(0, STRING, many=True), ViewerBind(STRING, "tenant"), SealBind(1)
    assert is_exact(POSTGRES, [many, one, key], [["a", None], "b", b"c"], range(3))
    assert not is_exact(POSTGRES, [many], [[["a"]]], [0])
    assert not is_exact(POSTGRES, [one], [["a"]], [0])


def test_viewers_of_lists_of_every_length_are_told_apart(service: Service) -> None:
    """Filters by lists: none, one, many, the same twice; on PostgreSQL they are parts of one array."""
    document = "subscription($t: [String!]!) { postChanged(where: {title: {in: $t}}) { post { title } } }"
    pool = ["a", "b", "c"]
    lists = [list(some) for size in range(4) for some in itertools.product(pool, repeat=size)]
    told = [follow_as(service, f"c{number}", None, document, t=some) for number, some in enumerate(lists)]
    with evaluations(service.app.store) as seen:
        for title in pool:
            rename(service, title)
        service.settle()
    assert len(seen) < len(lists)
    for some, each in zip(lists, told, strict=True):
        shown = {event["post"]["title"] for event in each.events if event["post"]}
        assert shown <= set(some) and len(shown) == len(set(some))
