"""What became of a request, row by row: every row that it names by its id, and every list that it asks for.

    Post 0190…a: read: no
        Post.published_or_own (default.py:79)  published or author.id = viewer.id
            no: published = false, author.id = "0190…b", viewer.id = "0190…c"

Nothing is changed: what a change would make of a row is looked at inside a SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.ask.nodes import Call, Field, Follow, Part, Pick, Read, Watch, Write
from diptych.check.access import narrow_expr
from diptych.compile.verdict import Listing
from diptych.errors import Refusal
from diptych.explain.lines import finding_lines, lay, value_text
from diptych.explain.rows import Finding, Inquiry, Question, Subject
from diptych.explain.touched import of_filter, picks_of
from diptych.explain.wanted import Wanted
from diptych.explain.writes import WriteStory
from diptych.model.defs import RelationDef
from diptych.model.expr import FALSE, TRUE, Col, Compare, Expr, Slot, and_
from diptych.model.view import View

Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Told:
    """Some lines of a story; `denied` if they tell why something is refused or hidden."""

    lines: tuple[str, ...]
    denied: bool


class Story:
    """Tells of one request."""

    def __init__(self, wanted: Wanted, inquiry: Inquiry) -> None:
        self.wanted = wanted
        self.inquiry = inquiry
        self.rulebook = inquiry.rulebook
        self.model = inquiry.model
        self._told: list[Told] = []

    async def tell(self) -> list[Told]:
        """All that there is to tell, in the order of the request."""
        reads, values = self.wanted.reads
        for read in reads.asks:
            await self._read(read, values)
        if self.wanted.watch is not None:
            await self._watch(self.wanted.watch[0].ask, self.wanted.watch[1])
        for wish, given in self.wanted.deeds:
            if isinstance(wish.ask, Write):
                await self._write(wish.ask, given)
            elif wish.ask.id is not None:
                await self._call(wish.ask, wish.ask.id, given)
        return self._told

    def _say(self, text: str, depth: int, denied: bool = False) -> None:
        self._told.append(Told(tuple(lay(text, depth)), denied))

    def _find(self, title: str, finding: Finding, depth: int) -> None:
        matter = finding.question.matter
        name = title + matter.name.removeprefix(matter.resource)
        lines = tuple(finding_lines(name, finding.holds, finding.clauses, depth))
        self._told.append(Told(lines, not finding.holds))

    # reading

    async def _read(self, read: Read, values: Values) -> None:
        match read.where:
            case Compare(right=Slot() as slot) if read.take == "one":
                await self._row(read.resource, slot, values, read.pick)
            case _:
                await self._list(_Rows(read, values), 0)

    async def _watch(self, watch: Watch, values: Values) -> None:
        """The rows that are followed, as they are now."""
        picks = tuple(pick for read in watch.rows for pick in read.pick)
        match watch.where:
            case Compare("eq", Col(("id",)), Slot() as slot):
                await self._row(watch.resource, slot, values, picks)
            case _:
                await self._list(_Rows(Read(watch.resource, "list", picks, watch.where), values), 0)

    async def _row(
        self, resource: str, slot: Slot, values: Values, parts: Iterable[Pick | Part] = (), depth: int = 0
    ) -> bool:
        """One row: can it be read, and what of it is shown? Tells whether it can be read."""
        key, picks = values[slot.index], list(picks_of(parts))
        if key is None:
            self._say(f"{resource}: no row has such an id", depth, denied=True)
            return False
        title, subject = f"{resource} {key}", Subject(resource, slot, values)
        fields = [self.rulebook.field(resource, pick.name) for pick in picks if isinstance(pick, Field)]
        ways = [self.rulebook.way(resource, pick.relation) for pick in picks if isinstance(pick, Follow)]
        others = dict.fromkeys(each for each in (*fields, *ways) if each.left != TRUE)
        matters = (self.rulebook.verb(resource, "read"), *others)
        found = await self.inquiry.ask(subject, [Question(each) for each in matters])
        if found is None:
            self._say(f"{title}: there is no such row", depth, denied=True)
            return False
        for finding in found if found[0].holds else found[:1]:
            self._find(title, finding, depth)
        closed = {each.question.matter for each in found if not each.holds}
        for pick in picks if found[0].holds else ():
            if isinstance(pick, Follow) and self.rulebook.way(resource, pick.relation) not in closed:
                await self._follow(subject, pick, depth + 1)
        return found[0].holds

    async def _follow(self, subject: Subject, pick: Follow, depth: int) -> None:
        relation = self.model.resources[subject.resource].relations[pick.relation]
        if relation.kind != "one":
            await self._list(_Rows(pick.read, subject.values, subject, relation), depth)
            return
        found = await self.inquiry.values(subject, [pick.relation + "Id"])
        if found and found[0] is not None:
            key = self.model.resources[relation.target].key
            await self._row(relation.target, Slot(0, key), [key.parse(found[0])], pick.read.pick, depth)

    # lists

    async def _list(self, rows: _Rows, depth: int) -> None:
        resource = rows.read.resource
        counts = await self.inquiry.count(self._listing(rows), rows.values)
        where = f" of this {rows.subject.resource}" if rows.subject else ""
        many = self.model.resources[resource].many
        self._say(f"{many}{where}: {counts.everyone} match, and this viewer sees {counts.seen}", depth)
        key = self.model.resources[resource].key
        for each in counts.hidden:
            await self._hidden(rows, Subject(resource, Slot(0, key), [key.parse(each)]), depth + 1)

    def _listing(self, rows: _Rows) -> Listing:
        read, subject, relation = rows.read, rows.subject, rows.relation
        trusted = self.model.trusted(self.inquiry.viewer.id is not None)
        everyone, seen = _filter(read, trusted), _filter(read, self.rulebook.view)
        if subject is None or relation is None:
            return Listing(read.resource, everyone, seen)
        each = self.rulebook.view.resources.get(subject.resource)
        way = each.relations.get(relation.name) if each else None
        rule, back, link = (way.rule, way.back, way.link) if way else (FALSE, FALSE, FALSE)
        seen = and_(seen, back)
        return Listing(read.resource, everyone, seen, subject.resource, relation.name, subject.id, rule, link)

    async def _hidden(self, rows: _Rows, subject: Subject, depth: int) -> None:
        """Why a row is not in a list: it cannot be read, or what the list goes by cannot be seen on it."""
        resource, relation = subject.resource, rows.relation
        matters = [self.rulebook.verb(resource, "read")]
        matters += [each for each in of_filter(rows.read.where, resource, self.rulebook) if each.resource == resource]
        if relation is not None and relation.kind == "many":
            matters.append(self.rulebook.way(resource, relation.inverse))
        found = await self.inquiry.ask(subject, [Question(each) for each in dict.fromkeys(matters)]) or []
        title = f"{resource} {subject.values[0]}"
        closed = [each for each in found if not each.holds]
        for finding in closed if found[:1] != closed[:1] else closed[:1]:  # of a hidden row, no more is told
            self._find(title, finding, depth)
        if not closed:
            self._say(f"{title}: it could be read; a row on the way to it, or that the filter asks for, is hidden",
                      depth, denied=True)  # fmt: skip

    # changing

    async def _write(self, write: Write, values: Values) -> None:
        there = write.verb == "create" or await self._row(write.resource, write.id, values)
        if self.wanted.bare or not there:
            return
        story = WriteStory(write, values, self.wanted.view, self.inquiry)
        for title, finding in await story.findings():
            self._find(title, finding, 0)
        for name, slot in await story.references():
            relation = self.model.resources[write.resource].fields[name].relation
            target = self.model.resources[write.resource].relations[relation].target
            self._say(f"{name} = {value_text(values[slot.index])}", 0)
            await self._row(target, slot, values, depth=1)

    async def _call(self, call: Call, slot: Slot, values: Values) -> None:
        if await self._row(call.resource, slot, values):
            definition = self.model.resources[call.resource].call(call.name)
            subject = Subject(call.resource, slot, values)
            question = Question(self.rulebook.call(call.resource, definition))
            for finding in await self.inquiry.ask(subject, [question]) or ():
                self._find(f"{call.resource} {values[slot.index]}", finding, 0)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A list that is asked for: at the root, or of a row by a relation."""

    read: Read
    values: Values
    subject: Subject | None = None
    relation: RelationDef | None = None


def _filter(read: Read, view: View) -> Expr:
    """The rows of a list that a view has."""
    each = view.resources.get(read.resource)
    if each is None:
        return FALSE
    try:
        return and_(narrow_expr(read.where, each, view), each.read)
    except Refusal:  # it filters by a name that the view does not have
        return FALSE
