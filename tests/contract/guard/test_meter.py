"""The time that each caller takes for new requests: who has used theirs up is refused, and nobody else is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random

import pytest

from diptych.config import Config
from diptych.demo.model import model as shop
from diptych.errors import Code, Refusal
from diptych.fair import planning_budget as metering
from diptych.fair import token_bucket
from diptych.fair.caller import CALLER, peer_name
from diptych.fair.planning_budget import PlanningBudget
from diptych.serve.http.request import Request
from tests.contract.calls.press import ANN, BOB, SEEN, TILL
from tests.contract.guard.conftest import Pressed
from tests.support.effort import scaled
from tests.support.in_process import Answer, Service

SHARE = 0.2
SAVED = 10.0


class Clocks:
    """Time as a test has it: `now` is that of the wall; every `cost` seconds of work pass between two looks at the
    processor's."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.cost = 0.0
        self._worked = 0.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        self._worked += self.cost
        return self._worked


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    found = Clocks()
    monkeypatch.setattr(metering, "time", found)
    monkeypatch.setattr(token_bucket, "time", found)
    return found


@pytest.fixture
def asker() -> Iterator[Callable[[str], None]]:
    token = CALLER.set("")
    yield lambda name: (CALLER.set(name), None)[1]
    CALLER.reset(token)


def plan(meter: PlanningBudget) -> bool:
    """Plan something; may one?"""
    try:
        with meter.planning():
            return True
    except Refusal as refusal:
        assert refusal.code is Code.RATE_LIMITED
        return False


# the accounts


def test_whoever_has_used_up_what_was_saved_is_refused(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 0.5
    asker("user:ann")
    assert [plan(meter) for _ in range(8)] == [True] * 5 + [False] * 3, (
        "ten seconds' worth of a fifth, and the last of it is on credit"
    )
    with pytest.raises(Refusal) as caught, meter.planning():
        pass
    owed = 5 * 0.5
    assert caught.value.more == {"retryAfter": 3}, (owed - SHARE * SAVED) / SHARE
    asker("user:bob")
    assert plan(meter)


def test_time_heals_it(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 3.0
    asker("user:ann")
    assert (plan(meter), plan(meter)) == (True, False)
    clocks.now += 4.9
    assert not plan(meter), "a refusal costs nothing, so that it does not last longer by asking"
    clocks.now += 0.2
    assert (plan(meter), plan(meter)) == (True, False)


def test_what_is_saved_is_not_more_than_so_much(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 1.1
    asker("user:ann")
    assert plan(meter)
    clocks.now += 1_000_000
    assert [plan(meter) for _ in range(3)] == [True, True, False]


def test_work_that_fails_costs_as_much(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 3.0
    asker("user:ann")
    with pytest.raises(ZeroDivisionError), meter.planning():
        raise ZeroDivisionError
    assert not plan(meter)


def test_the_service_itself_is_never_refused(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 100.0
    asker("")
    assert all(plan(meter) for _ in range(10))


def test_a_share_of_nothing_counts_nothing(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(0.0), 100.0
    asker("user:ann")
    assert all(plan(meter) for _ in range(10))
    assert not meter.buckets.in_use


def test_very_many_callers_take_bounded_memory(clocks: Clocks, asker: Callable[[str], None]) -> None:
    meter, clocks.cost = PlanningBudget(SHARE), 3.0
    for number in range(10_050):
        asker(peer_name((f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1)))
        assert plan(meter)
    assert len(meter.buckets) == 10_000
    assert not plan(meter), "the newest are known"


def test_many_addresses_of_one_network_are_one_caller() -> None:
    assert len({peer_name((f"2001:db8:1:2::{number:x}", 1)) for number in range(100)}) == 1
    assert len({peer_name((f"2001:db8:1:{number:x}::1", 1)) for number in range(100)}) == 100


# the whole service


class Client:
    """Someone who sends requests, new ones if they are to be; each new one costs a second."""

    _numbers = itertools.count()

    def __init__(self, service: Service, token: str | None = None, peer: str = "192.0.2.1") -> None:
        self.service = service
        self.token = token
        self.peer = peer

    def send(self, method: str, url: str, body: bytes = b"") -> Answer:
        path, _, query = url.partition("?")
        headers = {b"accept": b"application/graphql-response+json, application/json;q=0.9"}
        if body:
            headers[b"content-type"] = b"application/json"
        if self.token:
            headers[b"authorization"] = b"Bearer " + self.token.encode()

        async def read(most: int) -> bytes:
            return body

        request = Request(method, path, query, headers, read, "", (self.peer, 4_711))
        reply = self.service.runner.run(self.service.handler.handle(request))
        found = {name.decode(): value.decode("latin-1") for name, value in reply.headers}
        return Answer(reply.status, found, reply.body, bool(body))

    def query(self, document: str) -> Answer:
        return self.send("POST", "/graphql", b'{"query":"%b"}' % document.replace('"', '\\"').encode())

    def new(self, way: str) -> Answer:
        """A request that nobody has sent before."""
        return WAYS[way](self, next(self._numbers))


WAYS: dict[str, Callable[[Client, int], Answer]] = {
    "a document": lambda client, number: client.query(f"{{ a{number}: writers {{ name }} }}"),
    "a document by GET": lambda client, number: client.send("GET", f"/graphql?query=%7Ba{number}:__typename%7D"),
    "a document that is refused": lambda client, number: client.query(f"{{ a{number}: nothing }}"),
    "a document that is none": lambda client, number: client.query(f"{{ a{number}: {{"),
    "a document that is too deep": lambda client, number: client.query(
        f"{{ a{number}: writers {'{ articles { author ' * 12}{{ id }} {'} }' * 12} }}"
    ),
    "a list": lambda client, number: client.send("GET", f"/writers?fields=a{number}:name"),
    "a list that is refused": lambda client, number: client.send("GET", f"/writers?fields=nothing{number}"),
    "a change": lambda client, number: client.send("PATCH", f"/articles/{SEEN}?fields=a{number}:id", b'{"title":"x"}'),
    "an action": lambda client, number: client.send(
        "POST", f"/tills/{TILL}/take?fields=a{number}:id", b'{"amount":"1.00"}'
    ),
    "a query of the model's code": lambda client, number: client.send("GET", f"/articles/latest?fields=a{number}:id"),
    "changes": lambda client, number: client.send("GET", f"/articles/changes?fields=a{number}:title"),
}


def test_the_share_is_a_setting(serving: Pressed) -> None:
    assert serving().handler.engine.planning_budget.share == Config().planning_share == 0.2
    assert serving(planning_share=0.05).handler.engine.planning_budget.share == 0.05


@pytest.mark.parametrize("way", WAYS)
def test_one_who_sends_new_requests_all_the_time_is_refused(way: str, serving: Pressed, clocks: Clocks) -> None:
    service = serving()
    busy, other, neighbour = (
        Client(service, service.token(ANN)),
        Client(service, service.token(BOB)),
        Client(service, peer="192.0.2.2"),
    )
    known = "{ writers { name } }"
    for client in (busy, neighbour):
        for _ in range(3):
            assert client.query(known).status == client.send("GET", "/writers").status == 200
    clocks.cost = 1.0
    answers = [busy.new(way) for _ in range(12)]
    assert answers[0].status != 429
    last = answers[-1]
    assert (last.status, last.code) == (429, "RATE_LIMITED")
    assert int(last.headers["retry-after"]) >= 1
    assert last.headers["cache-control"] == "no-store"
    assert busy.query(known).status == busy.send("GET", "/writers").status == 200, "what is known goes on"
    for client in (other, neighbour):
        assert client.new(way).status != 429
    clocks.now += int(last.headers["retry-after"])
    assert busy.new(way).status != 429, "after as long as was told"


def honest(number: int) -> str:
    """A document as a page or a report would send it, different for each number."""
    random = Random(number)
    picked = [" ".join(random.sample(fields, random.randint(1, 3))) for fields in (USER, POST, COMMENT)]
    first, second = random.randint(1, 20), random.randint(1, 9)
    return (
        f"query Page{number}($id: ID!) {{ user(id: $id) {{ {picked[0]} posts(first: {first}) {{ {picked[1]} "
        f"comments(first: {second}) {{ {picked[2]} author {{ name }} }} }} }} }}"
    )


USER, POST, COMMENT = ["id", "name", "createdAt"], ["id", "title", "body", "published"], ["id", "body", "createdAt"]


@pytest.mark.slow
def test_a_caller_may_send_a_thousand_different_documents_in_a_row(serving: Pressed) -> None:
    service = serving(model=shop)
    token = service.token(ANN, "staff")
    statuses = [service.query(honest(number), {"id": ANN}, token=token).status for number in range(scaled(1_000, 250))]
    assert set(statuses) == {200}


def test_texts_that_differ_in_literals_are_not_new(serving: Pressed, clocks: Clocks) -> None:
    service = serving(model=shop)
    caller = Client(service, service.token(ANN, "staff"))
    for number in range(3):
        assert caller.query(f'{{ user(id: "{number}") {{ name }} }}').status == 200
    clocks.cost = 1.0
    assert {caller.query(f'{{ user(id: "x{number}") {{ name }} }}').status for number in range(100)} == {200}
    assert [caller.query(f"{{ user(id: true) {{ a{number}: name }} }}").status for number in range(12)][-1] == 429
