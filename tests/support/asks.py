"""Random Asks, as clients could ask them, with their values: hypothesis strategies over a viewer's view.

    asks(model, viewer, rows)       → Drawn: one Ask (or some, with `roots`), its slots, its raw values
    watches(model, viewer, rows)    → DrawnWatch: the same of a Watch

Values of filters come from the data, from right beside it, and from the ends of the ranges, so that filters
match some rows and not others. A raw value is what a client sends. The raw value of a cursor is the tuple of
keys of a real row of that list; `Drawn.sealed` makes the cursors from them that this viewer would have been
given, and `Drawn.canonical` is what the Oracle takes.

Slots are numbered in the order in which the translators deal them out: filter, page, then what is picked.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Literal, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from diptych.api.rest.translate import CHANGE_FIELDS, PAGE_INFO
from diptych.ask.cursor import seal
from diptych.ask.nodes import (
    ChangePart,
    ChangeWhat,
    ConnectionPart,
    EdgePart,
    Edges,
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
    TypeName,
    Watch,
)
from diptych.ask.slots import CHANGE_KIND, CHANGE_KINDS, CURSOR, OFFSET, SIZE
from diptych.ask.walk import reads
from diptych.model.declare.roles import Viewer
from diptych.model.defs import FieldDef, ResourceDef, Resources
from diptych.model.model import Model
from diptych.model.operators import FOLDED, MAX_SEARCHED, OPERATORS, SEARCHES, op_of, takes_list
from diptych.model.resource_view import RelationView, ResourceView
from diptych.model.rules.expr import Col, Compare, Expr, Has, IsNull, Slot, and_, not_, or_, rewrite
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    ID,
    IDS,
    INT,
    INTEGER_ID,
    STRING,
    TEXT_ID,
    Scalar,
    encode_json,
)
from diptych.model.viewer_object import ROOT, VIEWER
from diptych.policy.cost import cost_of_watch, price_of
from tests.support.edge_cases import Data, pool
from tests.support.oracle import Oracle, whole_sort, wire

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

MAX_PRICE = 5_000 // 3  # one by its global id is asked for three times
WATCH_PRICE = 250
"""What a change may cost, so that a page of twenty of them is affordable."""
ILL_FORMED = (
    "nope",
    "0",
    "-1",
    "01",
    "1.0",
    "9223372036854775808",
    "0189-",
    "DEADBEEF-0000-7000-8000-000000000000",
)
ABSENT = {ID: "00000000-0000-7000-8000-000000000001", INTEGER_ID: "999999999", TEXT_ID: "nobody"}
_LABELS = ("a", "b", "_x", "A1", "id", "nodes", "count_2")
_EDGE: tuple[Literal["node", "cursor", "__typename"], ...] = ("node", "cursor", "__typename")
_CHANGE: tuple[ChangeWhat, ...] = ("row", "row", "kind", "rowId", "cursor", "at", "__typename")
_INFO: tuple[InfoKind, ...] = ("hasNextPage", "hasPreviousPage", "startCursor", "endCursor", "__typename")


@dataclass(frozen=True, repr=False)
class Drawn:
    """Asks under their keys in the answer, with their slots and raw values."""

    asks: tuple[tuple[str, Read], ...]
    slots: tuple[Slot, ...]
    values: tuple[Any, ...]
    rest: bool
    """Can it be asked in REST?"""

    def __repr__(self) -> str:
        labels = ", ".join(f"{label}: {read.take} {read.resource}" for label, read in self.asks)
        return f"Drawn({labels}; {list(self.values)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would unfold the whole tree

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(read for _, read in self.asks)

    def canonical(self) -> list[Any]:
        """The values as the slots' types have them; cursors as their keys."""
        return [_canonical(slot, value) for slot, value in zip(self.slots, self.values, strict=True)]

    def sealed(self, model: Model, key_of: Callable[[Read, Sequence[Any]], bytes]) -> list[Any]:
        """The raw values with real cursors; `key_of` gives the key that signs the cursors of a list."""
        raw, canonical = list(self.values), self.canonical()
        for read in reads(self.reads):
            for slot in (read.page.after, read.page.before) if read.page else ():
                if slot is not None:
                    payload = _payload(read, raw[slot.index], model.resources[read.resource])
                    raw[slot.index] = seal(key_of(read, canonical), payload)
        return raw


@dataclass(frozen=True, repr=False)
class DrawnWatch:
    """A Watch under its key in the answer, with its slots and raw values. A cursor of changes is to be given later."""

    label: str
    watch: Watch
    slots: tuple[Slot, ...]
    values: tuple[Any, ...]
    rest: bool
    """Can it be asked in REST?"""

    def __repr__(self) -> str:
        return f"DrawnWatch({self.watch.resource}; {list(self.values)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def canonical(self) -> list[Any]:
        """The values as the slots' types have them; cursors as their keys."""
        return [_canonical(slot, value) for slot, value in zip(self.slots, self.values, strict=True)]

    def resuming(self) -> DrawnWatch:
        """The same after a cursor, whose slot is the last."""
        slot = Slot(len(self.slots), CURSOR)
        watch = replace(self.watch, after=slot)
        return dataclasses.replace(self, watch=watch, slots=(*self.slots, slot), values=(*self.values, None))

    def sealed(
        self, model: Model, key_of: Callable[[Read, Sequence[Any]], bytes], after: str | None = None
    ) -> list[Any]:
        """The raw values with real cursors, that of changes too."""
        rows = Drawn(tuple(("row", read) for read in self.watch.rows), self.slots, self.values, self.rest)
        raw = rows.sealed(model, key_of)
        if self.watch.after is not None:
            raw[self.watch.after.index] = after
        return raw


def _canonical(slot: Slot, raw: Any) -> Any:
    if slot.scalar is CURSOR:
        return raw
    return [slot.scalar.parse(each) for each in raw] if slot.many else slot.scalar.parse(raw)


def _payload(read: Read, keys: Sequence[Any], resource: ResourceDef) -> str:
    """The text that a cursor signs: the keys as JSON."""
    names = [key.by.path[0] for key in whole_sort(read.order) if isinstance(key.by, Col)]
    pairs = zip(names, keys, strict=True)
    return encode_json([wire(resource.fields[name].scalar, key) for name, key in pairs])


def asks(model: Model, viewer: Viewer, rows: Data, roots: int = 1) -> st.SearchStrategy[Drawn]:
    """Asks that this viewer could send; with `roots`, up to so many at once, as GraphQL can."""
    world = World(model, viewer, rows)

    @st.composite
    def drawn(draw: Draw) -> Drawn:
        return Drawer(draw, world).drawn(draw(st.integers(1, roots)) if roots > 1 else 1)

    return drawn()


def watches(model: Model, viewer: Viewer, rows: Data, after: bool = True) -> st.SearchStrategy[DrawnWatch]:
    """Watches that this viewer could send; `after` a cursor now and then."""
    world = World(model, viewer, rows)

    @st.composite
    def drawn(draw: Draw) -> DrawnWatch:
        return Drawer(draw, world).watch(after)

    return drawn()


class World:
    """What Asks are drawn from: the view of one viewer, and the data."""

    def __init__(self, model: Model, viewer: Viewer, rows: Data) -> None:
        self.model = model
        self.view = model.view(model.signature(viewer))
        self.oracle = Oracle(model, viewer, rows)
        self.resources = list(self.view.resources.values())
        viewer_view = self.view.resources[VIEWER]
        lasting = {name: field for name, field in viewer_view.fields.items() if name != "expiresAt"}
        self.viewer = replace(viewer_view, fields=lasting)
        """The viewer as an object, without the moment at which its token expires: every request has a new one."""
        self._pools: dict[tuple[str, str], list[Any]] = {}

    def pool(self, resource: ResourceDef, field: FieldDef) -> list[Any]:
        """Canonical values for a field: what the rows have there, hidden or not, and unkind ones."""
        key = (resource.name, field.name)
        if key not in self._pools:
            sight = self.oracle.sight
            expr = field.computed or Col((field.name,))
            found = [sight.value(expr, row) for row in sight.rows[resource.name]]
            unkind = () if field.scalar in IDS else pool(field.scalar)
            self._pools[key] = [each for each in (*found, *unkind) if each is not None]
        return self._pools[key]

    def ids(self, resource: ResourceDef) -> list[Any]:
        """Raw ids: of rows that the viewer may read, of hidden ones, of none at all, and ill-formed."""
        there = [str(row.id) for row in self.oracle.sight.rows[resource.name]]
        return [*there, ABSENT[resource.key], *ILL_FORMED]


class Drawer:
    """Draws one request."""

    viewer_once_in = 10
    """One root in so many is the viewer; 0: none."""

    def __init__(self, draw: Draw, world: World) -> None:
        self.draw = draw
        self.world = world
        self.raw: list[Any] = []
        self.canonical: list[Any] = []
        self.rest = False
        self.picks_left = 24
        self.aliases_left = 10
        self.terms_left = 12

    # drawing

    def one_of(self, choices: Sequence[T]) -> T:
        found: T = self.draw(st.sampled_from(choices))
        return found

    def chance(self, one_in: int) -> bool:
        """True once in so many; shrinks to False."""
        return bool(self.draw(st.integers(0, one_in - 1)) == one_in - 1)

    def count(self, most: int) -> int:
        found: int = self.draw(st.integers(0, most))
        return found

    def slot(self, scalar: Scalar, raw: Any, many: bool = False) -> Slot:
        slot = Slot(len(self.raw), scalar, many)
        self.raw.append(raw)
        self.canonical.append(_canonical(slot, raw))
        return slot

    # the roots

    def drawn(self, roots: int) -> Drawn:
        self.rest = roots == 1 and self.one_of((True, False))
        found: dict[str, Read] = {}
        for _ in range(roots):
            label, read = self.root()
            found[self.label(label, found)] = read
        return _finish(list(found.items()), self.raw, self.rest, self.world.model.resources)

    def watch(self, after: bool) -> DrawnWatch:
        self.rest = self.one_of((True, False))
        each = self.one_of(self.world.resources)
        found = each.resource
        where = self.where(each, 0) if self.chance(2) else and_()
        if self.chance(4):
            where = and_(Compare("eq", Col(("id",)), self.slot(found.key, self.one_of(self.world.ids(found)))), where)
        if self.rest:
            parts = (
                *(ChangePart(what, what) for what in CHANGE_FIELDS),
                ChangePart("row", found.one, self.picks(each, 1)),
            )
        else:
            parts = self.change_parts(each)
        kinds = None
        if self.chance(4):
            raw = self.some(CHANGE_KINDS)
            kinds = self.slot(CHANGE_KIND, raw[: len(raw) if self.rest else self.count(3)], many=True)
        cursor = self.slot(CURSOR, None) if after and self.chance(4) else None
        label = found.changed if self.rest else self.label(found.changed, ())
        watch = Watch(found.name, parts, where, kinds, cursor)
        return _finish_watch(label, watch, self.raw, self.rest, self.world.model.resources)

    def change_parts(self, each: ResourceView) -> tuple[ChangePart, ...]:
        found: dict[str, ChangePart] = {}
        for _ in range(1 + self.count(4)):
            what = self.one_of(_CHANGE)
            label = self.label(each.resource.one if what == "row" else what, found)
            found[label] = ChangePart(what, label, self.picks(each, 1) if what == "row" else ())
        return tuple(found.values())

    def root(self) -> tuple[str, Read]:
        if self.viewer_once_in and self.chance(self.viewer_once_in):
            return ROOT, Read(VIEWER, "one", self.picks(self.world.viewer, 1))
        each = self.one_of(self.world.resources)
        shape = self.one_of(("one", "page", "sub") if self.rest else ("one", "page", "list"))
        if shape == "page":
            return each.resource.connection, self.page(each, 1)
        if shape == "list":
            return each.resource.many, self.rows(each, 1)
        return each.resource.one, self.one(each, sub=shape == "sub")

    def one(self, each: ResourceView, *, sub: bool) -> Read:
        key = self.slot(each.resource.key, self.one_of(self.world.ids(each.resource)))
        many = [way for way in each.relations.values() if way.relation.kind != "one"]
        picks = (self.below(self.one_of(many)),) if sub and many else self.picks(each, 1)
        return Read(each.resource.name, "one", picks, Compare("eq", Col(("id",)), key))

    def below(self, way: RelationView) -> Follow:
        """A page below one row: a sub-collection of REST."""
        read = self.page(self.world.view.resources[way.relation.target], 2)
        return Follow(way.relation.name, way.relation.name + "Connection", read)

    def rows(self, each: ResourceView, depth: int) -> Read:
        where, order, page = self.arguments(each, page=False)
        return Read(each.resource.name, "list", self.picks(each, depth), where, order, page)

    def page(self, each: ResourceView, depth: int) -> Read:
        where, order, page = self.arguments(each, page=True)
        parts = self.rest_parts(each, depth) if self.rest else self.parts(each, depth)
        return Read(each.resource.name, "page", parts, where, order, page)

    # what is picked

    def label(self, name: str, taken: Iterable[str]) -> str:
        """The name itself, or an alias that is not taken. When no alias is left, a name that is taken is given again:
        what is drawn takes the place of what had it."""
        taken = set(taken)
        if self.aliases_left == 0 or (name not in taken and not self.chance(6)):
            return name
        self.aliases_left -= 1
        wanted = self.one_of(_LABELS)
        return next(each for each in (wanted, *(f"{wanted}{n}" for n in range(100))) if each not in taken)

    def picks(self, each: ResourceView, depth: int) -> tuple[Pick, ...]:
        found: dict[str, Pick] = {}
        for _ in range(1 + self.count(3)):
            pick = self.pick(each, depth, found)
            found[pick.label] = pick
        return tuple(found.values())

    def pick(self, each: ResourceView, depth: int, taken: Iterable[str]) -> Pick:
        self.picks_left -= 1
        ways = list(each.relations.values()) if depth < 4 and self.picks_left > 0 else []
        if ways and self.chance(2):
            return self.follow(self.one_of(ways), depth, taken)
        if not self.rest and self.chance(8):
            return TypeName(self.label("__typename", taken), each.resource.name)
        name = self.one_of(list(each.fields))
        return Field(name, self.label(name, taken))

    def follow(self, way: RelationView, depth: int, taken: Iterable[str]) -> Follow:
        name, target = way.relation.name, self.world.view.resources[way.relation.target]
        if way.relation.kind == "one":
            label = self.label(name, taken)
            return Follow(name, label, Read(way.relation.target, "one", self.picks(target, depth + 1)))
        if self.rest or self.chance(2):
            return Follow(name, self.label(name, taken), self.rows(target, depth + 1))
        return Follow(name, self.label(name + "Connection", taken), self.page(target, depth + 1))

    def rest_parts(self, each: ResourceView, depth: int) -> tuple[ConnectionPart, ...]:
        total = (Total("totalCount"),) if self.chance(2) else ()
        return (PAGE_INFO, *total, Nodes("nodes", self.picks(each, depth)))

    def parts(self, each: ResourceView, depth: int) -> tuple[ConnectionPart, ...]:
        found: dict[str, ConnectionPart] = {}
        for _ in range(1 + self.count(3)):
            kind = self.one_of(("nodes", "edges", "pageInfo", "totalCount", "__typename"))
            label = self.label(kind, found)
            found[label] = self.part(kind, label, each, depth)
        return tuple(found.values())

    def part(self, kind: str, label: str, each: ResourceView, depth: int) -> ConnectionPart:
        match kind:
            case "nodes":
                return Nodes(label, self.picks(each, depth))
            case "edges":
                return Edges(label, self.edge_parts(each, depth))
            case "pageInfo":
                kinds = {self.label(kind, ()): kind for kind in self.some(_INFO)}
                return PageInfo(label, tuple((kind, key) for key, kind in kinds.items()))
            case "totalCount":
                return Total(label)
        return TypeName(label, each.resource.name + "Connection")

    def edge_parts(self, each: ResourceView, depth: int) -> tuple[EdgePart, ...]:
        found: dict[str, EdgePart] = {}
        for _ in range(1 + self.count(2)):
            kind = self.one_of(_EDGE)
            label = self.label(kind, found)
            found[label] = EdgePart(kind, label, self.picks(each, depth) if kind == "node" else ())
        return tuple(found.values())

    def some(self, choices: Sequence[T]) -> list[T]:
        """Some of them, at least one, in any order."""
        found: list[T] = self.draw(st.lists(st.sampled_from(choices), min_size=1, unique=True))
        return found

    # which rows

    def arguments(self, each: ResourceView, *, page: bool) -> tuple[Expr, tuple[OrderBy, ...], Page]:
        where = self.where(each, 0) if self.chance(2) else and_()
        order = tuple(self.key(each) for _ in range(self.count(3)))
        return where, order, self.paged(each, where, order, page=page)

    def key(self, each: ResourceView) -> OrderBy:
        names = [name for name, field in each.fields.items() if field.field.scalar.sortable]
        return OrderBy(Col((self.one_of(names),)), self.chance(2))

    def paged(self, each: ResourceView, where: Expr, order: tuple[OrderBy, ...], *, page: bool) -> Page:
        size = self.slot(SIZE, self.one_of((1, 2, 3, 4, 7, 20, 100)))
        backward = page and self.chance(3)
        after = self.cursor(each, where, order) if self.chance(4) else None
        before = self.cursor(each, where, order) if page and self.chance(4) else None
        skips = not backward and self.chance(5)
        offset = self.slot(OFFSET, self.one_of((0, 1, 2, 5, 10_000))) if skips else None
        return Page(size, backward, after, before, offset)

    def cursor(self, each: ResourceView, where: Expr, order: tuple[OrderBy, ...]) -> Slot | None:
        """A cursor of a row of this list; now and then of one that has left it since."""
        oracle = self.world.oracle
        rows = oracle.listed(Read(each.resource.name, "list", (), where), self.canonical)
        if not rows or self.chance(8):
            rows = oracle.listed(Read(each.resource.name, "list", ()), ())
        return self.slot(CURSOR, oracle.keys(order, self.one_of(rows))) if rows else None

    # filters

    def where(self, each: ResourceView, depth: int) -> Expr:
        return and_(*(self.term(each, depth) for _ in range(self.count(2) + (depth == 0))))

    def term(self, each: ResourceView, depth: int) -> Expr:
        self.terms_left -= 1
        deep = depth < 3 and self.terms_left > 0
        match self.one_of(_TERMS) if deep else "field":
            case "and":
                return and_(*(self.where(each, depth + 1) for _ in range(self.count(2))))
            case "or":
                return or_(*(self.where(each, depth + 1) for _ in range(self.count(3))))
            case "not":
                return not_(self.where(each, depth + 1))
            case "related" if each.relations:
                return self.related(self.one_of(list(each.relations.values())), depth)
        return self.compare(each, self.one_of(list(each.fields.values())).field)

    def related(self, way: RelationView, depth: int) -> Expr:
        name = way.relation.name
        inner = self.where(self.world.view.resources[way.relation.target], depth + 1)
        if way.relation.kind == "one":
            return Has(name, inner)
        match self.one_of(("some", "none", "every")):
            case "some":
                return Has(name, inner)
            case "none":
                return not_(Has(name, inner))
        return not_(Has(name, not_(inner)))

    def compare(self, each: ResourceView, field: FieldDef) -> Expr:
        column, scalar = Col((field.name,)), field.scalar
        op = self.one_of(scalar.ops)
        if op == "isNull":
            return IsNull(column) if self.chance(2) else not_(IsNull(column))
        if takes_list(op):
            raw = [self.value(each.resource, field, op) for _ in range(self.count(3))]
            value = self.slot(scalar, raw, many=True)
        else:
            value = self.slot(scalar, self.value(each.resource, field, op))
        comparison = Compare(op_of(op), column, value)
        return not_(comparison) if OPERATORS[op].negates else comparison

    def value(self, resource: ResourceDef, field: FieldDef, op: str) -> Any:
        """A raw value to compare a field with."""
        if field.scalar in IDS:
            target = resource.relations[field.relation].target if field.relation else resource.name
            return self.one_of(self.world.ids(self.world.model.resources[target]))
        value = self.one_of(self.world.pool(resource, field))
        if op in SEARCHES and op != "ieq":
            start = 0 if op.lower().endswith("startswith") else self.count(min(len(value), 3))
            value = value[start:] if op.lower().endswith("endswith") else value[start : start + self.count(3)]
        if op in FOLDED and self.chance(2):
            value = self.one_of([value.upper(), value.lower(), value.translate(_ACCENTS)])
        if self.chance(2):
            value = self.one_of(list(beside(field.scalar, value)))
        if op in SEARCHES:
            value = value[-MAX_SEARCHED:]
        return wire(field.scalar, value)


class Dice(Drawer):
    """Draws by a seeded Random: what is drawn is not made smaller when it fails, and is drawn much faster."""

    def __init__(self, random: Random, world: World) -> None:
        super().__init__(lambda strategy: None, world)
        self.random = random

    def one_of(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def count(self, most: int) -> int:
        return self.random.randint(0, most)

    def some(self, choices: Sequence[T]) -> list[T]:
        return self.random.sample(choices, self.random.randint(1, len(choices)))


_ACCENTS = str.maketrans("aeiou", "áèîõü")
_TERMS = ("field", "field", "field", "and", "or", "not", "related", "related")


def beside(scalar: Scalar, value: Any) -> Iterator[Any]:
    """The value, and canonical values right beside it."""
    yield value
    if scalar is STRING:
        yield from (value + "a", value[1:], value[:-1], value.swapcase(), value + "\U0010ffff")
    elif scalar is BOOLEAN:
        yield not value
    elif scalar.choices:
        yield from scalar.choices
    elif scalar is FLOAT:
        near = (math.nextafter(value, math.inf), math.nextafter(value, -math.inf), -value)
        yield from filter(math.isfinite, near)
    elif scalar in (INT, BIGINT) or scalar.python is Decimal:
        step = Decimal(1).scaleb(-_scale(scalar)) if scalar.python is Decimal else 1
        yield from filter(lambda each: _fits(scalar, each), (value + step, value - step, -value))
    elif scalar is DATE:
        yield from _dates(value)
    elif scalar is DATETIME:
        yield from _moments(value)


def _scale(scalar: Scalar) -> int:
    """The fraction digits of Decimal(p,s)."""
    return int(scalar.name[:-1].split(",")[1])


def _fits(scalar: Scalar, value: Any) -> bool:
    try:
        return bool(scalar.parse(wire(scalar, value)) == value)
    except ValueError:
        return False


def _dates(text: str) -> Iterator[str]:
    day = dt.date.fromisoformat(text)
    if day > dt.date.min:
        yield (day - dt.timedelta(days=1)).isoformat()
    if day < dt.date.max:
        yield (day + dt.timedelta(days=1)).isoformat()


def _moments(text: str) -> Iterator[str]:
    moment = dt.datetime.fromisoformat(text[:-1])
    if moment > dt.datetime.min:
        yield (moment - dt.timedelta(microseconds=1)).isoformat(timespec="microseconds") + "Z"
    if moment < dt.datetime.max:
        yield (moment + dt.timedelta(microseconds=1)).isoformat(timespec="microseconds") + "Z"
    yield f"{text[:-1]}+00:00"


# numbering


def _finish(asks: list[tuple[str, Read]], raw: list[Any], rest: bool, resources: Resources) -> Drawn:
    """Number the slots that are left after terms that decide nothing fell away, and make it affordable."""
    numbers = Numbers()
    done = tuple((label, numbers.read(read)) for label, read in asks)
    values = [raw[index] for index in numbers.order]
    if price_of([read for _, read in done], resources)(values) > MAX_PRICE:
        values = [
            min(value, 2) if slot.scalar is SIZE else value for slot, value in zip(numbers.slots, values, strict=True)
        ]
    return Drawn(done, tuple(numbers.slots), tuple(values), rest)


def _finish_watch(label: str, watch: Watch, raw: list[Any], rest: bool, resources: Resources) -> DrawnWatch:
    """The same of a Watch."""
    numbers = Numbers()
    done = numbers.watch(watch)
    values = [raw[index] for index in numbers.order]
    cost, _ = cost_of_watch(done, resources)
    if (
        cost.price([1 if slot.scalar is CURSOR else value for slot, value in zip(numbers.slots, values, strict=True)])
        > WATCH_PRICE
    ):
        values = [1 if slot.scalar is SIZE else value for slot, value in zip(numbers.slots, values, strict=True)]
    return DrawnWatch(label, done, tuple(numbers.slots), tuple(values), rest)


class Numbers:
    """Deals out the numbers of slots again, in the order of the translators, beginning with `first`."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.order: list[int] = []
        self.slots: list[Slot] = []

    def slot(self, slot: Slot) -> Slot:
        self.order.append(slot.index)
        self.slots.append(replace(slot, index=self.first + len(self.slots)))
        return self.slots[-1]

    def watch(self, watch: Watch) -> Watch:
        where = self.where(watch.where)
        parts = tuple(replace(part, pick=tuple(map(self.inner, part.pick))) for part in watch.parts)
        kinds = watch.kinds and self.slot(watch.kinds)
        return replace(watch, where=where, parts=parts, kinds=kinds, after=watch.after and self.slot(watch.after))

    def read(self, read: Read) -> Read:
        where = self.where(read.where)
        page = read.page and self.page(read.page)
        return replace(read, where=where, page=page, pick=tuple(map(self.pick, read.pick)))

    def page(self, page: Page) -> Page:
        size = self.slot(page.size)
        after = page.after and self.slot(page.after)
        before = page.before and self.slot(page.before)
        return Page(size, page.backward, after, before, page.offset and self.slot(page.offset))

    def where(self, expr: Expr) -> Expr:
        def leaf(part: Expr) -> Expr | None:
            if isinstance(part, Has):
                return Has(part.relation, self.where(part.where))
            return self.slot(part) if isinstance(part, Slot) else None

        return rewrite(expr, leaf)

    def pick(self, pick: Pick | ConnectionPart) -> Pick | ConnectionPart:
        match pick:
            case Follow(read=read):
                return replace(pick, read=self.read(read))
            case Nodes(label, inner):
                return Nodes(label, tuple(map(self.inner, inner)))
            case Edges(label, parts):
                return Edges(label, tuple(map(self.edge, parts)))
        return pick

    def edge(self, part: EdgePart) -> EdgePart:
        return replace(part, pick=tuple(map(self.inner, part.pick)))

    def inner(self, pick: Pick) -> Pick:
        return replace(pick, read=self.read(pick.read)) if isinstance(pick, Follow) else pick
