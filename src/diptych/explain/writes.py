"""The rules that a write must pass: of its row, before and after, of its fields, states and references.

A dry run shows the service's own answer: the writes run in a transaction that is always rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Assign, Write
from diptych.ask.slots import SlotValues
from diptych.ask.wish import WriteWish
from diptych.engine.read import Engine
from diptych.engine.write import WriteEngine
from diptych.engine.write_op import WriteOp
from diptych.errors import Refusal
from diptych.explain.rows import Finding, Inquiry, Question, Subject
from diptych.explain.rulebook import Clause, Matter
from diptych.explain.scope import of_verb, states
from diptych.explain.understood import Wanted
from diptych.model.declare.roles import Viewer
from diptych.model.rules.expr import FALSE, Col, Compare, Expr, IsNull, Slot, and_, mask, or_
from diptych.model.view import View
from diptych.policy.guards import add_guards

_SAME = "unchanged"


class WriteReport:
    """Reports on one write. `view` is the one that translated it."""

    def __init__(self, write: Write, values: SlotValues, view: View, inquiry: Inquiry) -> None:
        self.write = write
        self.inquiry = inquiry
        self.rulebook = inquiry.rulebook
        new = write.verb == "create"
        self.subject = Subject(write.resource, None if new else write.id, values, add_guards(write, view))

    async def findings(self) -> list[tuple[str, Finding]]:
        """The findings, each with the title of its row. Of the row as it would become, only denials."""
        write = self.write
        key = "" if write.verb == "create" else f" {self.subject.values[write.id.index]}"
        title, later = f"{write.resource}{key}", f"{write.resource}{key}, as it would become"
        if write.verb == "create":
            title = later = f"A new {write.resource}"
        questions = list(self._questions())
        findings = await self.inquiry.ask(self.subject, questions) or []
        same = {finding.question.matter.name for finding in findings if _is_unchanged(finding)}
        return [
            (later if finding.question.new else title, finding)
            for finding in findings
            if write.verb == "create"
            or not finding.question.new
            or not (finding.holds or finding.question.matter.name in same)
        ]

    def _questions(self) -> Iterator[Question]:
        verb, new = self.write.verb, self.write.verb == "create"
        rules = list(of_verb(self.write, self.rulebook))
        kept = [self._or_same(matter) for matter in rules] if verb == "replace" else rules
        yield from (Question(matter, new) for matter in kept)
        yield from (Question(matter, new) for _, matter in states(self.write, self.subject.values, self.rulebook))
        if verb in ("update", "replace"):
            yield from (Question(matter, new=True) for matter in rules)
        if verb in ("create", "update", "replace"):
            yield Question(self.rulebook.verb(self.write.resource, "read"), new=True)

    def _or_same(self, matter: Matter) -> Matter:
        """A replacement may send back the value that its viewer was shown, also of a field that may not be changed."""
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
        """The references that the write changes, by their fields."""
        fields = self.inquiry.model.resources[self.write.resource].fields
        assigned = [
            (assign.name, assign.value) for assign in self.write.values if assign.value and fields[assign.name].relation
        ]
        if self.write.verb == "create" or not assigned:
            return assigned
        stays = [Matter(name, self.write.resource, self._stays(name, slot)) for name, slot in assigned]
        findings = await self.inquiry.ask(self.subject, [Question(matter) for matter in stays]) or []
        kept = {finding.question.matter.name for finding in findings if finding.holds}
        return [(name, slot) for name, slot in assigned if name not in kept]

    def _stays(self, name: str, slot: Slot) -> Expr:
        seen = self.rulebook.view.resources.get(self.write.resource)
        shown = seen.fields.get(name) if seen else None
        return and_(shown.rule, Compare("eq", Col((name,)), slot)) if shown else FALSE


def _is_unchanged(finding: Finding) -> bool:
    return any(clause.name == _SAME and holds for clause, holds, _ in finding.clauses)


async def dry_run(wanted: Wanted, viewer: Viewer, engine: Engine) -> Refusal | None:
    """The Refusal of a request's writes, if there is one.

    The model's own functions are not run: what they do outside of the database could not be rolled back.
    """
    write_engine = WriteEngine(engine)
    ops: list[WriteOp] = []
    nests = wanted.nests or ((0, False),) * len(wanted.ops)
    for (wish, _), inputs, (more, part) in zip(wanted.ops, wanted.inputs, nests, strict=True):
        assert isinstance(wish, WriteWish)
        prepared = write_engine.prepare(wish, inputs, wanted.view)
        ops.append(WriteOp(prepared, inputs, more=more, part=part))
    session = await engine.store.session()
    try:
        writes = write_engine.bind(ops, viewer)
        engine.checks.price(RequestMeasures("rest", viewer), viewer, sum(bound.price for bound in writes))
        await session.drive(partial(write_engine.changes, writes))
    except Refusal as refusal:
        return refusal
    finally:
        await session.end()
    return None
