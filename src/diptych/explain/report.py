"""The row-by-row report of a request: every row that it names by id, and every list that it requests.

    Post 0190…a: read: no
        Post.published_or_own (demo/model.py:79)  published or author.id = viewer.id
            no: published = false, author.id = "0190…b", viewer.id = "0190…c"

Nothing is written: what a write would make of a row is evaluated inside a SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from diptych.ask.nodes import Call, ConnectionPart, Field, Follow, Pick, Read, Watch, Write
from diptych.ask.slots import Ref, SlotValues
from diptych.ask.walk import picks
from diptych.compile.verdict import Listing
from diptych.errors import Refusal
from diptych.explain.rows import Finding, Inquiry, Question, Subject
from diptych.explain.scope import of_filter
from diptych.explain.text import finding_lines, lay, value_text
from diptych.explain.understood import Wanted
from diptych.explain.writes import WriteReport
from diptych.model.defs import RelationDef
from diptych.model.rules.expr import FALSE, TRUE, Col, Compare, Expr, Slot, and_
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER
from diptych.policy.access import narrow_expr
from diptych.policy.upserts import as_create, as_update, key_of_upsert, without_key


class ReportEntry(Struct, frozen=True):
    """Lines of a report; `denied` if they say why something is refused or hidden."""

    lines: tuple[str, ...]
    denied: bool


class RowReport:
    """Builds the report of one request."""

    def __init__(self, wanted: Wanted, inquiry: Inquiry) -> None:
        self.wanted = wanted
        self.inquiry = inquiry
        self.rulebook = inquiry.rulebook
        self.model = inquiry.model
        self._entries: list[ReportEntry] = []

    async def entries(self) -> list[ReportEntry]:
        """The whole report, in the order of the request."""
        reads, values = self.wanted.reads
        for read in reads.asks:
            await self._read(read, values)
        if self.wanted.watch is not None:
            await self._watch(self.wanted.watch[0].ask, self.wanted.watch[1])
        for wish, inputs in self.wanted.ops:
            if Ref in map(type, inputs):
                self._say(f"{wish.ask.resource}: it refers to a row that this request writes first", 0)
            elif isinstance(wish.ask, Write):
                await self._write(wish.ask, inputs)
            elif wish.ask.id is not None:
                await self._call(wish.ask, wish.ask.id, inputs)
        return self._entries

    def _say(self, text: str, depth: int, denied: bool = False) -> None:
        self._entries.append(ReportEntry(tuple(lay(text, depth)), denied))

    def _find(self, title: str, finding: Finding, depth: int) -> None:
        matter = finding.question.matter
        name = title + matter.name.removeprefix(matter.resource)
        lines = tuple(finding_lines(name, finding.holds, finding.clauses, depth))
        self._entries.append(ReportEntry(lines, not finding.holds))

    # reading

    async def _read(self, read: Read, values: SlotValues) -> None:
        if read.resource == VIEWER:
            await self._viewer(read)
            return
        match read.where:
            case Compare(right=Slot() as slot) if read.take == "one":
                await self._row(read.resource, slot, values, read.pick)
            case _:
                await self._list(_Rows(read, values), 0)

    async def _viewer(self, read: Read) -> None:
        """The viewer, and its row wherever that is picked."""
        viewer = self.inquiry.viewer
        if not viewer.signed_in:
            self._say("viewer: there is none without a token", 0, denied=True)
            return
        self._say(f"viewer: {value_text(viewer.id)}", 0)
        for pick in picks(read.pick):
            if isinstance(pick, Follow) and viewer.id is not None:
                key = self.model.resources[pick.read.resource].key
                await self._row(pick.read.resource, Slot(0, key), [key.parse(viewer.id)], pick.read.pick, 1)

    async def _watch(self, watch: Watch, values: SlotValues) -> None:
        """The rows of a subscription, as they are now."""
        picked = tuple(pick for read in watch.rows for pick in read.pick)
        match watch.where:
            case Compare("eq", Col(("id",)), Slot() as slot):
                await self._row(watch.resource, slot, values, picked)
            case _:
                await self._list(_Rows(Read(watch.resource, "list", picked, watch.where), values), 0)

    async def _row(
        self, resource: str, slot: Slot, values: SlotValues, parts: Iterable[Pick | ConnectionPart] = (), depth: int = 0
    ) -> bool:
        """Report one row: can it be read, and which fields are shown? Returns whether it can be read."""
        key, picked = values[slot.index], list(picks(parts))
        if key is None:
            self._say(f"{resource}: no row has such an id", depth, denied=True)
            return False
        title, subject = f"{resource} {key}", Subject(resource, slot, values)
        fields = [self.rulebook.field(resource, pick.name) for pick in picked if isinstance(pick, Field)]
        ways = [self.rulebook.way(resource, pick.relation) for pick in picked if isinstance(pick, Follow)]
        others = dict.fromkeys(matter for matter in (*fields, *ways) if matter.left != TRUE)
        matters = (self.rulebook.verb(resource, "read"), *others)
        findings = await self.inquiry.ask(subject, [Question(matter) for matter in matters])
        if findings is None:
            self._say(f"{title}: there is no such row", depth, denied=True)
            return False
        for finding in findings if findings[0].holds else findings[:1]:
            self._find(title, finding, depth)
        closed = {finding.question.matter for finding in findings if not finding.holds}
        for pick in picked if findings[0].holds else ():
            if isinstance(pick, Follow) and self.rulebook.way(resource, pick.relation) not in closed:
                await self._follow(subject, pick, depth + 1)
        return findings[0].holds

    async def _follow(self, subject: Subject, pick: Follow, depth: int) -> None:
        relation = self.model.resources[subject.resource].relations[pick.relation]
        if relation.kind != "one":
            await self._list(_Rows(pick.read, subject.values, subject, relation), depth)
            return
        ids = await self.inquiry.values(subject, [pick.relation + "Id"])
        if ids and ids[0] is not None:
            key = self.model.resources[relation.target].key
            await self._row(relation.target, Slot(0, key), [key.parse(ids[0])], pick.read.pick, depth)

    # lists

    async def _list(self, rows: _Rows, depth: int) -> None:
        resource = rows.read.resource
        counts = await self.inquiry.count(self._listing(rows), rows.values)
        where = f" of this {rows.subject.resource}" if rows.subject else ""
        many = self.model.resources[resource].many
        self._say(f"{many}{where}: {counts.everyone} match, and this viewer sees {counts.seen}", depth)
        key = self.model.resources[resource].key
        for id in counts.hidden:
            await self._hidden(rows, Subject(resource, Slot(0, key), [key.parse(id)]), depth + 1)

    def _listing(self, rows: _Rows) -> Listing:
        read, subject, relation = rows.read, rows.subject, rows.relation
        trusted = self.model.trusted(self.inquiry.viewer.id is not None)
        everyone, seen = _filter(read, trusted), _filter(read, self.rulebook.view)
        if subject is None or relation is None:
            return Listing(read.resource, everyone, seen)
        resource_view = self.rulebook.view.resources.get(subject.resource)
        way = resource_view.relations.get(relation.name) if resource_view else None
        rule, back, link = (way.rule, way.back, way.link) if way else (FALSE, FALSE, FALSE)
        seen = and_(seen, back)
        return Listing(read.resource, everyone, seen, subject.resource, relation.name, subject.id, rule, link)

    async def _hidden(self, rows: _Rows, subject: Subject, depth: int) -> None:
        """Why a row is not in a list: it cannot be read, or a field that the list filters by is hidden on it."""
        resource, relation = subject.resource, rows.relation
        matters = [self.rulebook.verb(resource, "read")]
        matters += [
            matter for matter in of_filter(rows.read.where, resource, self.rulebook) if matter.resource == resource
        ]
        if relation is not None and relation.kind == "many":
            matters.append(self.rulebook.way(resource, relation.inverse))
        findings = await self.inquiry.ask(subject, [Question(matter) for matter in dict.fromkeys(matters)]) or []
        title = f"{resource} {subject.values[0]}"
        closed = [finding for finding in findings if not finding.holds]
        for finding in closed if findings[:1] != closed[:1] else closed[:1]:  # of a hidden row, no more is reported
            self._find(title, finding, depth)
        if not closed:
            self._say(
                f"{title}: it could be read; a row on the way to it, or that the filter asks for, is hidden",
                depth,
                denied=True,
            )

    # changing

    async def _by_key(self, write: Write, values: SlotValues) -> None:
        """The deletion of the row that has a unique key: the link of two rows."""
        if self.wanted.bare:
            return
        key = key_of_upsert(write, self.wanted.view)
        existing = await self.inquiry.find(key.resource, key.has, key.seen, values)
        if existing is None:
            self._say(f"{write.resource}: no row has this {write.key}", 0, denied=True)
            return
        there = [*values]
        there[write.id.index] = existing[0]
        await self._write(without_key(write), there)

    async def _upsert(self, write: Write, values: SlotValues) -> None:
        """An upsert, as what it becomes: an update of the row that is found, or else a creation."""
        if self.wanted.bare:
            return
        key = key_of_upsert(write, self.wanted.view)
        row = await self.inquiry.find(key.resource, key.has, key.seen, values)
        if row is None:
            self._say(f"{write.resource}: no row has this {write.key}", 0)
        elif not row[1]:
            self._say(f"{write.resource} {row[0]}: it has this {write.key}, and is hidden", 0, denied=True)
        if row is None or not row[1]:
            return await self._write(as_create(write), values)
        there = [*values]
        there[write.id.index] = row[0]
        if write.keep:
            await self._row(write.resource, write.id, there)
        else:
            await self._write(as_update(write, key.fields), there)

    async def _write(self, write: Write, values: SlotValues) -> None:
        if write.rows is not None:
            return await self._list(_Rows(Read(write.resource, "list", (), write.rows.where), values), 0)
        if write.verb == "upsert":
            return await self._upsert(write, values)
        if write.verb == "delete" and write.key:
            return await self._by_key(write, values)
        there = write.verb == "create" or await self._row(write.resource, write.id, values)
        if self.wanted.bare or not there:
            return
        report = WriteReport(write, values, self.wanted.view, self.inquiry)
        for title, finding in await report.findings():
            self._find(title, finding, 0)
        for name, slot in await report.references():
            relation = self.model.resources[write.resource].fields[name].relation
            target = self.model.resources[write.resource].relations[relation].target
            self._say(f"{name} = {value_text(values[slot.index])}", 0)
            await self._row(target, slot, values, depth=1)

    async def _call(self, call: Call, slot: Slot, values: SlotValues) -> None:
        if await self._row(call.resource, slot, values):
            definition = self.model.resources[call.resource].call(call.name)
            subject = Subject(call.resource, slot, values)
            question = Question(self.rulebook.call(call.resource, definition))
            for finding in await self.inquiry.ask(subject, [question]) or ():
                self._find(f"{call.resource} {values[slot.index]}", finding, 0)


class _Rows(Struct, frozen=True):
    """A list of a request: at the root, or of a row by a relation."""

    read: Read
    values: SlotValues
    subject: Subject | None = None
    relation: RelationDef | None = None


def _filter(read: Read, view: View) -> Expr:
    """The filter of a list with the access rules of a view."""
    resource_view = view.resources.get(read.resource)
    if resource_view is None:
        return FALSE
    try:
        return and_(narrow_expr(read.where, resource_view, view), resource_view.read)
    except Refusal:  # it filters by a name that the view does not have
        return FALSE
