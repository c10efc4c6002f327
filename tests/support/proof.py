"""Asks straight into the Engine, beside the Oracle: what both answer must be the same.

A Proof is one model with one data set on one store. Cursors that are given are sealed with the engine's own key;
cursors in an answer are opened with it, and their keys compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings

from diptych.api.graphql.printer import print_graphql
from diptych.ask.cursor import CUT, Cut, binding, bound_slots, key_digest, key_scalars, unseal
from diptych.ask.nodes import ConnectionPart, EdgePart, Edges, Follow, Nodes, PageInfo, Pick, Read
from diptych.ask.slots import Source
from diptych.ask.wish import Wish
from diptych.db.store import Store
from diptych.engine.read import Engine
from diptych.engine.read_plan import Paged
from diptych.errors import Code
from diptych.model.declare.roles import Viewer
from diptych.model.model import Model
from diptych.policy.limits import Checks
from tests.support.asks import Drawn, asks
from tests.support.edge_cases import Data, load, rows
from tests.support.oracle import Oracle

PHASES = tuple(phase for phase in Phase if phase is not Phase.explain)


class Proof:
    """One model, one data set, one store."""

    def __init__(self, model: Model, seed: int, store: Store, runner: asyncio.Runner) -> None:
        self.model = model
        self.rows: Data = rows(model, seed)
        self.engine = Engine(model, store, Checks(), secret=b"secret")
        self.runner = runner
        runner.run(store.open(model))
        runner.run(load(store, model, self.rows))

    def viewers(self) -> Mapping[str, Viewer]:
        """Viewers of all kinds: each role with the id of a row, without one, and with scopes."""
        who = next(name for name in ("User", "Person") if name in self.model.resources)
        ids = [row["id"] for row in self.rows[who]]
        path = self.model.resources[who].path
        roles = [name for name in self.model.roles if name != "signed_in"]
        return {
            "anonymous": self.model.anonymous,
            "someone": self.model.viewer(frozenset(), ids[0]),
            "integer": self.model.viewer(frozenset(), "1"),
            "service": self.model.viewer(frozenset(roles[-1:])),
            "narrow": self.model.viewer(frozenset(roles), ids[1], frozenset({f"{path}:read", "nothing:read"})),
            "middle": self.model.viewer(frozenset(roles[:1]), ids[2]),
            "top": self.model.viewer(frozenset(roles[-1:]), ids[3]),
        }

    def key_of(self, viewer: Viewer, read: Read, values: Sequence[Any]) -> bytes:
        """The key that signs the cursors of a list."""
        return cursor_key(self.engine, viewer, read, values)

    def prove(self, viewer: Viewer, examples: int) -> None:
        """So many random Asks of a viewer are answered as the Oracle does."""

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
        @given(asks(self.model, viewer, self.rows, roots=3))
        def answered(drawn: Drawn) -> None:
            self.check(drawn, viewer)

        answered()

    def check(self, drawn: Drawn, viewer: Viewer) -> None:
        """The engine answers as the Oracle does."""
        values = drawn.canonical()
        oracle = Oracle(self.model, viewer, self.rows, shown_cursor)
        expected = [oracle.answer(read, values) for read in drawn.reads]
        answers = self.runner.run(self._ask(drawn, viewer))
        reveal = Reveal(self, viewer, values)
        for read, answer, wanted in zip(drawn.reads, answers, expected, strict=True):
            got = None if answer is None else reveal.read(read, msgspec.json.decode(answer))
            if exactly(got) != exactly(wanted):
                raise AssertionError(f"{self.told(drawn)}\n got   {got}\nnot   {wanted}")

    def told(self, drawn: Drawn) -> str:
        """A request as a person would read it."""
        document, variables = print_graphql(drawn.asks, drawn.values, self.model)
        return f"\n{document}\n{variables}"

    async def _ask(self, drawn: Drawn, viewer: Viewer) -> Sequence[bytes | None]:
        raw = drawn.sealed(self.model, lambda read, values: self.key_of(viewer, read, values))
        inputs = {str(index): value for index, value in enumerate(raw)}
        sources = [Source(("variables", name)) for name in inputs]
        view = self.model.view(self.model.signature(viewer))
        ready = self.engine.prepare(Wish(drawn.reads, drawn.slots, tuple(sources)), view, Code.BAD_USER_INPUT)
        return await self.engine.answer(ready, inputs, viewer)


def cursor_key(engine: Engine, viewer: Viewer, read: Read, values: Sequence[Any]) -> bytes:
    """The key with which an engine signs the cursors of a list."""
    assert read.page is not None
    keys = key_scalars(read, engine.model.resources)
    return engine.cursor_key(Paged(read.page, binding(read), bound_slots(read), keys), values, viewer)


class Reveal:
    """Puts {"cursor": keys} in the place of every cursor in an answer."""

    def __init__(self, proof: Proof, viewer: Viewer, values: Sequence[Any]) -> None:
        self.proof = proof
        self.viewer = viewer
        self.values = values

    def read(self, read: Read, answer: Any) -> Any:
        if read.take == "page":
            return {part.label: self.part(part, read, answer[part.label]) for part in read.pick}
        if read.take == "list":
            return [self.row(read.pick, row) for row in answer]
        return None if answer is None else self.row(read.pick, answer)

    def row(self, picks: Sequence[Pick | ConnectionPart], row: Any) -> Any:
        """The row as it stands, its relations revealed."""
        inside = {pick.label: pick.read for pick in picks if isinstance(pick, Follow)}
        return {label: self.read(inside[label], value) if label in inside else value for label, value in row.items()}

    def part(self, part: Pick | ConnectionPart, read: Read, answer: Any) -> Any:
        match part:
            case Nodes(pick=pick):
                return [self.row(pick, row) for row in answer]
            case Edges(parts=parts):
                kinds = {each.label: each for each in parts}
                return [
                    {label: self.edge(kinds[label], read, value) for label, value in edge.items()} for edge in answer
                ]
            case PageInfo(parts=pairs):
                cursors = {label for kind, label in pairs if kind in ("startCursor", "endCursor")}
                return {
                    label: self.cursor(read, value) if label in cursors else value for label, value in answer.items()
                }
        return answer

    def edge(self, part: EdgePart, read: Read, value: Any) -> Any:
        if part.kind == "node":
            return self.row(part.pick, value)
        return self.cursor(read, value) if part.kind == "cursor" else value

    def cursor(self, read: Read, cursor: Any) -> Any:
        if cursor is None:
            return None
        key = self.proof.key_of(self.viewer, read, self.values)
        return {"cursor": unseal(key, cursor, key_scalars(read, self.proof.model.resources))}


def shown_cursor(read: Read, keys: Sequence[Any]) -> Any:
    """A cursor as `Reveal` shows it: the keys of a row, of which long texts are truncated."""
    return {"cursor": tuple(_truncated(key) for key in keys)}


def _truncated(key: Any) -> Any:
    long = isinstance(key, str) and len(key) > CUT
    return Cut(key[:CUT], key_digest(key.encode()) or "") if long else key


def exactly(answer: Any) -> Any:
    """An answer so that == tells what JSON tells: the order of keys, and 1 from true; not 1 from 1.0."""
    if isinstance(answer, dict):
        return [(key, exactly(value)) for key, value in answer.items()]
    if isinstance(answer, list):
        return ["list", *map(exactly, answer)]
    return (type(answer).__name__, answer) if isinstance(answer, bool) else answer
