"""What a change must pass: the rules of its row, as it is and as it would become, of its fields, states, references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from diptych.ask.nodes import Assign, Write
from diptych.check.change import guard
from diptych.explain.rows import Finding, Inquiry, Question, Subject
from diptych.explain.rulebook import Clause, Matter
from diptych.explain.touched import of_verb, states
from diptych.model.expr import FALSE, Col, Compare, Expr, IsNull, Slot, and_, mask, or_
from diptych.model.view import View

Values = Sequence[Any]
_SAME = "unchanged"


class WriteStory:
    """Tells of one change. `view` is the one by which it was translated."""

    def __init__(self, write: Write, values: Values, view: View, inquiry: Inquiry) -> None:
        self.write = write
        self.inquiry = inquiry
        self.rulebook = inquiry.rulebook
        new = write.verb == "create"
        self.subject = Subject(write.resource, None if new else write.id, values, guard(write, view))

    async def findings(self) -> list[tuple[str, Finding]]:
        """What is found, each under the name of the row. Of the row as it would become, only what refuses it."""
        write = self.write
        key = "" if write.verb == "create" else f" {self.subject.values[write.id.index]}"
        title, later = f"{write.resource}{key}", f"{write.resource}{key}, as it would become"
        if write.verb == "create":
            title = later = f"A new {write.resource}"
        questions = list(self._questions())
        found = await self.inquiry.ask(self.subject, questions) or []
        same = {each.question.matter.name for each in found if _is_unchanged(each)}
        return [
            (later if each.question.new else title, each)
            for each in found
            if write.verb == "create" or not each.question.new
            or not (each.holds or each.question.matter.name in same)
        ]  # fmt: skip

    def _questions(self) -> Iterator[Question]:
        verb, new = self.write.verb, self.write.verb == "create"
        rules = list(of_verb(self.write, self.rulebook))
        kept = [self._or_same(each) for each in rules] if verb == "replace" else rules
        yield from (Question(each, new) for each in kept)
        yield from (Question(each, new) for _, each in states(self.write, self.subject.values, self.rulebook))
        if verb in ("update", "replace"):
            yield from (Question(each, new=True) for each in rules)
        if verb != "delete":
            yield Question(self.rulebook.verb(self.write.resource, "read"), new=True)

    def _or_same(self, matter: Matter) -> Matter:
        """A replacement may give back what its viewer was shown, also where it may not be changed."""
        for assign in self.write.values:
            if matter.name == f"{self.write.resource}.{assign.name}: update":
                same = self._same(assign)
                clause = Clause(_SAME, "", "it has the value that the viewer is shown", same)
                return replace(matter, left=or_(same, matter.left), clauses=(*matter.clauses, clause))
        return matter

    def _same(self, assign: Assign) -> Expr:
        seen = self.rulebook.view.resources.get(self.write.resource)
        shown = seen.fields.get(assign.name) if seen else None
        if shown is None:
            return FALSE
        value = mask(shown.rule, shown.field.computed or Col((assign.name,)))
        return IsNull(value) if assign.value is None else Compare("eq", value, assign.value)

    async def references(self) -> list[tuple[str, Slot]]:
        """The references that are given anew, by their fields."""
        fields = self.inquiry.model.resources[self.write.resource].fields
        given = [(each.name, each.value) for each in self.write.values if each.value and fields[each.name].relation]
        if self.write.verb == "create" or not given:
            return given
        stays = [Matter(name, self.write.resource, self._stays(name, slot)) for name, slot in given]
        found = await self.inquiry.ask(self.subject, [Question(each) for each in stays]) or []
        kept = {each.question.matter.name for each in found if each.holds}
        return [(name, slot) for name, slot in given if name not in kept]

    def _stays(self, name: str, slot: Slot) -> Expr:
        seen = self.rulebook.view.resources.get(self.write.resource)
        shown = seen.fields.get(name) if seen else None
        return and_(shown.rule, Compare("eq", Col((name,)), slot)) if shown else FALSE


def _is_unchanged(finding: Finding) -> bool:
    return any(clause.name == _SAME and holds for clause, holds, _ in finding.clauses)
