"""A GET on a path → an Ask.

    GET /users/<id>          one       the Ask of { user(id: …) { every plain field } }
    GET /posts?…             many      the Ask of { postsConnection(…) { pageInfo { … } totalCount? nodes { … } } }
    GET /users/<id>/posts?…  related   the Ask of { user(id: …) { postsConnection(…) { … } } }
    GET /posts/changes?…     changes   the Ask of subscription { postChanged(…) { cursor kind id at post { … } } }

Only `count`, `fields`, `sort` and the structure of `where` shape the Ask; every other parameter is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from diptych.api.draft import Draft
from diptych.api.filters import measure_filter
from diptych.api.json import parse_json
from diptych.api.rest.query import RESERVED, Item, bad, filter_name, measure_fields, parse_fields, parse_query
from diptych.api.shape import shape
from diptych.ask.asked import Asked, Checking
from diptych.ask.nodes import (
    Call,
    Change,
    ChangePart,
    ChangeWhat,
    Field,
    Follow,
    InfoKind,
    Nodes,
    Order,
    Page,
    PageInfo,
    Part,
    Pick,
    Read,
    Total,
    Write,
)
from diptych.ask.slots import Given
from diptych.ask.wish import CallWish, WatchWish, Wish, WriteWish
from diptych.errors import Code, Place
from diptych.lru import memo
from diptych.model.defs import CallDef, QueryDef, RelationDef
from diptych.model.expr import TRUE, Col, Compare, Expr, and_
from diptych.model.model import Model
from diptych.model.roles import Viewer
from diptych.model.view import ResourceView, View, not_yours

_INFO: tuple[InfoKind, ...] = ("hasNextPage", "hasPreviousPage", "startCursor", "endCursor")
PAGE_INFO = PageInfo("pageInfo", tuple((name, name) for name in _INFO))
_SHAPING = ("fields", "sort", "count")
_PAGE = ("first", "last", "after", "before", "offset")
_CHANGES = ("fields", "where", "kinds", "after", "first")
TOLD: tuple[ChangeWhat, ...] = ("cursor", "kind", "id", "at")
_PATH_ID = "{id}"
_SHORT = 512
"""Characters of a query string that is worth keeping: clients send it again and again."""
VERSIONS = "{version}"
_QUERY_FAULT = "The query string is not valid."


class Target(NamedTuple):
    """What a path names: a collection, one resource of it, a relation of that, a call of the model's own code, or the
    changes of a collection."""

    resource: str
    id: str | None = None
    relation: str = ""
    call: str = ""
    changes: bool = False


def find_target(path: str, model: Model) -> Target | None:
    """What a path names, if it names anything. It is cut first and decoded then: %2F cuts nothing."""
    parts = path[1:].split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    resource = model.by_path.get(parts[0])
    if resource is None or len(parts) > 3 or (len(parts) > 1 and not parts[1]):
        return None
    if len(parts) == 1:
        return Target(resource.name)
    calls = model.calls[resource.name]
    if len(parts) == 2:
        if parts[1] == "changes":
            return Target(resource.name, changes=True)
        call = calls.get(("class", parts[1]), "") if calls else ""
        return Target(resource.name, None if call else parts[1], "", call)
    relation = model.collections[resource.name].get(parts[2])
    if relation is not None:
        return Target(resource.name, parts[1], relation)
    call = calls.get(("row", parts[2]), "")
    return Target(resource.name, parts[1], "", call) if call else None


def check_target(target: Target, view: View) -> None:
    """Refuse a collection that other roles have and this one has not."""
    found = view.resources.get(target.resource)
    if found is None or (target.relation and target.relation not in found.relations):
        raise not_yours(view)


def operation_name(method: str, target: Target, model: Model) -> str:
    """What a check is told of a request: `GET /users/{id}/posts`."""
    calls, collections = model.calls[target.resource], model.collections[target.resource]
    last = [segment for (_, segment), name in calls.items() if name == target.call]
    last += [segment for segment, name in collections.items() if name == target.relation]
    parts = [model.resources[target.resource].path, *[_PATH_ID] * (target.id is not None), *last]
    return f"{method} /{'/'.join([*parts, *['changes'] * target.changes])}"


class Query(NamedTuple):
    """A query string, taken apart: its parameters, `where` parsed, and what of it can change a statement."""

    parameters: Mapping[str, str]
    inputs: dict[str, Any]
    shape: tuple[Any, ...]

    def fields(self) -> tuple[Item, ...] | None:
        """The items of `fields`. (Only who sees the shape for the first time needs to ask.)"""
        return parse_fields(self.parameters["fields"]) if "fields" in self.parameters else None

    def asked(self, operation: str, viewer: Viewer, checks: Checking) -> Asked:
        """How much is asked for, as far as its parameters tell; faults in the grammar of `fields` are refused."""
        asked = Asked("rest", viewer, operation)
        asked.sort_keys = self.parameters.get("sort", "").count(",") + 1
        asked.expanded = self.parameters.get("fields", "").count(",") + 1
        measure_filter(self.inputs.get("where"), asked)
        checks(asked)
        measure_fields(self.fields() or (), asked)
        return checks(asked)


def read_query(raw: str, target: Target) -> Query:
    """Take a query string apart; its grammar is checked (that of `fields` is when they are asked for)."""
    if not raw:
        return Query({}, {_PATH_ID: target.id}, ())
    parameters, inputs, key = _take_apart(raw)
    return Query(parameters, {**inputs, _PATH_ID: target.id}, key)


@memo("query strings", 512, _SHORT, each=32 << 10)
def _take_apart(raw: str) -> tuple[Mapping[str, str], Mapping[str, Any], tuple[Any, ...]]:
    """The parameters, the same with `where` parsed, and their shape."""
    parameters = parse_query(raw)
    inputs: dict[str, Any] = dict(parameters)
    if "where" in parameters:
        inputs["where"] = _json(parameters["where"], "where")
    key = tuple(
        (name, shape(inputs["where"]) if name == "where" else value if _is_shape(name) else 1)
        for name, value in parameters.items()
    )
    return parameters, inputs, key


def _is_shape(name: str) -> bool:
    return name in _SHAPING or name.endswith("[isNull]")


def _json(text: str, parameter: str) -> Any:
    try:
        return parse_json(text.encode())
    except ValueError as error:
        raise bad(parameter, f"expected JSON: {error}") from None


def translate(target: Target, query: Query, view: View) -> Wish:
    """The Ask of a GET. Every fault in its query string is in one Refusal."""
    draft = Draft(view)
    ask = _Translator(draft, query).ask(target)
    draft.done(Code.BAD_REQUEST, _QUERY_FAULT)
    return Wish((ask,), tuple(draft.slots.slots), tuple(draft.slots.sources))


def translate_changes(target: Target, query: Query, view: View) -> WatchWish:
    """The Ask of a GET on the changes of a collection. `first` is no part of it: it cuts what is told, and not what is
    followed."""
    draft = Draft(view)
    wish = _Translator(draft, query).watch(view.resources[target.resource])
    draft.done(Code.BAD_REQUEST, _QUERY_FAULT)
    return wish


def translate_write(
    verb: Change, target: Target, query: Query, body: Any, versions: tuple[int, ...] | None, view: View, *, answer: bool
) -> WriteWish:
    """The Ask of a POST, PUT, PATCH or DELETE; `versions` are those that the row may have."""
    draft = Draft(view)
    translator = _Translator(draft, query)
    each = view.resources[target.resource]
    translator.only(("fields",))
    draft.done(Code.BAD_REQUEST, _QUERY_FAULT)
    key = draft.row_id(each, None if verb == "create" else Given(target.id, ("path", _PATH_ID)))
    values = draft.values(verb, each, Given(body, ("body",))) if verb != "delete" else ()
    wanted = versions[0] if versions is not None and len(versions) == 1 else versions and list(versions)
    version = draft.version(Given(wanted, ("header", VERSIONS)))
    picks = translator.sound_picks(each) if answer else ()
    return draft.write(Write(verb, each.resource.name, key, values, version, picks), ("body",))


def translate_call(target: Target, definition: CallDef, query: Query, body: Any, view: View) -> CallWish:
    """The Ask of a call. An action takes its arguments from the body, a query from the query string."""
    draft = Draft(view)
    translator = _Translator(draft, query)
    shown = ("fields",) if definition.result.resource else ()
    if isinstance(definition, QueryDef):
        place: Place = ("query",)
        names = [name for name in query.parameters if name not in shown]
        given = {name: Given(query.parameters[name], ("query", name), text=True) for name in names}
    else:
        translator.only(shown)
        draft.done(Code.BAD_REQUEST, _QUERY_FAULT)
        place = ("body",)
        given = dict(Given(body, place).entries())
    resource = view.model[target.resource]
    key = draft.slots.take(resource.key, Given(target.id, ("path", _PATH_ID))) if target.id is not None else None
    values = draft.arguments(definition, given, place)
    picks = translator.sound_picks(view.resources[definition.result.resource]) if shown else ()
    ask = Call(resource.name, definition.name, key, values, picks)
    return draft.call(ask, place, Code.BAD_REQUEST if place == ("query",) else Code.BAD_USER_INPUT)


def write_inputs(target: Target, body: Any, versions: tuple[int, ...] | None) -> dict[str, Any]:
    """The values of a change, each where its source says."""
    inputs = dict(body) if isinstance(body, dict) else {}
    inputs[_PATH_ID] = target.id
    if versions is not None:
        inputs[VERSIONS] = versions[0] if len(versions) == 1 else list(versions)
    return inputs


class _Translator:
    def __init__(self, draft: Draft, query: Query) -> None:
        self.draft = draft
        self.query = query
        self.fields = query.fields()

    def ask(self, target: Target) -> Read:
        each = self.draft.view.resources[target.resource]
        if target.id is None:
            return self._page(each)
        key = self.draft.slots.take(each.resource.key, Given(target.id, ("path", _PATH_ID)))
        where = Compare("eq", Col(("id",)), key)
        if not target.relation:
            self.only(("fields",))
            return Read(each.resource.name, "one", self.picks(each), where)
        relation = each.relations[target.relation].relation
        inner = self._page(self.draft.view.resources[relation.target])
        follow = Follow(relation.name, relation.name + "Connection", inner)
        return Read(each.resource.name, "one", (follow,), where)

    def watch(self, each: ResourceView) -> WatchWish:
        where = and_(*(self._filter(name, each, _CHANGES) for name in self.query.parameters))
        for name in self.query.parameters:
            if name in RESERVED and name not in _CHANGES:
                self.draft.fault(("query", name), "there is no such parameter here")
        row = ChangePart("row", each.resource.one, self.picks(each))
        given = {name: self._given(name) for name in ("kinds", "after") if name in self.query.parameters}
        return self.draft.watch(each, (*(ChangePart(what, what) for what in TOLD), row), where, given)

    def only(self, names: tuple[str, ...]) -> None:
        for name in self.query.parameters:
            if name not in names:
                self.draft.fault(("query", name), "there is no such parameter here")

    # a collection

    def _page(self, each: ResourceView) -> Read:
        where = and_(*(self._filter(name, each) for name in self.query.parameters))
        order = self._order(self.query.parameters.get("sort"), ("query", "sort"), each)
        given = {name: self._given(name) for name in _PAGE if name in self.query.parameters}
        page = self.draft.page(given, ("query",))
        parts: list[Part] = [PAGE_INFO]
        if "count" in self.query.parameters:
            parts.append(Total("totalCount"))
            if self.query.parameters["count"] != "exact":
                self.draft.fault(("query", "count"), "expected 'exact'")
        nodes = Nodes("nodes", self._picks(self.fields, each))
        return Read(each.resource.name, "page", (*parts, nodes), where, order, page)

    def _given(self, name: str) -> Given:
        return Given(self.query.parameters[name], ("query", name), text=True)

    def _filter(self, name: str, each: ResourceView, reserved: tuple[str, ...] = ()) -> Expr:
        if name == "where":
            return self.draft.where(Given(self.query.inputs["where"], ("query", "where")), each)
        if name in RESERVED or name in reserved:
            return TRUE
        field, op = filter_name(name)
        if field in RESERVED or field in reserved or field not in each.searchable:
            self.draft.fault(("query", name), f"{each.resource.name} has no field '{field}' to filter by")
            return TRUE
        return self.draft.operator(op, self._given(name), each.fields[field])

    def _order(self, text: str | None, place: tuple[str, ...], each: ResourceView) -> tuple[Order, ...]:
        if text is None:
            return ()
        keys = [
            self.draft.sort_key(key.removeprefix("-"), key.startswith("-"), place, each) for key in text.split(",")
        ]
        return tuple(key for key in keys if key)

    # fields

    def picks(self, each: ResourceView) -> tuple[Pick, ...]:
        """What is picked of the row that the path names."""
        return self._picks(self.fields, each)

    def sound_picks(self, each: ResourceView) -> tuple[Pick, ...]:
        """The same of a request that has a body: faults in its query string come before those of its body."""
        later, self.draft.faults = self.draft.faults, []
        picks = self.picks(each)
        self.draft.done(Code.BAD_REQUEST, _QUERY_FAULT)
        self.draft.faults = later
        return picks

    def _picks(self, items: tuple[Item, ...] | None, each: ResourceView) -> tuple[Pick, ...]:
        found: dict[str, Pick] = {}
        for item in (Item("*", "*"),) if items is None else items:
            for pick in self._plain(each) if item.name == "*" else self._pick(item, each):
                if pick.label in found:
                    self.draft.fault(("query", "fields"), f"'{pick.label}' stands there twice")
                found[pick.label] = pick
        return tuple(found.values())

    @staticmethod
    def _plain(each: ResourceView) -> list[Pick]:
        return [Field(name, name) for name in each.fields]

    def _pick(self, item: Item, each: ResourceView) -> list[Pick]:
        if item.name in each.fields:
            if item.inner is not None or item.bracketed:
                self.draft.fault(("query", "fields"), f"'{item.name}' is a plain field and takes no ( ) or [ ]")
            return [Field(item.name, item.label)]
        if item.name not in each.relations:
            self.draft.fault(("query", "fields"), f"{each.resource.name} has no field '{item.name}'")
            return []
        if item.inner is None:
            self.draft.fault(("query", "fields"), f"'{item.name}' is a relation: select from it, {item.name}(id)")
            return []
        return [self._follow(item, each.relations[item.name].relation)]

    def _follow(self, item: Item, relation: RelationDef) -> Pick:
        target = self.draft.view.resources[relation.target]
        if relation.kind == "one":
            if item.bracketed:
                self.draft.fault(("query", "fields"), f"'{item.name}' leads to one and takes no [ ]")
            return Follow(relation.name, item.label, Read(relation.target, "one", self._picks(item.inner, target)))
        where, order, page = self._arguments(item, target)
        picks = self._picks(item.inner, target)
        return Follow(relation.name, item.label, Read(relation.target, "list", picks, where, order, page))

    def _arguments(self, item: Item, target: ResourceView) -> tuple[Expr, tuple[Order, ...], Page]:
        """The arguments in [ ] of a to-many relation; their values are part of the text of `fields`."""
        given: dict[str, Given] = {}
        place = ("query", "fields", item.label)
        for key, value in item.arguments:
            if key in given or key not in (*_PAGE, "sort", "where"):
                self.draft.fault((*place, key), "there is no such argument, or it stands there twice")
            given[key] = Given(value, (*place, key), fixed=True, text=True)
        where: Expr = TRUE
        if "where" in given:
            tree = _json(given["where"].value, "fields")
            where = self.draft.where(Given(tree, given["where"].place, fixed=True), target)
        sort = given["sort"].value if "sort" in given else None
        order = self._order(sort, (*place, "sort"), target)
        pages = {key: each for key, each in given.items() if key in _PAGE}
        return where, order, self.draft.page(pages, place)
