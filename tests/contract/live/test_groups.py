"""All who are told the same share one evaluation, nobody else does, and whoever joins misses nothing and hears nothing
twice, however it comes about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from diptych import Model, Resource, computed, grant
from diptych.compile.plan import Plan
from diptych.db.store import FeedHead, Store
from diptych.demo.model import model
from diptych.errors import Code
from diptych.live.service import LiveService
from diptych.live.topics import Topics
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, POST
from tests.support.effort import scaled
from tests.support.following import Recorder, caller_of, follow, settle
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

MEMORY = "sqlite:///:memory:"
SCHEDULES = scaled(400, 10)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, data.ROWS) as found:
        found.settle()
        yield found


@contextmanager
def evaluations(store: Store) -> Iterator[list[str]]:
    """The statements that evaluate changes for someone meanwhile."""
    seen: list[str] = []
    run = store.run

    async def noted(plan: Plan, parameters: Sequence[Any]) -> Any:
        if "AS _becomes" in plan.sql:
            seen.append(plan.sql)
        return await run(plan, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "run", noted)
        yield seen


def touch(service: Service, *posts: str) -> None:
    """Change them all in one commit, so that it is no matter of time how many evaluations there are."""
    ids = ", ".join(f"'{post}'" for post in posts)
    service.execute(f"UPDATE posts SET title = title || '!' WHERE id IN ({ids})")


TITLES = "subscription { postChanged { kind rowId post { title } } }"


def test_fifty_who_are_told_the_same_cost_one_evaluation(service: Service) -> None:
    tokens = [None, service.token(None, "staff")]
    told = [
        service.follow("subscription { userChanged { rowId user { name } } }", token=tokens[n % 2]) for n in range(50)
    ]
    with evaluations(service.app.store) as seen:
        service.execute("UPDATE users SET name = name || '!'")
        service.settle()
    assert len(seen) == 1
    assert len({tuple(each.bodies) for each in told}) == 1 and len(told[0].bodies) == 4
    assert all(each.cursors == told[0].cursors for each in told)


def test_who_looks_for_something_else_is_not_asked_for(service: Service) -> None:
    """A change of another row, or of another resource, costs nothing."""
    one = service.follow(f'subscription {{ postChanged(id: "{POST[1]}") {{ rowId }} }}')
    other = service.follow(f'subscription {{ postChanged(where: {{id: {{eq: "{POST[2]}"}}}}) {{ rowId }} }}')
    users = service.follow("subscription { userChanged { rowId } }")
    with evaluations(service.app.store) as seen:
        touch(service, POST[1])
        service.settle()
    assert len(seen) == 1
    assert (len(one.events), len(other.events), len(users.events)) == (1, 0, 0)


def test_other_values_are_told_other_things(service: Service) -> None:
    document = "subscription($t: String!) { postChanged(where: {title: {contains: $t}}) { rowId } }"
    told = [service.follow(document, {"t": each}) for each in ("Alpha", "Beta", "Alpha")]
    with evaluations(service.app.store) as seen:
        touch(service, POST[1], POST[2])
        service.settle()
    assert len(seen) == 2
    assert [each.events for each in told] == [[{"rowId": POST[1]}], [{"rowId": POST[2]}], [{"rowId": POST[1]}]]


def test_other_viewers_are_told_of_their_own_rows(service: Service) -> None:
    """The plan is one, and one statement evaluates it for both viewers; who is not signed in has another plan."""
    people = {who: service.token(who) for who in (ANN, BEN)}
    told = {who: service.follow(TITLES, token=token) for who, token in people.items()}
    again = service.follow(TITLES, token=service.token(ANN))
    nobody = service.follow(TITLES)
    with evaluations(service.app.store) as seen:
        touch(service, POST[3], POST[6])  # a draft of Ann's, and one of Ben's
        service.settle()
    assert len(seen) == 2
    assert [event["rowId"] for event in told[ANN].events] == [POST[3]] == [event["rowId"] for event in again.events]
    assert [event["rowId"] for event in told[BEN].events] == [POST[6]]
    assert nobody.events == []


def test_cursors_of_lists_in_a_row_are_of_its_viewer(service: Service) -> None:
    document = "subscription { userChanged { user { postsConnection(first: 1) { edges { cursor } } } } }"
    told = [service.follow(document, token=service.token(who)) for who in (ANN, BEN)]
    service.execute(f"UPDATE users SET name = 'X' WHERE id = '{ANN}'")
    service.settle()
    one, other = (each.events[0]["user"]["postsConnection"]["edges"][0]["cursor"] for each in told)
    assert one != other
    after = f'{{ user(id: "{ANN}") {{ postsConnection(first: 9, after: "%s") {{ nodes {{ id }} }} }} }}'
    found = service.data(after % one, token=service.token(ANN))["user"]["postsConnection"]["nodes"]
    assert [each["id"] for each in found] == [POST[2], POST[3]]
    assert service.query(after % one, token=service.token(BEN)).code == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: kind", "a: rowId"),
        ("a: rowId b: kind", "b: kind a: rowId"),
        ("post { a: title }", "post { a: body }"),
        ("post { title }", "p: post { title }"),
        ("post { title }", "post { title } kind"),
    ],
)
def test_who_asks_otherwise_is_told_otherwise(service: Service, one: str, other: str) -> None:
    told = [service.follow(f"subscription {{ postChanged {{ {each} }} }}") for each in (one, other, one)]
    touch(service, POST[1])
    service.settle()
    assert told[0].bodies == told[2].bodies != told[1].bodies and len(told[1].bodies) == 1


class Text(Resource):
    """Python computes two fields of it, of the same column."""

    body: str

    access = (grant("read"),)

    @computed(needs="body")
    def words(self) -> int:
        return len(self.body.split())

    @computed(needs="body")
    def letters(self) -> int:
        return len(self.body)


def test_what_python_computes_is_not_mistaken_for_another_field(runner: asyncio.Runner) -> None:
    rows = {"Text": [{"id": ANN, "version": 1, "createdAt": data.day(1), "updatedAt": data.day(1), "body": "x"}]}
    with in_process(Model(Text), MEMORY, runner, rows) as service:
        told = [
            service.follow(f"subscription {{ textChanged {{ text {{ a: {each} }} }} }}")
            for each in ("words", "letters")
        ]
        service.execute("UPDATE texts SET body = 'two words'")
        service.settle()
        assert [each.events for each in told] == [[{"text": {"a": 2}}], [{"text": {"a": 9}}]]


def test_a_group_ends_with_its_last_member(service: Service) -> None:
    live = service.handler.live
    one, other = service.follow(TITLES), service.follow(TITLES)
    one.close()
    touch(service, POST[1])
    service.settle()
    assert (len(one.events), len(other.events)) == (0, 1)
    other.close()
    with evaluations(service.app.store) as seen:
        touch(service, POST[1])
        service.settle()
    assert not seen and not live._groups and not live._members and not live._topics._tables


# joining, whatever comes between


class Schedule:
    """Holds up every look at the database until it is its turn, and does things in between, in an order that is drawn.

    One row is changed again and again, so that its versions tell what a follower has heard.
    """

    def __init__(self, service: Service, random: Random, patience: float) -> None:
        self.service = service
        self.random = random
        self.patience = patience
        self.held: list[asyncio.Future[None]] = []
        self.holding = True
        self.version = 1
        self.cursors: list[tuple[int, str]] = []
        self.followers: list[tuple[int, int, Recorder]] = []
        """The version that each began with at the earliest, and at the latest, and what it was told."""

    async def turn(self) -> None:
        if self.holding:
            self.held.append(asyncio.get_running_loop().create_future())
            await self.held[-1]

    @contextmanager
    def gates(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("head", "run"):
                patch.setattr(self.service.app.store, name, self._gated(getattr(self.service.app.store, name)))
            yield

    def _gated(self, work: Callable[..., Any]) -> Callable[..., Any]:
        async def gated(*given: Any) -> Any:
            await self.turn()
            found = await work(*given)
            await self.turn()  # the answer takes its time, too
            return found

        return gated

    async def play(self) -> None:
        live = self.service.handler.live
        self.cursors.append((self.version, live.tail.change_cursors.seal(live.tail.end)))
        joining: set[asyncio.Task[None]] = set()
        with self.gates():
            for _ in range(60):
                match self.random.choices(("go on", "commit", "join", "resume"), (60, 12, 5, 8))[0]:
                    case "go on" if self.held:
                        self.held.pop(self.random.randrange(len(self.held))).set_result(None)
                    case "commit":
                        await self._commit()
                    case "join":
                        joining.add(asyncio.create_task(self._join(None)))
                    case "resume":
                        joining.add(asyncio.create_task(self._join(self.random.choice(self.cursors))))
                for _ in range(8):
                    await asyncio.sleep(0)
            self.holding = False
            for each in self.held:
                each.set_result(None)
            try:
                async with asyncio.timeout(self.patience):
                    await asyncio.gather(*joining)
                    await settle(live)
            except TimeoutError:
                raise AssertionError("someone waits for ever") from None

    async def _commit(self) -> None:
        await self.service.execute_soon(f"UPDATE posts SET title = 'v{self.version + 1}' WHERE id = '{POST[1]}'")
        self.version += 1
        live = self.service.handler.live
        live.tail.wake()

    async def _join(self, place: tuple[int, str] | None) -> None:
        handler = self.service.handler
        earliest = self.version if place is None else place[0]
        label = self.random.choice("bcd")  # so that there are several groups
        document = f"subscription($a: String) {{ postChanged(after: $a) {{ {label}: cursor post {{ version }} }} }}"
        found = await follow(handler, await caller_of(handler, None), document, {"a": place and place[1]})
        self.followers.append((earliest, self.version if place is None else place[0], found))

    def check(self) -> None:
        for earliest, latest, found in self.followers:
            assert found.ended is None
            told = [event["post"]["version"] for event in found.events]
            first = told[0] if told else self.version + 1
            assert earliest < first <= latest + 1, f"began with {first}, not after {earliest} to {latest}"
            assert told == list(range(first, self.version + 1)), f"{told} up to {self.version}"
            found.close()


def play(service: Service, seeds: range, patience: float = 30.0) -> int:
    told = 0
    for seed in seeds:
        service.execute(f"UPDATE posts SET version = 1000000, title = 'v' WHERE id = '{POST[1]}'")
        schedule = Schedule(service, Random(seed), patience)
        schedule.version = int(service.get(f"/posts/{POST[1]}").json()["version"])
        service.settle()
        service.runner.run(schedule.play())
        try:
            schedule.check()
        except AssertionError as error:
            raise AssertionError(f"in the schedule {seed}: {error}") from error
        told += sum(len(found.events) for *_, found in schedule.followers)
    return told


@pytest.mark.slow
@pytest.mark.timeout(scaled(1_200))
def test_whoever_joins_while_changes_go_on_misses_nothing_and_hears_nothing_twice(service: Service) -> None:
    assert play(service, range(SCHEDULES)) > 10 * SCHEDULES


def _joins_too_early(self: LiveService, member: Any, following: Any) -> bool:
    """A member joins its group wherever that stands."""
    group = self._groups.get(following.key)
    if group is not None:
        group.join(member)
        return True
    return _JOINED(self, member, following)


def _rests_too_early(self: Topics, group: Any) -> bool:
    """A group rests, whatever changed while it was evaluated."""
    group.topic.touched = 0
    return _LET_REST(self, group)


_JOINED, _LET_REST = LiveService._joined, Topics.let_rest


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (LiveService, "_joined", _joins_too_early),
        (Topics, "let_rest", _rests_too_early),
    ],
)
def test_it_fails_where_places_are_not_kept(
    owner: Any, name: str, fault: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process(model, MEMORY, runner, data.ROWS) as service:
        monkeypatch.setattr(owner, name, fault)
        with pytest.raises(AssertionError):
            play(service, range(200), patience=2.0)
        for member in tuple(service.handler.live._members):
            member.close()


@pytest.mark.parametrize("other", [{"feed": "00" * 8}, {"position": 1}, {"mark": 1}])
def test_a_database_that_is_replaced_while_it_is_followed_is_a_gap(
    service: Service, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    """A copy that was restored, or another database behind the same address."""
    touch(service, POST[1])
    told = service.follow(TITLES)
    head, tail = service.app.store.head, service.handler.live.tail

    async def another() -> FeedHead:
        return replace(await head(), **other)

    monkeypatch.setattr(service.app.store, "head", another)
    service.runner.run(tail.refresh())
    assert told.ended is not None and told.ended[0] is not None
    assert told.ended[0].code is Code.RESUME_GAP


def test_nobody_looks_on_when_all_have_left(runner: asyncio.Runner) -> None:
    """Whenever the last one leaves, be it in the very moment of a commit."""

    def looking() -> int:
        return sum("Tail._go_on" in repr(each) for each in asyncio.all_tasks())

    async def come_and_go(service: Service, turns: int) -> None:
        found = await follow(service.handler, await caller_of(service.handler, None), TITLES)
        tail = service.handler.live.tail
        while tail._awake.is_set():  # it was woken by who came
            await asyncio.sleep(0.001)
        await tail.refresh()
        for _ in range(5):
            await asyncio.sleep(0)
        tail.wake()
        for _ in range(turns):
            await asyncio.sleep(0)
        found.close()
        for _ in range(20):
            await asyncio.sleep(0)
        assert looking() == 0, f"{turns} turns after a commit"

    with in_process(model, MEMORY, runner, data.ROWS) as service:
        for turns in range(8):
            runner.run(come_and_go(service, turns))
