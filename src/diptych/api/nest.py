"""Unfolds a nested write into the rows that it writes, each of which becomes a Write of its own.

    {"name": "Zoe", "posts": {"create": [{"title": "First"}]}}

    create User  {"name": "Zoe"}
    create Post  {"title": "First", "authorId": Ref(-1)}         the row of the write before it

So a nested write, a batch and a mutation with several fields are equal tuples of Asks, and there is no second way to
run them. The order: rows of to-one relations, the row itself, then relation by relation in the order of the model:
set, disconnect, delete, update, connect, create. A `set` is the deletion of the links that it leaves out, and connects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from diptych.api.nested_row import LinkCut, NestedRow, RelationPaths
from diptych.ask.measures import Limits, too_many_levels, too_many_writes
from diptych.ask.nodes import WriteVerb
from diptych.ask.slots import RawValue, Ref
from diptych.ask.wish import Follows
from diptych.errors import MAX_FAULTS, Fault, Path
from diptych.model.defs import RelationDef
from diptych.model.nesting import WORDS, NestTaking, NestView, NestWord, all_nests
from diptych.model.resource_view import ResourceView
from diptych.model.view import View, not_yours

_BODY: Path = ("body",)
_PARENT = "{parent}"
"""The row around it, among the inputs of a row."""
_OTHERS = "{others}"
"""The rows that a `set` names, among the inputs of a row."""
_ITEMS = {
    "create": (),
    "update": ("id", "ifVersion", "patch"),
    "delete": ("id", "ifVersion"),
    "connect": ("id", "ifVersion"),
    "disconnect": ("id", "ifVersion"),
}
"""The members of an item of a to-many relation."""


class _Around(NamedTuple):
    """The row around some others: its position, is it new, and what is written after it; or its id, if it is not
    written itself."""

    resource: ResourceView
    position: int
    new: bool
    later: RelationPaths
    id: RawValue | None = None


class Unfolder:
    """Unfolds the nested writes of one request. `own_paths` gives each row paths and inputs of its own, so that rows
    with the same fields share a plan."""

    def __init__(self, view: View, limits: Limits, *, own_paths: bool) -> None:
        self.view = view
        self.limits = limits
        self.own_paths = own_paths
        self.rows: list[NestedRow] = []
        self.faults: list[Fault] = []
        self.denied: list[Fault] = []
        self.total = 0
        """The rows of all nested writes of the request."""
        self.depth = 1
        """The most levels of any of them."""

    def unfold(self, verb: NestTaking, resource: ResourceView, raw: RawValue) -> tuple[list[NestedRow], int]:
        """The rows of a nested write in their order, and the position of the row itself among them. Its id, its
        version and what is selected of it are left to the caller."""
        self.rows = []
        head = self._row(NestedRow(verb, resource, raw, raw.path), 1, {})
        if self.denied:
            raise not_yours(self.view, self.denied)
        return self.rows, head

    def unfold_set(self, nest: NestView, resource: ResourceView, raw: RawValue, id: RawValue) -> list[NestedRow]:
        """The rows that make the links of a row exactly those that a list names; the row itself is not among them."""
        self.rows = []
        around = _Around(resource, 0, False, frozenset(), id)
        if isinstance(raw.value, list):
            self._items("set", nest, raw, around, raw.path, 1)
        else:
            self._fault(raw.path, "expected a list")
        return self.rows

    # rows

    def _row(
        self, row: NestedRow, level: int, references: Mapping[str, int], around: tuple[_Around, NestView] | None = None
    ) -> int:
        """Add a row with all that is nested in it; its position. `references` are the positions of rows that it refers
        to, and `around` the row that it must belong to."""
        self._level(level)
        relations = row.resource.resource.ways
        body = row.values.value
        if row.verb == "delete" or not isinstance(body, dict) or relations.keys().isdisjoint(body):
            return self._add(row, references, around)
        verb: NestTaking = "create" if row.verb == "create" else "update"
        nests = all_nests(row.resource, self.view, verb)
        own = {name: value for name, value in body.items() if name not in relations}
        entries = dict(row.values.entries())
        row.values = RawValue(own, row.values.path, row.values.fixed)
        positions = dict(references)
        many: list[tuple[NestView, RawValue]] = []
        for name in relations:
            raw = entries.get(name)
            nest = None if raw is None else self._nest(name, raw, row, nests)
            if raw is None or nest is None:
                continue
            if nest.relation.kind == "one":
                position = self._to_one(nest, raw, row, level)
                if position is not None:
                    positions[nest.key] = position
            else:
                many.append((nest, raw))
        if verb == "create":
            row.later |= {(name,) for name in _looking(relations, [nest.relation for nest, _ in many])}
        here = _Around(row.resource, self._add(row, positions, around), verb == "create", row.later)
        for nest, raw in many:
            self._to_many(nest, raw, here, row.place, level + 1)
        return here.position

    def _add(
        self, row: NestedRow, references: Mapping[str, int], around: tuple[_Around, NestView] | None = None
    ) -> int:
        self._count()
        here = len(self.rows)
        path, fixed = row.values.path, not self.own_paths
        if references:
            refs: dict[str, Any] = {name: Ref(position - here) for name, position in references.items()}
            if fixed:
                refs = {name: RawValue(ref, (*path, name), fixed=True) for name, ref in refs.items()}
            row.values = RawValue({**row.values.value, **refs}, path, row.values.fixed)
        if around is not None:
            outer, nest = around
            ref = RawValue(Ref(outer.position - here), (*path[:1], _PARENT), fixed=fixed)
            row.within = (outer.resource.resource.name, nest.relation.name, ref)
        if self.own_paths:
            row.inputs = _inputs(row)
        self.rows.append(row)
        return here

    def _level(self, level: int) -> None:
        if level > self.limits.depth:
            raise too_many_levels(level, self.limits)
        self.depth = max(self.depth, level)

    def _count(self) -> None:
        self.total += 1
        if self.total > self.limits.writes:
            raise too_many_writes(self.total, self.limits)

    # relations

    def _nest(self, name: str, raw: RawValue, row: NestedRow, nests: Mapping[str, NestView]) -> NestView | None:
        """A relation of the row that the role may write; what is wrong with it is reported."""
        path, nest = self._place(raw.path, row.place), nests.get(name)
        if nest is None:
            self._fault(path, f"{row.resource.resource.name} has no field '{name}'")
        elif not isinstance(raw.value, dict):
            self._fault(path, f"expected an object with {' or '.join(nest.known)}")
        else:
            return nest
        return None

    def _to_one(self, nest: NestView, raw: RawValue, row: NestedRow, level: int) -> int | None:
        if nest.key in row.values.value:
            fault = f"send {nest.key} or {nest.relation.name}, one of the two"
            self._fault(self._place(raw.path, row.place), fault)
        new = dict(self._words(nest, raw, row.place)).get("create")
        if new is None or new.value is None:
            if self.denied:
                return None
            self._fault(self._place((*raw.path, "create"), row.place), "expected a value")
            return None
        target = self.view.resources[nest.relation.target]
        place = self._place(new.path, row.place)
        return self._row(NestedRow("create", target, self._own(new), place), level + 1, {})

    def _to_many(self, nest: NestView, raw: RawValue, around: _Around, place: Path, level: int) -> None:
        words = dict(self._words(nest, raw, place))
        for word in WORDS:
            sent = words.get(word)
            if sent is None:
                continue
            if sent.value is None or (self.own_paths and not isinstance(sent.value, list)):
                self._fault(self._place(sent.path, place), "expected a list")
                continue
            if self.own_paths and word == "create" and not nest.theirs:
                self._new_rows(nest, sent, around, place, level)
                continue
            self._items(word, nest, sent, around, place, level)

    def _items(self, word: NestWord, nest: NestView, sent: RawValue, around: _Around, place: Path, level: int) -> None:
        items = sent.items()
        if word == "set":
            self._cut(nest, sent, items, around, self._place(sent.path, place), level)
        for item in items:
            if isinstance(item.value, dict):
                self._item(word, nest, self._own(item), around, self._place(item.path, place), level)
            else:
                self._fault(self._place(item.path, place), "expected an object")

    def _new_rows(self, nest: NestView, sent: RawValue, around: _Around, place: Path, level: int) -> None:
        """New rows of a to-many relation, each with paths of its own. (Most have no relations: the fast path.)"""
        target = self.view.resources[nest.relation.target]
        relations, key = target.resource.ways.keys(), nest.key
        later = frozenset((nest.relation.inverse, *path) for path in around.later)
        outside = self._place(sent.path, place)
        like: NestedRow | None = None
        names: Set[str] = set()
        for index, item in enumerate(sent.value):
            at = (*outside, index)
            if type(item) is not dict:
                self._fault(at, "expected an object")
            elif key in item or not relations.isdisjoint(item) or level > self.limits.depth:
                self._item("create", nest, RawValue(item, _BODY), around, at, level)
            else:
                self._level(level)
                self._count()
                values = {**item, key: Ref(around.position - len(self.rows))}
                row = NestedRow("create", target, RawValue(values, _BODY), at, values, later=later)
                if like is None or item.keys() != names:
                    like, names = row, item.keys()
                row.like = None if None in item.values() else like
                self.rows.append(row)

    def _words(self, nest: NestView, raw: RawValue, place: Path) -> Iterator[tuple[str, RawValue]]:
        for word, sent in raw.entries(len(WORDS) + MAX_FAULTS):  # of more, enough are unknown
            if word not in nest.known:
                fault = f"'{word}' is none of {', '.join(nest.known)}"
                self._fault(self._place(sent.path, place), fault)
            elif word not in nest.words:
                self._deny(self._place(sent.path, place), "you may not do this")
            else:
                yield word, sent

    def _item(self, word: NestWord, nest: NestView, own: RawValue, around: _Around, place: Path, level: int) -> None:
        """One row of a to-many relation."""
        if nest.theirs:
            self._link(word, nest, own, around, place, level)
            return
        target = self.view.resources[nest.relation.target]
        references = {nest.key: around.position}
        if word == "create":
            clash = next((name for name in (nest.key, nest.relation.inverse) if name in own.value), None)
            if clash:
                self._fault((*place, clash), f"it is that of the {around.resource.resource.name} around it")
                return
            row = NestedRow("create", target, own, place)
            row.later = frozenset((nest.relation.inverse, *path) for path in around.later)
            self._row(row, level, references)
            return
        entries = dict(own.entries())
        if not self._complete(word, entries, place):
            return
        values = RawValue({}, own.path, own.fixed)
        if word == "disconnect":
            values = RawValue({nest.key: None}, own.path, own.fixed)
        elif word == "update":
            values = entries["patch"]
        verb: WriteVerb = "delete" if word == "delete" else "update"
        row = NestedRow(verb, target, values, place, {}, entries["id"], entries.get("ifVersion"))
        if word == "connect":
            self._row(row, level, references)
        else:
            self._row(row, level, {}, (around, nest))

    def _cut(
        self, nest: NestView, sent: RawValue, items: list[RawValue], around: _Around, place: Path, level: int
    ) -> None:
        """Take away the links to all rows but those of a `set`. An item without an id is reported where it is."""
        self._level(level)
        self._count()
        entries = (dict(item.entries()) for item in items if isinstance(item.value, dict))
        ids = [key for entry in entries if (key := entry.get("id")) is not None and key.value is not None]
        parent = around.id or RawValue(Ref(around.position - len(self.rows)), (*_BODY, _PARENT), not self.own_paths)
        others = RawValue(ids, sent.path, fixed=True)
        if self.own_paths:
            others = RawValue([entry.value for entry in ids], (*_BODY, _OTHERS))
        link = self.view.resources[nest.relation.link]
        row = NestedRow("delete", link, RawValue({}, _BODY if self.own_paths else sent.path), place)
        row.within = (around.resource.resource.name, nest.relation.name, parent)
        row.parent = around.id
        row.cut = LinkCut(nest, others, min(self.limits.writes, self.limits.bulk))
        row.inputs = {str(parent.path[-1]): parent.value, _OTHERS: others.value} if self.own_paths else {}
        self.rows.append(row)

    def _link(self, word: NestWord, nest: NestView, own: RawValue, around: _Around, place: Path, level: int) -> None:
        """Connect a row by a link, or take the link away; a new row is made first."""
        link = self.view.resources[nest.relation.link]
        later = frozenset((nest.relation.link_mine, *path) for path in around.later)
        if word == "create":
            target = self.view.resources[nest.relation.target]
            made = self._row(NestedRow("create", target, own, place), level, {})
            row = NestedRow("create", link, RawValue({}, own.path, own.fixed), place, later=later)
            self._add(row, {nest.key: around.position, nest.theirs: made})
            return
        entries = dict(own.entries())
        key = entries.pop("id", None)
        clash = [name for name in entries if word == "disconnect" or name in (nest.key, nest.theirs)]
        for name in clash:
            self._fault((*place, name), f"'{name}' is no part of this")
        if key is None or key.value is None:
            self._fault((*place, "id"), "expected a value")
        if clash or key is None or key.value is None:
            return
        self._level(level)
        # a new row has no links that could be there already
        verb: WriteVerb = "delete" if word == "disconnect" else "create" if around.new else "upsert"
        values = {name: value for name, value in own.value.items() if name != "id"}
        if around.id is not None:
            values[nest.key] = around.id
        row = NestedRow(verb, link, RawValue({**values, nest.theirs: key}, own.path, own.fixed), place)
        row.by = "" if verb == "create" else nest.by
        row.parent, row.named = around.id, True
        row.later = later if verb == "create" else frozenset()
        here = self._add(row, {nest.key: around.position} if around.id is None else {})
        name, parent = (nest.key, Ref(around.position - here))
        if around.id is not None:
            name, parent = str(around.id.path[-1]), around.id.value
        row.inputs = {**own.value, name: parent}

    def _complete(self, word: str, entries: Mapping[str, RawValue], place: Path) -> bool:
        before = len(self.faults)
        for name in entries:
            if name not in _ITEMS[word]:
                self._fault((*place, name), f"'{name}' is none of {', '.join(_ITEMS[word])}")
        for name in ("id", "patch"):
            if name in _ITEMS[word] and (name not in entries or entries[name].value is None):
                self._fault((*place, name), "expected a value")
        return len(self.faults) == before

    # paths and faults

    def _own(self, raw: RawValue) -> RawValue:
        """The values of a row, with paths of its own."""
        return RawValue(raw.value, _BODY) if self.own_paths else raw

    def _place(self, path: Path, place: Path) -> Path:
        """The place in the request of a path that may be that of a row of its own."""
        return (*place, *path[1:]) if self.own_paths else path

    def _fault(self, path: Path, message: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(path, message))

    def _deny(self, path: Path, message: str) -> None:
        if len(self.denied) < MAX_FAULTS:
            self.denied.append(Fault(path, message))


def follows(rows: Sequence[NestedRow], head: int) -> Follows:
    """What follows the row that a nested write is about."""
    name = rows[head].resource.resource.name
    # a delete can set references of other rows to null
    again = any(row.verb == "delete" or row.resource.resource.name == name for row in rows[head + 1 :])
    return Follows(rows[head].later, again)


def is_nested(values: Any, resource: ResourceView) -> bool:
    """Do the values of a row contain relations?"""
    return isinstance(values, dict) and not resource.resource.ways.keys().isdisjoint(values)


def _inputs(row: NestedRow) -> Mapping[str, Any]:
    """The inputs of a row with paths of its own, where the sources of its slots look them up."""
    values = row.values.value
    if row.id is None:
        return values if isinstance(values, dict) else {}
    inputs: dict[str, Any] = {"patch": values} if len(row.values.path) > 1 else dict(values)
    for raw in (row.id, row.version, row.within[2] if row.within else None):
        if raw is not None:
            inputs[str(raw.path[1])] = raw.value
    return inputs


def _looking(relations: Mapping[str, RelationDef], written: Sequence[RelationDef]) -> Iterator[str]:
    """The to-many relations that lead to rows of resources that are written."""
    resources = {name for relation in written for name in (relation.target, relation.link) if name}
    for name, relation in relations.items():
        if relation.kind != "one" and not resources.isdisjoint((relation.target, relation.link)):
            yield name
