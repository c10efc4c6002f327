"""What `explain` says is what holds: its verdicts are those of the oracle, and of the service that makes a change.

For random rows and viewers of all kinds: every row that it says can be read is one that the oracle sees, and so every
field and relation; it counts of every list what the oracle counts; and where it finds nothing that refuses a change,
the change is made.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from diptych import Diptych
from diptych.ask.wish import WriteWish
from diptych.config import Config
from diptych.demo.model import model as default
from diptych.engine.read import Engine
from diptych.errors import Code, Refusal
from diptych.explain import rulebook as book
from diptych.explain.rows import Finding, Inquiry, Question, Subject
from diptych.explain.rulebook import Matter, Rulebook
from diptych.explain.scope import matters_of
from diptych.explain.understood import RestRequest, interpret
from diptych.explain.why import report_rows
from diptych.explain.writes import dry_run
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE, TRUE, Expr, Slot, or_
from diptych.model.view import View
from diptych.policy.limits import Checks
from tests.support import edge_cases
from tests.support.effort import long_where, scaled
from tests.support.oracle import Oracle, Row, Sight
from tests.support.oracle_writes import Wish
from tests.support.proof_writes import kind, viewers
from tests.support.random_writes import Wishes
from tests.support.running import NewDatabase, with_tables

MODELS = {"default": default, "edge_cases": edge_cases.model}
METHODS = {"create": "POST", "update": "PATCH", "replace": "PUT", "delete": "DELETE", "upsert": "POST"}
CHANGES = scaled(200, 140)


class World:
    """A model with random rows in a database."""

    def __init__(self, model: Model, database: str, runner: asyncio.Runner) -> None:
        self.model = model
        self.runner = runner
        self.data = kind(model, edge_cases.rows(model, 5, 6))
        self.app = Diptych(model, config=Config(database=with_tables(database, model), planning_share=0.0))
        runner.run(self._fill())
        self.viewers = list(dict.fromkeys(viewers(model, self.data)))

    async def _fill(self) -> None:
        await self.app.start()
        await edge_cases.load(self.app.store, self.model, self.data)

    def rulebook(self, viewer: Viewer) -> Rulebook:
        return Rulebook(self.model, self.model.view(self.model.signature(viewer)))

    async def findings(self, viewer: Viewer, resource: str, matters: list[Matter]) -> Mapping[Any, list[Finding]]:
        """What is found of every row of a resource."""
        session = await self.app.store.session(reading=True)
        try:
            inquiry = Inquiry(self.rulebook(viewer), viewer, session, self.app.store.dialect)
            found: dict[Any, list[Finding]] = {}
            for row in self.data[resource]:
                subject = Subject(resource, Slot(0, self.model.resources[resource].key), [row["id"]])
                found[row["id"]] = await inquiry.ask(subject, [Question(each) for each in matters]) or []
            return found
        finally:
            await session.end()


CROSSED = long_where(world="default", new_database="sqlite"), long_where(world="edge_cases", new_database="postgres")
"""Each model and each database is in `make test`, and not each pair of them."""


@pytest.fixture(scope="module", params=MODELS)
def world(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[World]:
    with asyncio.Runner() as runner:
        found = World(MODELS[request.param], new_database(), runner)
        yield found
        runner.run(found.app.stop())


# reading


def check_reading(world: World) -> Counter[str]:
    """Hold every verdict about reading against the oracle; how often each kind came up."""
    seen: Counter[str] = Counter()
    for viewer in world.viewers:
        rulebook, sight = world.rulebook(viewer), Sight(world.model, viewer, world.data)
        for name, resource in world.model.resources.items():
            fields = [rulebook.field(name, each) for each in resource.fields]
            ways = [rulebook.way(name, each) for each in resource.relations]
            matters = [rulebook.verb(name, "read"), *fields, *ways]
            found = world.runner.run(world.findings(viewer, name, matters))
            for row in sight.rows[name]:
                read, *rest = found[row.id]
                assert read.holds == sight.readable(row), (viewer, name, row.id)
                seen[f"row {read.holds}"] += 1
                check_reasons(read, world.model.resources[name].name)
                for each, finding in zip((*resource.fields, *resource.relations), rest, strict=True):
                    if read.holds and not _computed_in_python(row, each):
                        assert finding.holds == sight.shows(each, row), (viewer, name, row.id, each)
                        seen[f"field {finding.holds}"] += 1
    return seen


def check_reasons(finding: Finding, resource: str) -> None:
    """A matter holds if, and only if, one of its clauses does; and each clause has a reason."""
    assert finding.holds == any(holds for _, holds, _ in finding.clauses), (resource, finding)
    assert all(clause.because or facts for clause, _, facts in finding.clauses)


def _computed_in_python(row: Row, name: str) -> bool:
    field = row.resource.fields.get(name)
    return field is not None and field.python is not None


@CROSSED[0]
@CROSSED[1]
def test_what_is_said_of_a_row_and_its_fields_is_what_the_oracle_sees(world: World) -> None:
    seen = check_reading(world)
    assert min(seen["row True"], seen["row False"], seen["field True"], seen["field False"]) > 20, seen


def test_a_wrong_verdict_would_be_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = book._left

    def wider(seen: Any, verb: str) -> Expr:
        left = whole(seen, verb)
        return TRUE if left not in (TRUE, FALSE) else left

    monkeypatch.setattr(book, "_left", wider)
    with pytest.raises(AssertionError):
        check_reading(world)


def test_of_every_list_as_many_rows_are_told_as_there_are(world: World) -> None:
    hidden = 0
    for viewer in world.viewers:
        rulebook, oracle = world.rulebook(viewer), Oracle(world.model, viewer, world.data)
        for name, resource in world.model.resources.items():
            wanted, refusal = interpret(RestRequest("GET", f"/{resource.path}"), world.model, rulebook.view)
            told = world.runner.run(report_rows(wanted, rulebook, viewer, world.app.store))
            there, seen = map(int, re.findall(r"(\d+) match, and this viewer sees (\d+)", told[0].lines[0])[0])
            readable = [row for row in oracle.sight.rows[name] if oracle.sight.readable(row)]
            assert (there, seen) == (len(world.data[name]), len(readable))
            assert len([each for each in told if each.denied]) == min(3, there - seen)
            assert refusal is None or seen == 0
            hidden += there - seen
    assert hidden > 20


# changing


def sent(wish: Wish, model: Model) -> RestRequest:
    path = f"/{model.resources[wish.resource].path}"
    target = path if wish.verb in ("create", "upsert") else f"{path}/{wish.id}"
    how = f"&by={wish.key}" + "&onConflict=keep" * wish.keep if wish.key else ""
    return RestRequest(METHODS[wish.verb], target, "fields=id" + how, None if wish.verb == "delete" else wish.body)


def check_change(world: World, wish: Wish, viewer: Viewer) -> str:
    """Hold what is told of a change against what becomes of it."""
    rulebook = world.rulebook(viewer)
    try:
        wanted, refusal = interpret(sent(wish, world.model), world.model, rulebook.view)
    except Refusal:
        return "faulty"
    never = [each for each in matters_of(wanted, rulebook) if each.left == FALSE]
    if refusal is not None:
        assert never, (wish, viewer)
        return "never"
    assert all(isinstance(deed, WriteWish) for deed, _ in wanted.ops)
    told = world.runner.run(report_rows(wanted, rulebook, viewer, world.app.store))
    denied = any(each.denied for each in told)
    engine = Engine(world.model, world.app.store, Checks())
    met = world.runner.run(dry_run(wanted, viewer, engine))
    if met is None:
        assert not denied, (wish, viewer, told)
        return "made"
    if (
        met.code in (Code.FORBIDDEN, Code.UNAUTHENTICATED, Code.NOT_FOUND)
        or "allowed" in met.more
        or (met.message == "A reference leads to nothing.")
    ):
        assert denied, (wish, viewer, met, told)
        return str(met.code)
    return "other"


@CROSSED[0]
@CROSSED[1]
def test_where_nothing_is_said_to_refuse_a_change_it_is_made(world: World) -> None:
    random = Random(10)
    drawn, seen = Wishes(world.model, random), Counter[str]()
    for _ in range(CHANGES):
        viewer = random.choice(world.viewers)
        for wish in drawn.transaction(viewer, world.data).wishes[:1]:
            seen[check_change(world, wish, viewer)] += 1
    assert min(seen[each] for each in ("made", "never", "FORBIDDEN", "NOT_FOUND", "CONFLICT")) > 1, seen


def test_clauses_make_up_what_the_view_goes_by() -> None:
    """Of rows and fields, the rules that are told, joined by or, are the rule that the service joins to its statements."""
    for model in MODELS.values():
        for role in model.role_names:
            view: View = model.view(model.signature(model.viewer_as(role)))
            rules = Rulebook(model, view)
            for name, each in view.resources.items():
                assert or_(*(clause.left for clause in rules.verb(name, "read").clauses)) == each.read
                assert or_(*(clause.left for clause in rules.verb(name, "delete").clauses)) == each.delete
                for field in each.fields.values():
                    if field.field.stored:
                        told = [clause.left for clause in rules.field(name, field.field.name).clauses]
                        assert (or_(*told) if told else TRUE) == field.rule
