"""A slow, obvious evaluator of an Ask: what the contract says, row by row, over lists of dicts.

It reads an Ask as the client asked it, and the rules as the model declares them: nothing of `check.access`,
of `compile` or of the folding of views is used here, so that a fault in one of them cannot hide in both.

    Oracle(model, viewer, rows).answer(ask, values)     {"name": "Ann", "posts": [{"title": "…"}]}, or None

Rows are dicts of canonical values by their names on the wire. `values` are the canonical values of the slots;
the value of a cursor is the tuple of keys that it holds. The answer is what JSON would give, with cursors
shown by `cursor(read, keys)`: "<cursor>" unless told otherwise.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from diptych.ask.nodes import (
    ConnectionPart,
    EdgePart,
    Edges,
    Field,
    Follow,
    Nodes,
    OrderBy,
    Page,
    PageInfo,
    Pick,
    Read,
    Total,
    TypeName,
)
from diptych.model.declare.roles import Viewer
from diptych.model.defs import RelationDef, ResourceDef, RuleDef
from diptych.model.folding import fold
from diptych.model.model import Model
from diptych.model.operators import FOLDED
from diptych.model.rules.expr import (
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    Has,
    HasRole,
    IsNull,
    KeyText,
    May,
    Not,
    Or,
    RowDigest,
    Slice,
    Slot,
    ViewerId,
    ViewerValue,
)
from diptych.model.scalars import BIGINT, INTEGER_ID, Scalar
from diptych.model.viewer_object import VIEWER

Keys = tuple[Any, ...]
Show = Callable[[Read, Keys], Any]
Data = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a resource."""

    resource: ResourceDef
    data: Mapping[str, Any]

    @property
    def id(self) -> Any:
        return self.data["id"]


@dataclass(frozen=True)
class Cut:
    """A list, sorted, and the part of it that a page shows: from `start` up to `end`."""

    rows: Sequence[Row]
    start: int
    end: int
    before: bool
    after: bool

    @property
    def shown(self) -> Sequence[Row]:
        return self.rows[self.start : self.end]


class Sight:
    """What one viewer sees of the data: rows and fields, by the rules of the model."""

    def __init__(self, model: Model, viewer: Viewer, data: Data) -> None:
        self.model = model
        self.viewer = viewer
        self.rows = {name: [Row(resource, each) for each in data[name]] for name, resource in model.resources.items()}
        self._by_id = {(name, row.id): row for name, rows in self.rows.items() for row in rows}
        self._readable: dict[tuple[str, Any], bool] = {}

    def find(self, resource: str, id: Any) -> Row | None:
        return self._by_id.get((resource, id))

    def readable(self, row: Row) -> bool:
        """May the viewer read the row? Denied unless a rule allows it, and the token's scopes leave room."""
        key = (row.resource.name, row.id)
        if key not in self._readable:
            scopes, path = self.viewer.scopes, row.resource.path
            scoped = scopes is None or "read" in scopes or f"{path}:read" in scopes
            rules = [rule for rule in row.resource.rules if "read" in rule.verbs and not rule.fields]
            self._readable[key] = scoped and any(self._allows(rule, row) for rule in rules)
        return self._readable[key]

    def shows(self, name: str, row: Row) -> bool:
        """May the viewer see this field, or follow this relation, of a row that it may read?"""
        field = row.resource.fields.get(name) or row.resource.fields.get(name + "Id")
        if field and field.computed and not all(self._sees(path, row) for path in columns(field.computed)):
            return False
        roles = field.read_roles if field else None
        rules = [rule for rule in row.resource.rules if "read" in rule.verbs and name in rule.fields]
        if roles is None and not rules:
            return True
        if any(role in self.viewer.roles for role in roles or ()):
            return True
        return any(self._allows(rule, row) for rule in rules)

    def _sees(self, path: Sequence[str], row: Row) -> bool:
        """May the viewer go along the path itself? Where it ends early, there is nothing to hide."""
        name, *rest = path
        if not self.shows(name, row) or not rest:
            return self.shows(name, row)
        target = self._walk([name], row)
        return target is None or (self.readable(target) and self._sees(rest, target))

    def _allows(self, rule: RuleDef, row: Row) -> bool:
        return (rule.role is None or rule.role in self.viewer.roles) and self.holds(rule.expr, row)

    def shown(self, name: str, row: Row) -> Any:
        """The value of a field as the viewer sees it: null where a rule hides it."""
        if not self.shows(name, row):
            return None
        computed = row.resource.fields[name].computed
        return row.data[name] if computed is None else self.value(computed, row)

    def related(self, relation: RelationDef, row: Row) -> list[Row]:
        """The rows that a relation leads to, where the viewer may read them and see that it leads there."""
        there = [other for other in self.rows[relation.target] if self.readable(other)]
        if not self.shows(relation.name, row):
            return []
        if relation.kind == "one":
            return [other for other in there if other.id == row.data[relation.name + "Id"]]
        if relation.kind == "many":
            return [other for other in there if self._key(relation.inverse, other) == row.id]
        links = [link for link in self.rows[relation.link] if self.readable(link)]
        tied = {
            self._key(relation.link_theirs, link) for link in links if self._key(relation.link_mine, link) == row.id
        }
        return [other for other in there if other.id in tied]

    def _key(self, relation: str, row: Row) -> Any:
        """The id to which a to-one relation leads, as the viewer sees it."""
        return row.data[relation + "Id"] if self.shows(relation, row) else None

    # the expressions of rules and computed fields, over all that is stored

    def holds(self, expr: Expr, row: Row) -> bool:
        match expr:
            case And(of):
                return all(self.holds(part, row) for part in of)
            case Or(of):
                return any(self.holds(part, row) for part in of)
            case Not(of):
                return not self.holds(of, row)
            case IsNull(of):
                return self.value(of, row) is None
            case HasRole(role):
                return role in self.viewer.roles
            case May(path):
                target = self._walk(path, row)
                return target is not None and self.readable(target)
            case Has(name, where):
                return any(self.holds(where, other) for other in self._tied(row.resource.relations[name], row))
            case Compare(op, left, right):
                return compare(op, *self._sides(left, right, row))
        return self.value(expr, row) is True

    def _sides(self, left: Expr, right: Expr, row: Row) -> tuple[Any, Any]:
        """The two values of a comparison; an id is compared with the viewer's as text, as on the wire."""
        one, other = self.value(left, row), self.value(right, row)
        if isinstance(left, ViewerId) or isinstance(right, ViewerId):
            return None if one is None else str(one), None if other is None else str(other)
        return one, other

    def value(self, expr: Expr, row: Row) -> Any:
        match expr:
            case Col(path):
                target = self._walk(path[:-1], row)
                if target is None:
                    return None
                made = target.resource.fields[path[-1]].computed
                return target.data[path[-1]] if made is None else self.value(made, target)
            case Const(value):
                return value
            case ViewerId():
                return self.viewer.id
            case ViewerValue(name):
                return getattr(self.viewer, name)
            case Choose(when, then, other):
                return self.value(then if self.holds(when, row) else other, row)
            case RowDigest():  # read back from the store, which alone knows it
                return row.data["version"]
            case KeyText(of):
                texts = [self.value(part, row) for part in of]
                return None if None in texts else key_text(texts)
            case Concat(of):
                parts = [self.value(part, row) for part in of]
                return None if None in parts else "".join(parts)
            case Slice(of, start, length):
                text = self.value(of, row)
                return text if text is None else text[start : None if length is None else start + length]
        return self.holds(expr, row)

    def _tied(self, relation: RelationDef, row: Row) -> list[Row]:
        """The rows that a relation leads to, whoever may read them."""
        there = self.rows[relation.target]
        if relation.kind == "one":
            return [other for other in there if other.id == row.data[relation.name + "Id"]]
        if relation.kind == "many":
            return [other for other in there if other.data[relation.inverse + "Id"] == row.id]
        mine, theirs = relation.link_mine + "Id", relation.link_theirs + "Id"
        tied = {link.data[theirs] for link in self.rows[relation.link] if link.data[mine] == row.id}
        return [other for other in there if other.id in tied]

    def _walk(self, path: Sequence[str], row: Row) -> Row | None:
        """The row at the end of a path of to-one relations."""
        found: Row | None = row
        for step in path:
            if found is not None:
                found = self.find(found.resource.relations[step].target, found.data[step + "Id"])
        return found


def key_text(parts: Sequence[Any]) -> str:
    """The id of a row whose key has several columns."""
    return ",".join(str(part).replace("%", "%25").replace(",", "%2C") for part in parts)


def columns(expr: Expr) -> list[tuple[str, ...]]:
    """The paths that a computed field is made of."""
    match expr:
        case Col(path):
            return [path]
        case And(of) | Or(of) | Concat(of) | KeyText(of):
            return [path for part in of for path in columns(part)]
        case Not(of) | IsNull(of) | Slice(of):
            return columns(of)
        case Compare(_, left, right):
            return columns(left) + columns(right)
        case Choose(when, then, other):
            return columns(when) + columns(then) + columns(other)
    return []


_SIGNS: Mapping[str, Callable[[Any, Any], object]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


def compare(op: str, left: Any, right: Any) -> bool:
    """A comparison with null is false."""
    if left is None or right is None:
        return False
    if op in _SIGNS:
        return bool(_SIGNS[op](left, right))
    match op:
        case "in":
            return left in right
        case "contains":
            return right in left
        case "startsWith":
            return bool(left.startswith(right))
        case "endsWith":
            return bool(left.endswith(right))
        case "ieq" | "icontains" | "istartsWith" | "iendsWith":
            return compare(FOLDED[op], fold(left), fold(right))
    raise ValueError(op)


def wire(scalar: Scalar, value: Any) -> Any:
    """A canonical value as JSON has it."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value) if scalar in (BIGINT, INTEGER_ID) and value is not None else value


class Oracle:
    """Answers Asks for one viewer."""

    def __init__(self, model: Model, viewer: Viewer, data: Data, cursor: Show | None = None) -> None:
        self.sight = Sight(model, viewer, data)
        self.model = model
        self.cursor = cursor or (lambda read, keys: "<cursor>")
        self.values: Sequence[Any] = ()

    def answer(self, ask: Read, values: Sequence[Any]) -> Any:
        """The answer of one Ask, as JSON would give it."""
        self.values = values
        if ask.resource == VIEWER:
            return self._viewer(ask)
        rows = self.listed(ask)
        if ask.take == "one":
            return self._object(ask.pick, rows[0]) if rows else None
        return self._many(ask, rows)

    def _viewer(self, ask: Read) -> Any:
        """The viewer: null without a token, and its row as one of those that it may read."""
        viewer, user = self.sight.viewer, self.model.user
        if not viewer.signed_in:
            return None
        key = viewer.id if user is None or viewer.id is None else user.key.parse(viewer.id)
        rows = [] if user is None else [row for row in self.sight.rows[user.name] if row.id == key]
        known = {
            "subject": key if user is None else wire(user.key, key),
            "roles": sorted(role for role in viewer.roles if role != "signed_in"),
            "scopes": None if viewer.scopes is None else sorted(viewer.scopes),
            "__typename": VIEWER,
        }
        shown: dict[str, Any] = {}
        for pick in ask.pick:
            if isinstance(pick, Follow):
                seen = [row for row in rows if self.sight.readable(row)]
                shown[pick.label] = self._object(pick.read.pick, seen[0]) if seen else None
            else:
                shown[pick.label] = known[pick.name if isinstance(pick, Field) else "__typename"]
        return shown

    def listed(self, read: Read, values: Sequence[Any] | None = None) -> list[Row]:
        """All rows of a root list, sorted, whatever its page is."""
        self.values = self.values if values is None else values
        return self._list(read, [row for row in self.sight.rows[read.resource] if self.sight.readable(row)])

    def picked(self, picks: Sequence[Pick], row: Row, values: Sequence[Any]) -> dict[str, Any]:
        """What is picked of one row."""
        self.values = values
        return self._object(picks, row)

    def keys(self, order: Sequence[OrderBy], row: Row) -> Keys:
        """What a cursor of a row holds: its sort keys, and its id unless that is one of them."""
        return tuple(self._value(key.by, row) for key in whole_sort(order))

    # filters

    def _holds(self, expr: Expr, row: Row) -> bool:
        match expr:
            case And(of):
                return all(self._holds(part, row) for part in of)
            case Or(of):
                return any(self._holds(part, row) for part in of)
            case Not(of):
                return not self._holds(of, row)
            case IsNull(of):
                return self._value(of, row) is None
            case Has(name, where):
                related = self.sight.related(row.resource.relations[name], row)
                return any(self._holds(where, other) for other in related)
            case Compare(op, left, right):
                return compare(op, self._value(left, row), self._value(right, row))
        raise ValueError(expr)

    def _value(self, expr: Expr, row: Row) -> Any:
        match expr:
            case Col((name,)):
                return self.sight.shown(name, row)
            case Slot(index):
                return self.values[index]
        raise ValueError(expr)

    # lists

    def _list(self, read: Read, rows: Sequence[Row]) -> list[Row]:
        found = [row for row in rows if read.where == TRUE or self._holds(read.where, row)]

        def by_keys(one: Row, other: Row) -> int:
            return self._order(read.order, self.keys(read.order, one), self.keys(read.order, other))

        return sorted(found, key=functools.cmp_to_key(by_keys))

    @staticmethod
    def _order(order: Sequence[OrderBy], one: Keys, other: Keys) -> int:
        """-1, 0 or 1: nulls stand last, whichever way a key goes."""
        for key, left, right in zip(whole_sort(order), one, other, strict=True):
            if left is None or right is None:
                if (left is None) != (right is None):
                    return 1 if left is None else -1
            elif left != right:
                return -1 if (left < right) != key.descending else 1
        return 0

    def _cut(self, read: Read, rows: Sequence[Row]) -> Cut:
        """The page of a sorted list: the rows that it shows, and whether there are others on either side."""
        page = read.page
        assert page is not None
        first, last = self._window(read, page, rows)
        size, room = self.values[page.size.index], max(last - first, 0)
        if page.backward:
            start, end = first + max(room - size, 0), first + room
        else:
            start = first + min(self.values[page.offset.index] if page.offset else 0, room)
            end = min(start + size, first + room)
        return Cut(rows, start, end, before=start > 0, after=end < max(first, last) or last < len(rows))

    def _window(self, read: Read, page: Page, rows: Sequence[Row]) -> tuple[int, int]:
        """The rows after `after` and before `before`, by number."""
        places = [self.keys(read.order, row) for row in rows]
        first, last = 0, len(rows)
        if page.after:
            bound = self.values[page.after.index]
            first = sum(self._order(read.order, place, bound) <= 0 for place in places)
        if page.before:
            bound = self.values[page.before.index]
            last = sum(self._order(read.order, place, bound) < 0 for place in places)
        return first, last

    def _many(self, read: Read, rows: Sequence[Row]) -> Any:
        cut = self._cut(read, rows)
        if read.take == "list":
            return [self._object(read.pick, row) for row in cut.shown]
        return {part.label: self._part(part, read, cut) for part in read.pick}

    # what is picked

    def _object(self, picks: Sequence[Pick | ConnectionPart | EdgePart], row: Row) -> dict[str, Any]:
        return {pick.label: self._pick(pick, row) for pick in picks}

    def _pick(self, pick: Pick | ConnectionPart | EdgePart, row: Row) -> Any:
        match pick:
            case Field(name):
                return wire(row.resource.fields[name].scalar, self.sight.shown(name, row))
            case TypeName():
                return pick.type
            case Follow(name, _, read):
                rows = self.sight.related(row.resource.relations[name], row)
                if read.take == "one":
                    return self._object(read.pick, rows[0]) if rows else None
                return self._many(read, self._list(read, rows))
        raise ValueError(pick)

    def _part(self, part: Pick | ConnectionPart, read: Read, cut: Cut) -> Any:
        match part:
            case Nodes(pick=pick):
                return [self._object(pick, row) for row in cut.shown]
            case Edges(parts=parts):
                return [{each.label: self._edge(each, read, row) for each in parts} for row in cut.shown]
            case PageInfo(parts=kinds):
                return {label: self._info(kind, read, cut) for kind, label in kinds}
            case Total():
                return len(cut.rows)
            case TypeName():
                return part.type
        raise ValueError(part)

    def _edge(self, part: EdgePart, read: Read, row: Row) -> Any:
        if part.kind == "node":
            return self._object(part.pick, row)
        return self._cursor(read, row) if part.kind == "cursor" else read.resource + "Edge"

    def _info(self, kind: str, read: Read, cut: Cut) -> Any:
        if kind in ("startCursor", "endCursor"):
            return self._cursor(read, cut.shown[0 if kind == "startCursor" else -1]) if cut.shown else None
        return {"hasNextPage": cut.after, "hasPreviousPage": cut.before, "__typename": "PageInfo"}[kind]

    def _cursor(self, read: Read, row: Row) -> Any:
        return self.cursor(read, self.keys(read.order, row))


def whole_sort(order: Sequence[OrderBy]) -> list[OrderBy]:
    """The keys that were asked for, and the id at the end; what stands after an id decides nothing."""
    keys: list[OrderBy] = []
    for key in [*order, OrderBy(Col(("id",)))]:
        keys.append(key)
        if key.by == Col(("id",)):
            break
    return keys
