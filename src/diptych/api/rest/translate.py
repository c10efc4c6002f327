"""Translates REST requests into Asks: target, query string and body → a Wish.

    GET /users/<id>          one       the Ask of { user(id: …) { every plain field } }
    GET /posts?…             many      the Ask of { postsConnection(…) { pageInfo { … } totalCount? nodes { … } } }
    GET /users/<id>/posts?…  related   the Ask of { user(id: …) { postsConnection(…) { … } } }
    GET /viewer              one       the Ask of { viewer { every plain field } }
    POST /users?by=email     many      the Ask of mutation { upsertUser(by: email, …) { every plain field } }
    POST /posts/batch        batch     the Asks of mutation { createPost(…) { … } createPost(…) { … } … }
    POST /posts/<id>/restore restore   the Ask of mutation { restorePost(id: …) { … } }
    GET /posts/summary?…     summary   the Ask of { postsSummary(…) { … } }
    GET /posts/groups?…      groups    the Ask of { postsGroupsConnection(…) { pageInfo { … } nodes { … } } }
    GET /posts/changes?…     changes   the Ask of subscription { postChanged(…) { eventId cursor … post { … } } }

`query` parses the query string, `selection` translates `fields`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from diptych.api.ask_builder import AskBuilder
from diptych.api.query_string import LIST_PARAMETERS, RESERVED, filter_name
from diptych.api.rest.aggregates import grouped, summary_cells
from diptych.api.rest.query import Query
from diptych.api.rest.selection import PAGE_PARAMETERS, requested_sort, select
from diptych.api.rest.target import PATH_ID, Target
from diptych.ask.nodes import (
    BulkPart,
    Call,
    ChangePart,
    ChangeWhat,
    ConnectionPart,
    Follow,
    InfoKind,
    Nodes,
    Page,
    PageInfo,
    Pick,
    Read,
    RowSet,
    Total,
    TypeName,
    Write,
    WriteVerb,
)
from diptych.ask.slots import RawValue
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Path
from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER

_INFO: tuple[InfoKind, ...] = ("hasNextPage", "hasPreviousPage", "startCursor", "endCursor")
PAGE_INFO = PageInfo("pageInfo", tuple((name, name) for name in _INFO))
_BULK = ("most", "dryRun")
_UPSERT = ("by", "onConflict")
_BESIDE = ("deleted",)
"""Parameters of some lists that are no filters."""
_CHANGES = ("fields", "where", "kinds", "after", "first")
CHANGE_FIELDS: tuple[ChangeWhat, ...] = ("eventId", "cursor", "kind", "rowId", "at")
_GROUPING = ("by", "having")
VERSIONS = "{version}"
MAX_CREATED = 100
"""Most rows that one request may create."""
_QUERY_FAULT = "The query string is not valid."


def translate(target: Target, query: Query, view: View) -> Wish:
    """The Ask of a GET. One Refusal has all faults of its query string."""
    builder = AskBuilder(view)
    ask = _Translator(builder, query).ask(target)
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    return Wish((ask,), tuple(builder.slots.slots), tuple(builder.slots.sources), builder.implied)


def translate_changes(target: Target, query: Query, view: View) -> WatchWish:
    """The Ask of a GET on the changes of a collection. `first` is not part of it: it limits the page, and not what is
    followed."""
    builder = AskBuilder(view)
    wish = _Translator(builder, query).watch(view.resources[target.resource])
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    return wish


def translate_write(
    verb: WriteVerb,
    target: Target,
    query: Query,
    body: Any,
    versions: tuple[int, ...] | None,
    view: View,
    *,
    answer: bool,
    merge: bool = True,
) -> WriteWish:
    """The Ask of a POST, PUT, PATCH or DELETE; `versions` are those that the row may have."""
    builder = AskBuilder(view)
    translator = _Translator(builder, query)
    resource = view.resources[target.resource]
    upserts = verb == "upsert"
    translator.only(("fields", *_UPSERT) if upserts else ("fields", "deleted") if verb == "purge" else ("fields",))
    by, keep = translator.conflict(resource) if upserts else ("", False)
    if verb == "purge":
        translator.wants_deleted(resource)
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    raw = RawValue(body, ("body",))
    at = None if target.id is None else RawValue(target.id, ("path", PATH_ID))
    key = builder.row_id(resource, at, raw if upserts or verb == "create" else None)
    values = builder.values(verb, resource, raw, merge=merge)
    if upserts:
        builder.key_values(resource, by, values, raw)
    elif verb == "create" and at is not None:
        by = "id"
    expected = versions[0] if versions is not None and len(versions) == 1 else versions and list(versions)
    version = builder.version(RawValue(expected, ("header", VERSIONS)))
    picks = translator.sound_picks(resource) if answer else ()
    return builder.write(Write(verb, resource.resource.name, key, values, version, picks, by, keep), ("body",))


BULK_PARTS: tuple[Literal["matched", "changed", "dryRun"], ...] = ("matched", "changed", "dryRun")


def translate_bulk(verb: WriteVerb, target: Target, query: Query, body: Any, view: View) -> WriteWish:
    """The Ask of a PATCH or DELETE of many rows. The values of its query string are fixed: its body may have the same
    names."""
    builder = AskBuilder(view)
    translator = _Translator(builder, query, fixed=True)
    resource = view.resources[target.resource]
    key = builder.no_id(resource)
    later = builder.faults
    values = builder.values("update", resource, RawValue(body, ("body",))) if verb == "update" else ()
    later, builder.faults = builder.faults, []
    rows = translator.rows(resource)
    parts: list[BulkPart | Nodes | TypeName] = [BulkPart(what, what) for what in BULK_PARTS]
    if translator.fields is not None:
        parts.append(Nodes("data", translator.picks(resource)))
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    builder.faults = later
    ask = Write(verb, resource.resource.name, key, values, rows=rows, parts=tuple(parts))
    return builder.write(ask, ("body",))


def translate_call(target: Target, definition: CallDef, query: Query, body: Any, view: View) -> CallWish:
    """The Ask of a call. An action takes its arguments from the body, a query from the query string."""
    builder = AskBuilder(view)
    translator = _Translator(builder, query)
    shown = ("fields",) if definition.result.resource else ()
    if isinstance(definition, QueryDef):
        path: Path = ("query",)
        names = [name for name in query.parameters if name not in shown]
        arguments = {name: RawValue(query.parameters[name], ("query", name), text=True) for name in names}
    else:
        translator.only(shown)
        builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
        path = ("body",)
        arguments = dict(RawValue(body, path).entries())
    resource = view.model[target.resource]
    key = None
    if target.id is not None:
        key = builder.slots.take(resource.key, RawValue(target.id, ("path", PATH_ID)), target=resource.name)
    values = builder.arguments(definition, arguments, path)
    picks = translator.sound_picks(view.resources[definition.result.resource]) if shown else ()
    ask = Call(resource.name, definition.name, key, values, picks)
    return builder.call(ask, path, Code.BAD_REQUEST if path == ("query",) else Code.BAD_USER_INPUT)


def write_inputs(target: Target, body: Any, versions: tuple[int, ...] | None) -> dict[str, Any]:
    """The inputs of a write, where the sources of its slots look them up."""
    inputs = dict(body) if isinstance(body, dict) else {}
    inputs[PATH_ID] = target.id
    if versions is not None:
        inputs[VERSIONS] = versions[0] if len(versions) == 1 else list(versions)
    return inputs


class _Translator:
    def __init__(self, builder: AskBuilder, query: Query, *, fixed: bool = False) -> None:
        self.builder = builder
        self.query = query
        self.fixed = fixed
        self.fields = query.fields()
        builder.implied = query.parameters.get("fields", "*") == "*"

    def ask(self, target: Target) -> Read:
        resource = self.builder.view.resources[target.resource]
        if target.resource == VIEWER:
            self.only(("fields",))
            return Read(VIEWER, "one", self.picks(resource))
        if target.numbers:
            return self._numbers(resource, target.numbers)
        if target.id is None:
            page = self._page(resource)
            return replace(page, deleted=True) if self.wants_deleted(resource) else page
        key = self.builder.slots.take(resource.resource.key, RawValue(target.id, ("path", PATH_ID)))
        where = Compare("eq", Col(("id",)), key)
        if not target.relation:
            self.only(("fields", "deleted"))
            deleted = self.wants_deleted(resource)
            return Read(resource.resource.name, "one", self.picks(resource), where, deleted=deleted)
        if "deleted" in self.query.parameters:
            self.builder.fault(("query", "deleted"), "there is no such parameter here")
        relation = resource.relations[target.relation].relation
        inner = self._page(self.builder.view.resources[relation.target])
        follow = Follow(relation.name, relation.name + "Connection", inner)
        return Read(resource.resource.name, "one", (follow,), where)

    def watch(self, resource: ResourceView) -> WatchWish:
        where = and_(*(self._filter(name, resource, _CHANGES) for name in self.query.parameters))
        for name in self.query.parameters:
            if name in LIST_PARAMETERS and name not in _CHANGES:
                self.builder.fault(("query", name), "there is no such parameter here")
        row = ChangePart("row", resource.resource.one, self.picks(resource))
        arguments = {name: self._raw(name) for name in ("kinds", "after") if name in self.query.parameters}
        return self.builder.watch(
            resource, (*(ChangePart(what, what) for what in CHANGE_FIELDS), row), where, arguments
        )

    def only(self, names: tuple[str, ...]) -> None:
        for name in self.query.parameters:
            if name not in names:
                self.builder.fault(("query", name), "there is no such parameter here")

    def conflict(self, resource: ResourceView) -> tuple[str, bool]:
        """The unique key of an upsert, and whether it keeps a row that it finds."""
        raw = self._raw("onConflict") if "onConflict" in self.query.parameters else None
        return self.builder.upsert_key(resource, self._raw("by")), self.builder.keeps(raw, ("update", "keep"), resource)

    def wants_deleted(self, resource: ResourceView) -> bool:
        """Does the query string ask for deleted rows? There is no such parameter for a role that may never see any."""
        wanted = self.query.parameters.get("deleted")
        if wanted is None:
            return False
        if not resource.may("restore"):
            self.builder.fault(("query", "deleted"), "there is no such parameter here")
        elif wanted != "only":
            self.builder.fault(("query", "deleted"), "expected 'only'")
        return True

    def rows(self, resource: ResourceView) -> RowSet:
        """The rows of a change of many: its filter, and how many there may be."""
        for name in self.query.parameters:
            if name in LIST_PARAMETERS and name not in ("fields", "where"):
                self.builder.fault(("query", name), "there is no such parameter here")
        where = and_(*(self._filter(name, resource) for name in self.query.parameters if name not in _BULK))
        none = RawValue(None, ("query", "most"), fixed=True)
        most = self._raw("most") if "most" in self.query.parameters else none
        dry = self._raw("dryRun") if "dryRun" in self.query.parameters else None
        return self.builder.rows(where, ("query", "where"), most, dry)

    # a collection

    def _page(self, resource: ResourceView) -> Read:
        where = self._where(resource, _BESIDE)
        order = requested_sort(self.query.parameters.get("sort"), ("query", "sort"), resource, self.builder)
        page, parts = self._paging()
        nodes = Nodes("nodes", select(self.fields, resource, self.builder))
        return Read(resource.resource.name, "page", (*parts, nodes), where, order, page)

    def _paging(self) -> tuple[Page, list[ConnectionPart]]:
        arguments = {name: self._raw(name) for name in PAGE_PARAMETERS if name in self.query.parameters}
        page = self.builder.page(arguments, ("query",))
        parts: list[ConnectionPart] = [PAGE_INFO]
        if "count" in self.query.parameters:
            parts.append(Total("totalCount"))
            if self.query.parameters["count"] != "exact":
                self.builder.fault(("query", "count"), "expected 'exact'")
        return page, parts

    def _numbers(self, resource: ResourceView, kind: str) -> Read:
        """A summary or groups."""
        own = () if kind == "summary" else _GROUPING
        for name in self.query.parameters if kind == "summary" else ():
            if name in LIST_PARAMETERS and name not in ("fields", "where", "search"):
                self.builder.fault(("query", name), "there is no such parameter here")
        where = self._where(resource, own)
        if kind == "summary":
            return Read(resource.resource.name, "summary", summary_cells(self.fields, resource, self.builder), where)
        groups, order, cells = grouped(self.query.parameters, self.query.inputs, self.fields, resource, self.builder)
        page, parts = self._paging()
        parts.append(Nodes("nodes", cells))
        return Read(resource.resource.name, "groups", tuple(parts), where, order, page, groups=groups)

    def _raw(self, name: str) -> RawValue:
        return RawValue(self.query.parameters[name], ("query", name), self.fixed, text=True)

    def _where(self, resource: ResourceView, reserved: tuple[str, ...]) -> Expr:
        """All filters of a list, and its search after them."""
        filters = [self._filter(name, resource, reserved) for name in self.query.parameters]
        searched = self._raw("search") if "search" in self.query.parameters else None
        return and_(*filters, self.builder.search(searched, resource))

    def _filter(self, name: str, resource: ResourceView, reserved: tuple[str, ...] = ()) -> Expr:
        if name == "where":
            return self.builder.where(RawValue(self.query.inputs["where"], ("query", "where"), self.fixed), resource)
        if name in LIST_PARAMETERS or name in reserved:
            return TRUE
        field, op = filter_name(name)
        field, _, member = field.partition(".")
        if field in RESERVED or field in reserved or field not in resource.searchable:
            self.builder.fault(("query", name), f"{resource.resource.name} has no field '{field}' to filter by")
            return TRUE
        if member:
            return self.builder.member(member, op, self._raw(name), resource.fields[field])
        return self.builder.operator(op, self._raw(name), resource.fields[field])

    # fields

    def picks(self, resource: ResourceView) -> tuple[Pick, ...]:
        """The selection of the row that the path names."""
        return select(self.fields, resource, self.builder)

    def sound_picks(self, resource: ResourceView) -> tuple[Pick, ...]:
        """The selection for a request with a body: faults of its query string come before those of its body."""
        later, self.builder.faults = self.builder.faults, []
        picks = self.picks(resource)
        self.builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
        self.builder.faults = later
        return picks
