"""Leaks to plant: for each channel, the place where a rule is applied to it, with the rule forgotten.

A leak patches the product for the time of a test, and makes nothing else wrong: answers stay well-formed, and only
what is hidden shows through.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace
from pytest import MonkeyPatch

from diptych.api.reply import tag
from diptych.api.rest.target import Target
from diptych.ask.guarded import Guard, Why
from diptych.ask.nodes import Assign, ConnectionPart, Field, Follow, Groups, OrderBy, Page, Pick, Read, Total
from diptych.ask.slots import SIZE
from diptych.compile.fragment import Fragment, sql
from diptych.compile.page import Pages, Sheet
from diptych.compile.read import Reads, compile_reads
from diptych.compile.rows import Rows
from diptych.compile.table_ref import TableRef
from diptych.engine import call as calls
from diptych.engine import read as engine
from diptych.engine import transaction as tx
from diptych.engine import watch
from diptych.engine.call_answer import answer_read
from diptych.identity.viewer import Caller
from diptych.live import service as live
from diptych.live.log_page import LogPage
from diptych.model.resource_view import FieldView, RelationView, ResourceView
from diptych.model.rules.expr import TRUE, Col, Expr, GroupKey, Has, Mask, Measure, Slot, Via, and_
from diptych.model.view import View
from diptych.policy import access
from diptych.policy import guards as change
from diptych.serve.endpoint import rest
from diptych.serve.endpoint.rest import RestEndpoint
from diptych.serve.endpoint.rest_batch import RestBatch

# numbers of rows


def measured_field(patch: MonkeyPatch) -> None:
    _seen_as(patch, {"_cell": lambda each: _with_fields(each, _open)})
    original = access.narrow_expr
    groups = access._groups

    def narrowed(expr: Expr, resource: ResourceView, view: View) -> Expr:
        is_key = isinstance(expr, GroupKey)  # a key is the same everywhere
        return original(expr, _with_fields(resource, _open) if is_key else resource, view)

    def grouped(each: Groups, resource: ResourceView, view: View) -> Groups:
        return replace(groups(each, _with_fields(resource, _open), view), having=groups(each, resource, view).having)

    patch.setattr(access, "narrow_expr", narrowed)
    patch.setattr(access, "_groups", grouped)


def counted_rows(patch: MonkeyPatch) -> None:
    original = access.narrow

    def narrowed(read: Read, view: View, known: Expr = TRUE, back: Expr = TRUE) -> Read:
        is_open = read.take in ("summary", "groups")
        return original(read, view, view.resources[read.resource].read if is_open else known, back)

    patch.setattr(access, "narrow", narrowed)
    patch.setattr(engine, "narrow", narrowed)


def having(patch: MonkeyPatch) -> None:
    original = access._groups

    def grouped(each: Groups, resource: ResourceView, view: View) -> Groups:
        is_open = _with_fields(resource, _open)
        return replace(original(each, resource, view), having=original(each, is_open, view).having)

    patch.setattr(access, "_groups", grouped)


def sorted_by_relation(patch: MonkeyPatch) -> None:
    def via(part: Via, resource: ResourceView, view: View) -> Expr:
        target = resource.relations[part.relation].relation.target
        return Via(part.relation, access.narrow_expr(part.of, view.resources[target], view))

    patch.setattr(access, "_via", via)


def number_of_relation(patch: MonkeyPatch) -> None:
    original = access._measure

    def measure(part: Measure, resource: ResourceView, view: View) -> Expr:
        narrowed = original(part, resource, view)
        assert isinstance(narrowed, Measure)
        return replace(narrowed, where=TRUE)

    patch.setattr(access, "_measure", measure)


# what is picked, compared and sorted by


def _with_fields(each: ResourceView, change: Callable[[FieldView], FieldView]) -> ResourceView:
    return replace(each, fields={name: change(field) for name, field in each.fields.items()})


def _seen_as(patch: MonkeyPatch, places: Mapping[str, Callable[[ResourceView], ResourceView]]) -> None:
    """At these places of `access`, a resource is seen with other rules."""
    for place, seen in places.items():
        patch.setattr(access, place, _seeing(getattr(access, place), seen))


def _seeing(original: Callable[..., Any], seen: Callable[[ResourceView], ResourceView]) -> Callable[..., Any]:
    return lambda part, each, *rest: original(part, seen(each), *rest)


def _open(field: FieldView) -> FieldView:
    return replace(field, rule=TRUE)


def picked_field(patch: MonkeyPatch) -> None:
    _seen_as(patch, {"_pick": lambda each: _with_fields(each, _open)})


def compared_field(patch: MonkeyPatch) -> None:
    _masked_only_if(patch, lambda expr: isinstance(expr, Col))


def sorted_field(patch: MonkeyPatch) -> None:
    _masked_only_if(patch, lambda expr: not isinstance(expr, Col))


def _masked_only_if(patch: MonkeyPatch, masked: Callable[[Expr], bool]) -> None:
    """A key of a sort is a column by itself; a filter never is."""
    original = access.narrow_expr

    def narrowed(expr: Expr, resource: ResourceView, view: View) -> Expr:
        return original(expr, resource if masked(expr) else _with_fields(resource, _open), view)

    patch.setattr(access, "narrow_expr", narrowed)


def computed_field(patch: MonkeyPatch) -> None:
    """It shows where what it is made of does not."""

    def opened(each: ResourceView) -> ResourceView:
        return _with_fields(each, lambda field: _open(field) if field.field.computed is not None else field)

    _seen_as(patch, {"_pick": opened, "_column": opened})


def any_type(patch: MonkeyPatch) -> None:
    """A row is found by its id alone, hidden or not."""
    original = Reads._each
    patch.setattr(Reads, "_each", lambda self, read, row: original(self, replace(read, where=TRUE), row))


# relations


def filter_through_relation(patch: MonkeyPatch) -> None:
    """A filter finds hidden rows on the other side of a relation."""
    original, visible = access._has, access._visible

    def has(part: Has, resource: ResourceView, view: View) -> Expr:
        with _set(access, "_visible", lambda view, name: replace(visible(view, name), read=TRUE)):
            return original(part, resource, view)

    patch.setattr(access, "_has", has)


@contextmanager
def _set(module: Any, name: str, value: Any) -> Iterator[None]:
    with MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        yield


def nested_rows(patch: MonkeyPatch) -> None:
    """A relation leads to hidden rows."""
    original = access._pick

    def pick(part: Pick, resource: ResourceView, view: View) -> Pick:
        found = original(part, resource, view)
        if not isinstance(part, Follow) or not isinstance(found, Follow):
            return found
        way = resource.relations[part.relation]
        target = view.resources[way.relation.target]
        where = and_(access.narrow_expr(part.read.where, target, view), way.back)
        return replace(found, read=replace(found.read, where=where))

    patch.setattr(access, "_pick", pick)


def _ways_as(patch: MonkeyPatch, change: Callable[[RelationView], RelationView]) -> None:
    """Relations are picked and filtered through with other rules."""

    def seen(each: ResourceView) -> ResourceView:
        return replace(each, relations={name: change(way) for name, way in each.relations.items()})

    _seen_as(patch, {"_pick": seen, "_has": seen})


def hidden_way(patch: MonkeyPatch) -> None:
    """A relation is followed on rows on which it does not show."""
    _ways_as(patch, lambda way: replace(way, rule=TRUE))


def way_back(patch: MonkeyPatch) -> None:
    """A relation is followed from its other side, where it does not show."""
    _ways_as(patch, lambda way: replace(way, back=TRUE))


def linking_rows(patch: MonkeyPatch) -> None:
    """Hidden rows of a linking resource tie what they link."""
    _ways_as(patch, lambda way: replace(way, link=TRUE))


# pages


def _bare(patch: MonkeyPatch) -> Callable[[Read], Read]:
    """Gives a Read that was narrowed as it would be over all rows, hidden or not."""
    bare: dict[Expr, Expr] = {}
    narrow = access.narrow

    def noted(read: Read, view: View, known: Expr = TRUE, back: Expr = TRUE) -> Read:
        found = narrow(read, view, known, back)
        bare[found.where] = and_(access.narrow_expr(read.where, view.resources[read.resource], view), back)
        return found

    patch.setattr(access, "narrow", noted)
    patch.setattr(engine, "narrow", noted)
    return lambda read: replace(read, where=bare.get(read.where, read.where))


def total(patch: MonkeyPatch) -> None:
    """Hidden rows are counted."""
    bare, original = _bare(patch), Pages._part

    def written(self: Pages, part: ConnectionPart, sheet: Sheet) -> Any:
        return original(self, part, replace(sheet, read=bare(sheet.read)) if isinstance(part, Total) else sheet)

    patch.setattr(Pages, "_part", written)


def page_boundary(patch: MonkeyPatch) -> None:
    """A page is cut off before hidden rows are left out."""
    bare, original = _bare(patch), Rows.slice

    def cut(
        self: Rows, read: Read, row: TableRef, tied: Iterable[Fragment], more: int = 0
    ) -> tuple[Fragment, Fragment]:
        page = original(self, bare(read), row, tied, more)
        within = sql("{} IN (SELECT {} FROM {}{}{})", row.id, row.id, self.source(row), *page)
        return original(self, read, row, (*tied, within), more)

    patch.setattr(Rows, "slice", cut)


def cursor(patch: MonkeyPatch) -> None:
    """A cursor holds a value by which the list is not sorted, as it is hidden."""
    original = Pages._payload

    def payload(self: Pages, sheet: Sheet) -> Fragment:
        order = tuple(
            OrderBy(key.by.of if isinstance(key.by, Mask) else key.by, key.descending) for key in sheet.read.order
        )
        return original(self, replace(sheet, keys=self.keys(replace(sheet.read, order=order), sheet.row)))

    patch.setattr(Pages, "_payload", payload)


def entity_tag(patch: MonkeyPatch) -> None:
    """The tag of an answer is made of more than its bytes: of how many rows there are, hidden ones too."""
    handle, answer = RestEndpoint.handle, rest._answer
    counted: list[bytes] = []

    async def counting(self: RestEndpoint, request: Any, caller: Caller, target: Target) -> Any:
        everything = Read(target.resource, "page", (Total("all"),), page=Page(Slot(0, SIZE)))
        plan = compile_reads([everything], self.engine.model, self.engine.store.dialect)
        (found,) = await self.engine.store.run(plan, plan.parameters([1], caller.viewer, {}))
        counted[:] = [found or b""]
        return await handle(self, request, caller, target)

    def tagged(request: Any, known: Any, body: bytes, mark: bytes, *more: Any) -> Any:
        return answer(request, known, body, tag(body + counted[0]), *more)

    patch.setattr(RestEndpoint, "handle", counting)
    patch.setattr(rest, "_answer", tagged)


# changes


def hidden_row(patch: MonkeyPatch) -> None:
    """A row that cannot be read is there for those who change it."""
    original = change._WriteGuards._guards

    def guards(self: Any, values: dict[str, Expr]) -> Iterator[Guard]:
        return (each for each in original(self, values) if each.why is not Why.HIDDEN)

    patch.setattr(change._WriteGuards, "_guards", guards)


def reference(patch: MonkeyPatch) -> None:
    """A reference to a hidden row is taken."""
    original = change._WriteGuards._references

    def references(self: Any) -> Iterator[Guard]:
        for each in original(self):
            yield replace(each, becomes=replace(each.becomes, where=TRUE)) if isinstance(each.becomes, Has) else each

    patch.setattr(change._WriteGuards, "_references", references)


def replacement(patch: MonkeyPatch) -> None:
    """What a replacement gives back is held against the hidden value."""

    def same(self: Any, assign: Assign) -> Expr:
        return change._equals(self.fields[assign.name].computed or Col((assign.name,)), assign)

    patch.setattr(change._WriteGuards, "_same", same)


def patched_row(patch: MonkeyPatch) -> None:
    """A JSON Patch is applied to the row as the highest role sees it."""
    original = RestEndpoint.read

    async def read(self: RestEndpoint, target: Target, caller: Caller) -> bytes:
        model = self.engine.model
        top = model.viewer(frozenset(model.roles), caller.viewer.id)
        return await original(self, target, replace(caller, viewer=top, signature=model.signature(top)))

    patch.setattr(RestEndpoint, "read", read)


def batch(patch: MonkeyPatch) -> None:
    """The requests of a batch are planned for the highest role."""
    original = RestBatch._plan

    def plan(self: RestBatch, caller: Caller, sent: Any) -> Any:
        model = self.engine.model
        top = model.viewer(frozenset(model.roles), caller.viewer.id)
        return original(self, replace(caller, viewer=top, signature=model.signature(top)), sent)

    patch.setattr(RestBatch, "_plan", plan)


def answer_to_change(patch: MonkeyPatch) -> None:
    """What a change answers is not narrowed."""
    patch.setattr(change, "narrow", lambda read, view: read)


# code of the model


def needs_of_python(patch: MonkeyPatch) -> None:
    """What Python computes a field from is read without its rules, and so the field shows everywhere."""

    original = access._pick

    def pick(part: Pick, each: ResourceView, view: View) -> Pick:
        made = isinstance(part, Field) and each.fields[part.name].field.python is not None
        behind = part.label.startswith("__")
        return original(part, _with_fields(each, _open) if made or behind else each, view)

    patch.setattr(access, "_pick", pick)


def rows_of_code(patch: MonkeyPatch) -> None:
    """Code reads more than whoever calls it may."""
    original = tx.ModelTx.select

    async def select(self: tx.ModelTx, *given: Any, **more: Any) -> Any:
        trusted = self._engine.model.trusted(self._viewer.id is not None)
        wider = tx.ModelTx(self._write_engine, self._session, self._viewer, trusted)
        return await original(wider, *given, **more)

    patch.setattr(tx.ModelTx, "select", select)


def answer_of_code(patch: MonkeyPatch) -> None:
    """What code gives is told to whoever calls it."""
    original = calls.CallEngine.prepare

    def prepare(self: calls.CallEngine, wish: Any, inputs: Any, view: View, asked: Any = None) -> calls.PreparedCall:
        found = original(self, wish, inputs, view, asked)
        read = answer_read(found.call, found.definition, self.engine.model.resources, len(wish.slots))
        trusted = self.engine.model.trusted(True)
        return found if read is None else replace(found, answer=self.engine.plan_reads((read,), trusted, {}))

    patch.setattr(calls.CallEngine, "prepare", prepare)


# changes that are told


def _watched(patch: MonkeyPatch, change: Callable[[access.Watched], access.Watched]) -> None:
    original = access.narrow_watch
    patch.setattr(watch, "narrow_watch", lambda asked, view: change(original(asked, view)))


def event_of_hidden(patch: MonkeyPatch) -> None:
    """Changes of rows are told that could be seen neither before nor after."""
    _watched(patch, lambda found: replace(found, seen=TRUE, deleted=TRUE))


def page_of_segments(patch: MonkeyPatch) -> None:
    """A page of the log ends where a part of the feed ends, whether or not there was anything to see."""
    original = live.LiveService.log

    async def log(self: live.LiveService, ready: Any, inputs: Any, caller: Caller, size: int) -> LogPage:
        page = await original(self, ready, inputs, caller, size)
        ends = self.tail.head.position % 3 == 0
        return replace(page, next=page.last if ends else page.next)

    patch.setattr(live.LiveService, "log", log)


def tag_of_position(patch: MonkeyPatch) -> None:
    """The tag of a page is made of more than what it tells: of where the feed ends."""
    original = live.LiveService.log

    async def log(self: live.LiveService, *given: Any) -> LogPage:
        page = await original(self, *given)
        return replace(page, bare=(*page.bare, str(self.tail.head.position).encode()))

    patch.setattr(live.LiveService, "log", log)


def same_cursors(patch: MonkeyPatch) -> None:
    """The cursors of one place are the same, so that two tell whether anything happened between them."""
    patch.setattr(secrets, "token_bytes", bytes)


def filter_of_changes(patch: MonkeyPatch) -> None:
    """A filter sees what is hidden on the row as it was."""
    original = access._past

    def then(each: ResourceView, view: View, *, there: bool) -> ResourceView:
        return _with_fields(original(each, view, there=there), _open)

    patch.setattr(access, "_past", then)
