"""What the rules say of the rows that are there: asked of the database, in the SQL that the service itself runs.

No rule is decided here. Each clause that depends on the row is a boolean of one SELECT, beside the values that it
looks at, so that a verdict can be told with its reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.ask.change import Changed
from diptych.compile.dialect import Dialect
from diptych.compile.plan import Plan
from diptych.compile.verdict import Asking, Listing, compile_counts, compile_hidden, compile_verdict
from diptych.db.store import Session
from diptych.explain.lines import together, value_text
from diptych.explain.rulebook import Clause, Matter, Rulebook
from diptych.model.expr import Col, Expr, Has, Slot, ViewerId, ViewerValue, leaves
from diptych.model.roles import Viewer

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """A row to ask about: the slot that holds its id, the values of all slots, and what it would become."""

    resource: str
    id: Slot | None
    values: Values
    changed: Changed | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Is a matter allowed, on the row as it is, or as it would become?"""

    matter: Matter
    new: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer: does the matter hold, and of each clause, does it, and by which values."""

    question: Question
    holds: bool
    clauses: tuple[tuple[Clause, bool, str], ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows of a list there are, how many the viewer sees, and the first that are hidden."""

    everyone: int
    seen: int
    hidden: tuple[Any, ...]


class Inquiry:
    """Asks one database for one viewer."""

    def __init__(self, rulebook: Rulebook, viewer: Viewer, session: Session, dialect: Dialect) -> None:
        self.rulebook = rulebook
        self.viewer = viewer
        self.model = rulebook.model
        self._session = session
        self._dialect = dialect

    async def ask(self, subject: Subject, questions: Sequence[Question]) -> list[Finding] | None:
        """What is found of one row; None if there is no such row."""
        conditions, values = list(dict.fromkeys(_conditions(questions))), list(dict.fromkeys(_values(questions)))
        plan = compile_verdict(conditions, values, subject.resource, subject.id, self.model, self._dialect,
                               subject.changed)  # fmt: skip
        rows = await self._run(plan, subject.values)
        if not rows:
            return None
        holds = dict(zip(conditions, map(bool, rows[0]), strict=False))
        told = dict(zip(values, map(json.loads, rows[0][len(conditions) :]), strict=True)) if values else {}
        return [self._finding(question, subject.resource, holds, told) for question in questions]

    async def values(self, subject: Subject, names: Sequence[str]) -> list[Any] | None:
        """The values of fields, as JSON has them; None if there is no such row."""
        asked = [Asking(Col((name,))) for name in names]
        plan = compile_verdict([], asked, subject.resource, subject.id, self.model, self._dialect)
        rows = await self._run(plan, subject.values)
        return [json.loads(each) for each in rows[0]] if rows else None

    async def count(self, listing: Listing, values: Values) -> Counts:
        """How much of a list the viewer sees."""
        ((everyone, seen),) = await self._run(compile_counts(listing, self.model, self._dialect), values)
        hidden = await self._run(compile_hidden(listing, self.model, self._dialect), values)
        return Counts(everyone, seen, tuple(json.loads(key) for (key,) in hidden))

    async def _run(self, plan: Plan, values: Values) -> list[tuple[Any, ...]]:
        return await self._session.rows(plan.sql, plan.parameters(values, self.viewer, {}))

    # what was found

    def _finding(
        self, question: Question, resource: str, holds: dict[Asking, bool], told: dict[Asking, Any]
    ) -> Finding:
        new = question.new
        clauses = tuple(
            (clause, holds[Asking(clause.left, new)], self._facts(clause.left, resource, new, told))
            for clause in question.matter.clauses
        )
        return Finding(question, holds[Asking(question.matter.left, new)], clauses)

    def _facts(self, expr: Expr, resource: str, new: bool, told: dict[Asking, Any]) -> str:
        """The values that a condition was decided by."""
        facts: list[str] = []
        for part in leaves(expr):
            match part:
                case Col():
                    facts.append(f"{self.rulebook.say(part, resource)} = {value_text(told[Asking(part, new)])}")
                case Has():
                    matching, there = told[Asking(part, new)]
                    facts.append(f"{matching} of {there} {self._path(part, resource)} match")
                case ViewerId():
                    facts.append(f"viewer.id = {value_text(self.viewer.id)}")
                case ViewerValue(name):
                    facts.append(f"viewer.{name} = {value_text(self.viewer.knows(name))}")
        return ", ".join(map(together, dict.fromkeys(facts)))

    def _path(self, has: Has, resource: str) -> str:
        """The relation of which rows are counted, in the words of the model file."""
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
