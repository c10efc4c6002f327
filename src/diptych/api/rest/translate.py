"""Translates REST requests into Asks: target, query string and body → a Wish.

    GET /users/<id>          one       the Ask of { user(id: …) { every plain field } }
    GET /posts?…             many      the Ask of { postsConnection(…) { pageInfo { … } totalCount? nodes { … } } }
    GET /users/<id>/posts?…  related   the Ask of { user(id: …) { postsConnection(…) { … } } }
    GET /viewer              one       the Ask of { viewer { every plain field } }
    POST /posts/batch        batch     the Asks of mutation { createPost(…) { … } createPost(…) { … } … }
    GET /posts/changes?…     changes   the Ask of subscription { postChanged(…) { cursor kind rowId at post { … } } }

Only `count`, `fields`, `sort` and the structure of `where` shape the Ask; every other parameter is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from diptych.api.ask_builder import NESTED_SIZE, AskBuilder
from diptych.api.json import parse_json
from diptych.api.query_string import (
    LIST_PARAMETERS,
    RESERVED,
    Item,
    bad,
    check_repeated,
    filter_name,
    measure_fields,
    parse_fields,
    parse_lists,
)
from diptych.api.rest.target import PATH_ID, Target
from diptych.api.shape import measure_filter, shape
from diptych.ask.measures import Checking, RequestMeasures
from diptych.ask.nodes import (
    Call,
    ChangePart,
    ChangeWhat,
    ConnectionPart,
    Field,
    Follow,
    InfoKind,
    Nodes,
    OrderBy,
    Page,
    PageInfo,
    Pick,
    Read,
    Total,
    Write,
    WriteVerb,
)
from diptych.ask.slots import RawValue
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Path
from diptych.lru import memo
from diptych.model.declare.roles import Viewer
from diptych.model.defs import CallDef, QueryDef, RelationDef
from diptych.model.rules.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.view import ResourceView, View
from diptych.model.viewer_object import VIEWER

_INFO: tuple[InfoKind, ...] = ("hasNextPage", "hasPreviousPage", "startCursor", "endCursor")
PAGE_INFO = PageInfo("pageInfo", tuple((name, name) for name in _INFO))
_SHAPING = ("fields", "sort", "count")
_PAGE = ("first", "last", "after", "before", "offset")
_CHANGES = ("fields", "where", "kinds", "after", "first")
CHANGE_FIELDS: tuple[ChangeWhat, ...] = ("cursor", "kind", "rowId", "at")
_LISTS, _CHANGE_LISTS, _CALL_LISTS = ("fields", "sort"), ("fields", "kinds"), ("fields",)
_SHORT = 512
"""Longest query string that is cached, in characters: clients repeat short ones."""
VERSIONS = "{version}"
MAX_CREATED = 100
"""Most rows that one request may create."""
_QUERY_FAULT = "The query string is not valid."


class Query(NamedTuple):
    """A parsed query string: its parameters, `where` as JSON, and the part that can change a statement."""

    parameters: Mapping[str, str]
    inputs: dict[str, Any]
    shape: tuple[Any, ...]

    def fields(self) -> tuple[Item, ...] | None:
        """The items of `fields`. (Needed only when the shape is new.)"""
        return parse_fields(self.parameters["fields"]) if "fields" in self.parameters else None

    def measure(self, operation: str, viewer: Viewer, checks: Checking) -> RequestMeasures:
        """Measure the request as far as its parameters say, and run the checks; malformed `fields` are refused."""
        measures = RequestMeasures("rest", viewer, operation)
        measures.sort_keys = self.parameters.get("sort", "").count(",") + 1
        measures.expanded = self.parameters.get("fields", "").count(",") + 1
        measure_filter(self.inputs.get("where"), measures)
        checks(measures)
        measure_fields(self.fields() or (), measures)
        return checks(measures)


def read_query(raw: str, target: Target) -> Query:
    """Parse a query string and check its grammar (that of `fields` is checked when they are needed)."""
    if not raw:
        return Query({}, {PATH_ID: target.id}, ())
    parameters, inputs, key, repeated = _parse(raw)
    if repeated:
        check_repeated(repeated, _CHANGE_LISTS if target.changes else _CALL_LISTS if target.call else _LISTS)
    return Query(parameters, {**inputs, PATH_ID: target.id}, key)


@memo("query strings", 512, _SHORT, entry_bytes=32 << 10)
def _parse(raw: str) -> tuple[Mapping[str, str], Mapping[str, Any], tuple[Any, ...], tuple[str, ...]]:
    """The parameters, the same with `where` parsed, their shape, and those that occur several times."""
    parameters, repeated = parse_lists(raw)
    inputs: dict[str, Any] = dict(parameters)
    if "where" in parameters:
        inputs["where"] = _json(parameters["where"], "where")
    return parameters, inputs, shape_of(parameters, inputs), repeated


def shape_of(parameters: Mapping[str, str], inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of the parameters can change a statement."""
    return tuple(
        (
            name,
            shape(inputs["where"])
            if name == "where"
            else value
            if name in _SHAPING or name.endswith("[isNull]")
            else 1,
        )
        for name, value in parameters.items()
    )


def _json(text: str, parameter: str) -> Any:
    try:
        return parse_json(text.encode())
    except ValueError as error:
        raise bad(parameter, f"expected JSON: {error}") from None


def translate(target: Target, query: Query, view: View) -> Wish:
    """The Ask of a GET. One Refusal has all faults of its query string."""
    builder = AskBuilder(view)
    ask = _Translator(builder, query).ask(target)
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    return Wish((ask,), tuple(builder.slots.slots), tuple(builder.slots.sources))


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
) -> WriteWish:
    """The Ask of a POST, PUT, PATCH or DELETE; `versions` are those that the row may have."""
    builder = AskBuilder(view)
    translator = _Translator(builder, query)
    resource = view.resources[target.resource]
    translator.only(("fields",))
    builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
    key = builder.row_id(resource, None if verb == "create" else RawValue(target.id, ("path", PATH_ID)))
    values = builder.values(verb, resource, RawValue(body, ("body",))) if verb != "delete" else ()
    expected = versions[0] if versions is not None and len(versions) == 1 else versions and list(versions)
    version = builder.version(RawValue(expected, ("header", VERSIONS)))
    picks = translator.sound_picks(resource) if answer else ()
    return builder.write(Write(verb, resource.resource.name, key, values, version, picks), ("body",))


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
    def __init__(self, builder: AskBuilder, query: Query) -> None:
        self.builder = builder
        self.query = query
        self.fields = query.fields()

    def ask(self, target: Target) -> Read:
        resource = self.builder.view.resources[target.resource]
        if target.resource == VIEWER:
            self.only(("fields",))
            return Read(VIEWER, "one", self.picks(resource))
        if target.id is None:
            return self._page(resource)
        key = self.builder.slots.take(resource.resource.key, RawValue(target.id, ("path", PATH_ID)))
        where = Compare("eq", Col(("id",)), key)
        if not target.relation:
            self.only(("fields",))
            return Read(resource.resource.name, "one", self.picks(resource), where)
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

    # a collection

    def _page(self, resource: ResourceView) -> Read:
        where = and_(*(self._filter(name, resource) for name in self.query.parameters))
        order = self._order(self.query.parameters.get("sort"), ("query", "sort"), resource)
        arguments = {name: self._raw(name) for name in _PAGE if name in self.query.parameters}
        page = self.builder.page(arguments, ("query",))
        parts: list[ConnectionPart] = [PAGE_INFO]
        if "count" in self.query.parameters:
            parts.append(Total("totalCount"))
            if self.query.parameters["count"] != "exact":
                self.builder.fault(("query", "count"), "expected 'exact'")
        nodes = Nodes("nodes", self._picks(self.fields, resource))
        return Read(resource.resource.name, "page", (*parts, nodes), where, order, page)

    def _raw(self, name: str) -> RawValue:
        return RawValue(self.query.parameters[name], ("query", name), text=True)

    def _filter(self, name: str, resource: ResourceView, reserved: tuple[str, ...] = ()) -> Expr:
        if name == "where":
            return self.builder.where(RawValue(self.query.inputs["where"], ("query", "where")), resource)
        if name in LIST_PARAMETERS or name in reserved:
            return TRUE
        field, op = filter_name(name)
        if field in RESERVED or field in reserved or field not in resource.searchable:
            self.builder.fault(("query", name), f"{resource.resource.name} has no field '{field}' to filter by")
            return TRUE
        return self.builder.operator(op, self._raw(name), resource.fields[field])

    def _order(self, text: str | None, path: tuple[str, ...], resource: ResourceView) -> tuple[OrderBy, ...]:
        if text is None:
            return ()
        keys = [
            self.builder.sort_key(key.removeprefix("-"), key.startswith("-"), path, resource) for key in text.split(",")
        ]
        return tuple(key for key in keys if key)

    # fields

    def picks(self, resource: ResourceView) -> tuple[Pick, ...]:
        """The selection of the row that the path names."""
        return self._picks(self.fields, resource)

    def sound_picks(self, resource: ResourceView) -> tuple[Pick, ...]:
        """The selection for a request with a body: faults of its query string come before those of its body."""
        later, self.builder.faults = self.builder.faults, []
        picks = self.picks(resource)
        self.builder.done(Code.BAD_REQUEST, _QUERY_FAULT)
        self.builder.faults = later
        return picks

    def _picks(self, items: tuple[Item, ...] | None, resource: ResourceView) -> tuple[Pick, ...]:
        picks: dict[str, Pick] = {}
        for item in (Item("*", "*"),) if items is None else items:
            for pick in self._plain(resource) if item.name == "*" else self._pick(item, resource):
                if pick.label in picks:
                    self.builder.fault(("query", "fields"), f"'{pick.label}' occurs twice")
                picks[pick.label] = pick
        return tuple(picks.values())

    @staticmethod
    def _plain(resource: ResourceView) -> list[Pick]:
        return [Field(name, name) for name in resource.fields]

    def _pick(self, item: Item, resource: ResourceView) -> list[Pick]:
        if item.name in resource.fields:
            if item.inner is not None or item.bracketed:
                self.builder.fault(("query", "fields"), f"'{item.name}' is a plain field and takes no ( ) or [ ]")
            return [Field(item.name, item.label)]
        if item.name not in resource.relations:
            self.builder.fault(("query", "fields"), f"{resource.resource.name} has no field '{item.name}'")
            return []
        if item.inner is None:
            self.builder.fault(("query", "fields"), f"'{item.name}' is a relation: select from it, {item.name}(id)")
            return []
        return [self._follow(item, resource.relations[item.name].relation)]

    def _follow(self, item: Item, relation: RelationDef) -> Pick:
        target = self.builder.view.resources[relation.target]
        if relation.kind == "one":
            if item.bracketed:
                self.builder.fault(("query", "fields"), f"'{item.name}' is a to-one relation and takes no [ ]")
            return Follow(relation.name, item.label, Read(relation.target, "one", self._picks(item.inner, target)))
        where, order, page = self._arguments(item, target)
        picks = self._picks(item.inner, target)
        return Follow(relation.name, item.label, Read(relation.target, "list", picks, where, order, page))

    def _arguments(self, item: Item, target: ResourceView) -> tuple[Expr, tuple[OrderBy, ...], Page]:
        """The arguments in [ ] of a to-many relation; their values are part of the text of `fields`."""
        arguments: dict[str, RawValue] = {}
        path = ("query", "fields", item.label)
        for key, value in item.arguments:
            if key in arguments or key not in (*_PAGE, "sort", "where"):
                self.builder.fault((*path, key), "there is no such argument, or it occurs twice")
            arguments[key] = RawValue(value, (*path, key), fixed=True, text=True)
        where: Expr = TRUE
        if "where" in arguments:
            tree = _json(arguments["where"].value, "fields")
            where = self.builder.where(RawValue(tree, arguments["where"].path, fixed=True), target)
        sort = arguments["sort"].value if "sort" in arguments else None
        order = self._order(sort, (*path, "sort"), target)
        pages = {key: argument for key, argument in arguments.items() if key in _PAGE}
        return where, order, self.builder.page(pages, path, NESTED_SIZE)
