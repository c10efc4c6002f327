"""The two styles, the two stores and the ledger agree about changes.

A random sequence of changes, by viewers of all kinds, right ones and wrong ones, alone and several in one
transaction, is made four times from the same rows: twice on SQLite and twice on PostgreSQL, each step in GraphQL
or in REST. After every step all answers are equal, and equal to what a slow and obvious evaluator says: the code
and the places at fault, or what was picked of the row. In the end all rows are.

What is printed in either style is translated back to the very same Ask.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from diptych.ask.guarded import GuardedWrite, Why
from diptych.compile import getters
from diptych.compile.dialect import Dialect
from diptych.compile.write import WritePlan, compile_write
from diptych.demo.model import model as default
from diptych.engine import write as transact
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE, TRUE
from diptych.policy import guards as change
from tests.support import edge_cases
from tests.support.edge_cases import rows
from tests.support.effort import LONG, long_where, scaled
from tests.support.oracle import wire
from tests.support.oracle_writes import Ledger, Refused
from tests.support.proof import exactly
from tests.support.proof_writes import Clock, Outcome, Run, kind, told, viewers
from tests.support.random_writes import Style, Transaction, Wishes
from tests.support.running import Postgres

MODELS = {"default": default, "edge_cases": edge_cases.constrained}
SEQUENCES = scaled(760, 4)
"""Sequences for each model and data set."""
LENGTH = 8


class Panels:
    """One model with one data set, served several times over."""

    def __init__(self, model: Model, seed: int, urls: Sequence[str], runner: asyncio.Runner, clock: Clock) -> None:
        self.model = model
        self.runner = runner
        self.clock = clock
        self.data = kind(model, rows(model, seed, 6))
        self.runs = [Run(model, url, self.data, runner) for url in urls]
        self.viewers = viewers(model, self.data)
        self.seen: Counter[str] = Counter()
        """What became of the changes."""

    def close(self) -> None:
        for run in self.runs:
            self.runner.run(run.stop())

    def prove(self, seeds: range) -> None:
        """So many sequences are made alike."""
        for seed in seeds:
            try:
                self.runner.run(self._sequence(Random(seed)))
            except AssertionError as error:
                raise AssertionError(f"in the sequence {seed}: {error}") from error

    async def _sequence(self, random: Random) -> None:
        grant_store = Ledger(self.model, self.data)
        await asyncio.gather(*(run.reset() for run in self.runs))
        wishes = Wishes(self.model, random, many=True)
        for self.clock.step in range(LENGTH):
            viewer = random.choice(self.viewers)
            await self._step(grant_store, wishes.transaction(viewer, grant_store.rows), viewer, random)
        wanted = {
            name: {
                str(row["id"]): {
                    key: wire(self.model.resources[name].fields[key].scalar, value) for key, value in row.items()
                }
                for row in found
            }
            for name, found in grant_store.rows.items()
        }
        for run in self.runs:
            got = await run.rows()
            for name, table in wanted.items():
                assert exactly(sort(got[name])) == exactly(sort(table)), (
                    f"{name} on {told(run)}:\ngot {got[name]}\nnot {table}"
                )

    async def _step(self, grant_store: Ledger, transaction: Transaction, viewer: Viewer, random: Random) -> None:
        made: Sequence[tuple[int, Any]] = ()
        begun = True
        try:
            answers = grant_store.transact(transaction.wishes, viewer, self.clock.moment)
            wanted, made, typed = Outcome(None, (), answers), grant_store.made, False
        except Refused as refused:
            wanted, typed = Outcome(refused.code, refused.places, at=refused.at), refused.typed
            if refused.at is None:
                begun, transaction = False, replace(transaction, whole=True)
        self.seen[wanted.code or "done"] += 1
        styles = choose(transaction, len(self.runs), random)
        found = await asyncio.gather(
            *(
                run.make(transaction, style, viewer, made, begun and styles.index(style) == index)
                for index, (run, style) in enumerate(zip(self.runs, styles, strict=True))
            )
        )
        for run, style, outcome in zip(self.runs, styles, found, strict=True):
            expected = expect(wanted, outcome, style, typed)
            if exactly_alike(outcome, expected):
                continue
            wishes = "\n".join(map(repr, transaction.wishes))
            raise AssertionError(f"{style} on {told(run)} by {viewer}:\n{wishes}\ngot {outcome}\nnot {expected}")


def choose(transaction: Transaction, count: int, random: Random) -> list[Style]:
    """A style for each run; at least two different ones, if it can be asked in both."""
    if len(transaction.styles) == 1:
        return [*transaction.styles] * count
    styles = transaction.styles
    chosen: list[Style] = [random.choice(styles) for _ in range(count)]
    if len(set(chosen)) == 1:
        chosen[random.randrange(count)] = styles[styles[0] == chosen[0]]
    return chosen


def expect(wanted: Outcome, got: Outcome, style: Style, typed: bool) -> Outcome:
    """What the ledger says, as far as the style tells it."""
    if style == "batch" and (typed or wanted.at is None) and set(got.places or ()) <= set(wanted.places or ()):
        return replace(wanted, places=got.places, at=None)  # the first request that is denied is told alone
    if style in ("rest", "batch"):
        return replace(wanted, at=None)
    if typed:  # what a role may never give is not in its types
        return replace(wanted, code=Code.BAD_USER_INPUT, places=got.places)
    if wanted.code is Code.BAD_USER_INPUT and wanted.at is None and _is_part(got.places, wanted.places or ()):
        return replace(wanted, places=got.places)  # faults of types are told before others
    return wanted


def _is_part(got: Sequence[tuple[int, str]] | None, wanted: Sequence[tuple[int, str]]) -> bool:
    """Does every place name a fault, or the whole body of one?"""
    indexes = {index for index, _ in wanted}
    return all(each in wanted or (each[1] == "" and each[0] in indexes) for each in got or ())


def exactly_alike(one: Outcome, other: Outcome) -> bool:
    same = (one.code, one.at) == (other.code, other.at) and list(one.places or ()) == list(other.places or ())
    return same and exactly(one.answers) == exactly(other.answers)


def sort(table: Mapping[str, Mapping[str, Any]]) -> Any:
    return {key: dict(sorted(row.items())) for key, row in sorted(table.items())}


@contextmanager
def opened(model: Model, seed: int, urls: Sequence[str]) -> Iterator[Panels]:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setattr(getters, "_now", clock.now)
        found = Panels(model, seed, urls, runner, clock)
        yield found
        found.close()


MEMORY = "sqlite:///:memory:"


@pytest.fixture(scope="module", params=[(name, seed) for name in MODELS for seed in range(2)], ids=str)
def panels(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Panels]:
    name, seed = request.param
    with opened(MODELS[name], seed, [MEMORY, postgres.create(), MEMORY, postgres.create()]) as found:
        yield found


@pytest.mark.timeout(scaled(3_000))
@long_where(panels=[("default", 0), ("edge_cases", 0)])
def test_both_styles_and_both_stores_and_the_ledger_agree_about_changes(panels: Panels) -> None:
    panels.prove(range(SEQUENCES))
    assert panels.seen["done"] > sum(panels.seen.values()) / 5, "too little was changed to prove anything"


# what must fail


def _none(self: object) -> Iterator[Any]:
    return iter(())


def _without(why: Why, was: bool = True) -> Any:
    """The guards of a change without those that look at the row as it is, or as it becomes."""
    original = change._WriteGuards._guards

    def guards(self: Any, values: Any) -> Iterator[Any]:
        for each in original(self, values):
            if each.why is not why or (each.becomes == FALSE) is not was:
                yield each

    return guards


BROKEN: Mapping[str, tuple[str, Any]] = {
    "rules are not tried on the row as it becomes": ("_guards", _without(Why.DENIED, was=False)),
    "rules are not tried on the row as it is": ("_guards", _without(Why.DENIED)),
    "rows that cannot be read are changed": ("_guards", _without(Why.HIDDEN)),
    "references are not looked at": ("_references", _none),
    "versions are not looked at": ("_versions", _none),
    "states move as they like": ("_states", _none),
    "others' moves are made": ("_moves_of_others", _none),
    "what is hidden counts as shown": ("_shows", lambda self, name: TRUE),
}
KEPT = (
    "rules are not tried on the row as it becomes",
    "references are not looked at",
    "what is hidden counts as shown",
)
"""Those that are tried every time; the others only where more is proved than usual."""


@pytest.mark.long
@pytest.mark.parametrize("how", BROKEN if LONG else KEPT)
def test_it_fails_where(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change._WriteGuards, *BROKEN[how])
    model = default if "move" in how else edge_cases.model
    with opened(model, 0, [MEMORY, MEMORY]) as panels, pytest.raises(AssertionError):
        panels.prove(range(400))


def test_it_fails_where_one_store_tells_of_another_fault_first(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = compile_write

    def reversed_on_postgres(changed: GuardedWrite, model: Model, of: Dialect, *rest: Any) -> WritePlan:
        guards = changed.guards if of.name == "sqlite" else changed.guards[::-1]
        return original(msgspec.structs.replace(changed, guards=guards), model, of, *rest)

    monkeypatch.setattr(transact, "compile_write", reversed_on_postgres)
    with opened(default, 0, [MEMORY, postgres.create()]) as panels, pytest.raises(AssertionError, match="PostgreSQL"):
        panels.prove(range(400))
