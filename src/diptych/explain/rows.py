"""Evaluates rules on existing rows, by the database, in the SQL that the service itself runs.

No rule is decided here. Each clause that depends on the row is a boolean column of one SELECT, beside the values that
it depends on, so that a verdict comes with its reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from diptych.ask.guarded import GuardedWrite
from diptych.ask.slots import SlotValues
from diptych.compile.dialect import Dialect
from diptych.compile.find import compile_find
from diptych.compile.plan import Plan
from diptych.compile.verdict import Asking, Listing, compile_counts, compile_hidden, compile_verdict
from diptych.db.store import Session
from diptych.explain.rulebook import Clause, Matter, Rulebook
from diptych.explain.text import unwrapped, value_text
from diptych.model.declare.roles import Viewer
from diptych.model.rules.expr import Col, Expr, Has, Slot, ViewerId, ViewerValue, leaves


class Subject(Struct, frozen=True):
    """A row to evaluate: the slot of its id, the values of all slots, and the write that would change it."""

    resource: str
    id: Slot | None
    values: SlotValues
    changed: GuardedWrite | None = None


class Question(Struct, frozen=True):
    """Is a matter allowed on the row, as it is or (`new`) as it would become?"""

    matter: Matter
    new: bool = False


class Finding(Struct, frozen=True):
    """The answer to a Question: does the matter hold, and which clauses hold, by which values."""

    question: Question
    holds: bool
    clauses: tuple[tuple[Clause, bool, str], ...]


class Counts(Struct, frozen=True):
    """Counts of a list: all rows, those that the viewer sees, and the ids of the first hidden ones."""

    everyone: int
    seen: int
    hidden: tuple[Any, ...]


class Inquiry:
    """Evaluates the rules of one viewer on the rows of one database."""

    def __init__(self, rulebook: Rulebook, viewer: Viewer, session: Session, dialect: Dialect) -> None:
        self.rulebook = rulebook
        self.viewer = viewer
        self.model = rulebook.model
        self._session = session
        self._dialect = dialect

    async def ask(self, subject: Subject, questions: Sequence[Question]) -> list[Finding] | None:
        """Evaluate questions on one row; None if there is no such row."""
        conditions, values = list(dict.fromkeys(_conditions(questions))), list(dict.fromkeys(_values(questions)))
        plan = compile_verdict(
            conditions, values, subject.resource, subject.id, self.model, self._dialect, subject.changed
        )
        rows = await self._run(plan, subject.values)
        if not rows:
            return None
        holds = dict(zip(conditions, map(bool, rows[0]), strict=False))
        facts = dict(zip(values, map(json.loads, rows[0][len(conditions) :]), strict=True)) if values else {}
        return [self._finding(question, subject.resource, holds, facts) for question in questions]

    async def values(self, subject: Subject, names: Sequence[str]) -> list[Any] | None:
        """The values of fields as JSON values; None if there is no such row."""
        columns = [Asking(Col((name,))) for name in names]
        plan = compile_verdict([], columns, subject.resource, subject.id, self.model, self._dialect)
        rows = await self._run(plan, subject.values)
        return [json.loads(cell) for cell in rows[0]] if rows else None

    async def find(self, resource: str, has: Expr, seen: Expr, values: SlotValues) -> tuple[Any, bool] | None:
        """The id of the row that has a key, and whether the viewer may know of it; None if there is none."""
        rows = await self._run(compile_find(resource, has, seen, self.model, self._dialect), values)
        return (rows[0][0], bool(rows[0][1])) if rows else None

    async def count(self, listing: Listing, values: SlotValues) -> Counts:
        """Count the rows of a list, all and visible."""
        ((everyone, seen),) = await self._run(compile_counts(listing, self.model, self._dialect), values)
        hidden = await self._run(compile_hidden(listing, self.model, self._dialect), values)
        return Counts(everyone, seen, tuple(json.loads(key) for (key,) in hidden))

    async def _run(self, plan: Plan, values: SlotValues) -> list[tuple[Any, ...]]:
        return await self._session.rows(plan.sql, plan.parameters(values, self.viewer, {}))

    # findings

    def _finding(
        self, question: Question, resource: str, holds: dict[Asking, bool], facts: dict[Asking, Any]
    ) -> Finding:
        new = question.new
        clauses = tuple(
            (clause, holds[Asking(clause.left, new)], self._facts(clause.left, resource, new, facts))
            for clause in question.matter.clauses
        )
        return Finding(question, holds[Asking(question.matter.left, new)], clauses)

    def _facts(self, expr: Expr, resource: str, new: bool, known: dict[Asking, Any]) -> str:
        """The values that a condition depends on, as text."""
        facts: list[str] = []
        for part in leaves(expr):
            match part:
                case Col():
                    facts.append(f"{self.rulebook.say(part, resource)} = {value_text(known[Asking(part, new)])}")
                case Has():
                    matching, there = known[Asking(part, new)]
                    facts.append(f"{matching} of {there} {self._path(part, resource)} match")
                case ViewerId():
                    facts.append(f"viewer.id = {value_text(self.viewer.id)}")
                case ViewerValue(name):
                    facts.append(f"viewer.{name} = {value_text(self.viewer.knows(name))}")
        return ", ".join(map(unwrapped, dict.fromkeys(facts)))

    def _path(self, has: Has, resource: str) -> str:
        """The relation whose rows are counted, as the model file names it."""
        relation = self.model.resources[resource].relations[has.relation]
        if relation.kind == "one" and isinstance(has.where, Has):
            return f"{relation.attr}.{self._path(has.where, relation.target)}"
        return relation.attr


def _conditions(questions: Iterable[Question]) -> Iterator[Asking]:
    for question in questions:
        yield Asking(question.matter.left, question.new)
        yield from (Asking(clause.left, question.new) for clause in question.matter.clauses)


def _values(questions: Iterable[Question]) -> Iterator[Asking]:
    for question in questions:
        for clause in question.matter.clauses:
            yield from (Asking(part, question.new) for part in leaves(clause.left) if isinstance(part, Col | Has))
