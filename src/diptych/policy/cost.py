"""Cost analysis: the depth and the price of an Ask, computed before any SQL runs.

Depth: a root field is 1, every relation below it one more; a relation in `where` counts; plain fields and the parts of
a page do not. Price: the most objects that can be returned. One object is 1; a list is its page size times the price of
one row; a page counts the larger of its nodes and its edges; `totalCount` is 20, a relation in `where` or in a sort 10,
and a number of its rows 20 more; a summary is 20 and 5 for each measure, groups are as much and their page size. Fields
and relations have the weights of the model. The price depends on page sizes, which are values; so an Ask is priced once
into a formula over its slots, and evaluating it for a cached plan takes a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from diptych.ask.nodes import (
    ConnectionPart,
    Edges,
    Field,
    Follow,
    Nodes,
    PageInfo,
    Pick,
    Read,
    Total,
    Watch,
    Write,
)
from diptych.ask.page_hint import PagedList, PageHint, page_hint
from diptych.ask.slots import SlotValues
from diptych.ask.walk import group_values, picks
from diptych.model.defs import ResourceDef, Resources
from diptych.model.rules.expr import (
    TRUE,
    And,
    Col,
    Compare,
    Expr,
    GroupKey,
    Has,
    IsNull,
    Mask,
    Matches,
    Measure,
    Not,
    Or,
    Part,
    Via,
)

TOTAL_PRICE = 20
HOP_PRICE = 10
MEASURE_PRICE = 5
SEARCH_PRICE = 20


def depth(read: Read) -> int:
    """The number of levels of objects in a Read."""
    deepest = 0 if read.where is TRUE else where_depth(read.where)
    for key in read.order:
        if not isinstance(key.by, Col):
            deepest = max(deepest, where_depth(key.by))
    for pick in picks(read.pick):
        if isinstance(pick, Follow):
            deepest = max(deepest, depth(pick.read))
    return 1 + deepest


def _parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case And(of) | Or(of):
            return of
        case Not(of) | IsNull(of) | Mask(of=of) | Part(of):
            return (of,)
        case Has(where=where):
            return (where,)
        case Compare(left=left):
            return () if isinstance(left, Col) else (left,)
        case Via(of=of) | GroupKey(of) | Measure(of=of):
            return (of,)
    return ()


def where_depth(expr: Expr) -> int:
    """The number of nested relations in a filter."""
    follows = isinstance(expr, Has | Via) or (isinstance(expr, Measure) and expr.relation != "")
    return follows + max(map(where_depth, _parts(expr)), default=0)


def filter_terms(expr: Expr) -> int:
    """The number of comparisons in a filter."""
    return isinstance(expr, Compare | IsNull | Matches) + sum(map(filter_terms, _parts(expr)))


class Price:
    """The formula of a price: a constant, and for each list the number of its rows times the price of one.

        { user(id: …) { posts(first: $n) { comments(first: 5) { author { name } } } } }

        1 + n × (1 + 5 × 2):   constant 1,   steps (0, slot of n, 1), (1, slot of 5, 2)

    A step is a list: the number of the list around it (0 is none), the slot of its page size, and the price of a row
    without its nested lists. Outer lists come before inner ones, so that the formula is evaluated in one pass.
    """

    __slots__ = ("constant", "names", "steps")

    def __init__(self, constant: int, steps: tuple[tuple[int, int, int], ...], names: Sequence[str] = ()) -> None:
        self.constant = constant
        self.steps = steps
        self.names = tuple(names)
        """The names of the lists, for `describe` and `hint`."""

    def __call__(self, values: SlotValues) -> int:
        steps = self.steps
        if not steps:
            return self.constant
        if len(steps) == 1:  # most requests for a list
            _, slot, row_price = steps[0]
            rows: int = values[slot]
            return self.constant + rows * row_price
        total, counts = self.constant, [1]
        for outer, slot, row_price in steps:
            counts.append(count := counts[outer] * values[slot])
            total += count * row_price
        return total

    def describe(self, values: SlotValues) -> str:
        """The formula as text: `1 + 10 posts × (1 + 5 comments × 2)`."""
        return " + ".join(self._sum(0, self.constant, values)) or "0"

    def hint(self, values: SlotValues, allowed: int) -> PageHint | None:
        """The page that would have to be smaller for a price of at most `allowed`."""
        lists = [
            PagedList(outer, values[slot], row_price, name)
            for (outer, slot, row_price), name in zip(self.steps, self.names, strict=True)
        ]
        return page_hint(self.constant, lists, allowed)

    def _sum(self, at: int, constant: int, values: SlotValues) -> list[str]:
        parts = [str(constant)] if constant else []
        for number, (outer, slot, row_price) in enumerate(self.steps, 1):
            if outer == at:
                inside = self._sum(number, row_price, values)
                row = f"({' + '.join(inside)})" if len(inside) > 1 else "".join(inside) or "0"
                parts.append(f"{values[slot]} {self.names[number - 1]} × {row}")
        return parts


class Cost(NamedTuple):
    """The cost of a request, independent of its values: its depth, and the formula of its price."""

    depth: int
    price: Price


def cost_of(asks: Sequence[Read], resources: Resources, constant: int = 0) -> Cost:
    """The cost of a request, plus a constant."""
    return Cost(max(map(depth, asks), default=0), price_of(asks, resources, constant))


def cost_of_bulk(write: Write, resources: Resources) -> Cost:
    """The cost of a change of many rows: for each row that it may reach, the change and what is shown of it."""
    rows = write.rows
    assert rows is not None
    shown = [Read(write.resource, "one", part.pick) for part in write.parts if isinstance(part, Nodes)]
    filtered = Read(write.resource, "one", (), rows.where)
    pricer = _Pricer(resources, filter_price(rows.where, resources[write.resource], resources))
    pricer.lists.append((0, rows.most.index))
    pricer.costs.append(1)
    pricer.names.append(resources[write.resource].many)
    for read in shown:
        pricer.read(read, 1, "")
    price = Price(pricer.costs[0], tuple(pricer.steps()), pricer.names)
    return Cost(max(map(depth, (filtered, *shown))), price)


def cost_of_write(write: Write, resources: Resources, levels: int = 1) -> Cost:
    """The cost of a write and its answer; `levels` are those of the nested write that it is the head of."""
    if write.rows is not None:
        return cost_of_bulk(write, resources)
    answer = (Read(write.resource, "one", write.pick),) if write.pick else ()
    statements = 2 if write.verb == "upsert" else 1
    return Cost(max(levels, *map(depth, answer), 1), price_of(answer, resources, constant=statements))


def cost_of_watch(watch: Watch, resources: Resources) -> tuple[Cost, int]:
    """The cost of one reported change (at least one object), and the price of filtering the feed for it."""
    rows = watch.rows
    filtered = Read(watch.resource, "one", (), watch.where)
    price = price_of(rows, resources, 0 if rows else 1)
    search = filter_price(watch.where, resources[watch.resource], resources)
    return Cost(max(map(depth, (filtered, *rows))), price), search


def price_of(asks: Iterable[Read], resources: Resources, constant: int = 0) -> Price:
    """The price formula of a request, plus a constant."""
    pricer = _Pricer(resources, constant)
    for read in asks:
        pricer.read(read, 0, "")
    return Price(pricer.costs[0], tuple(pricer.steps()), pricer.names)


def filter_price(where: Expr, resource: ResourceDef, resources: Resources) -> int:
    """The price of a filter: the relations that it follows, and the weights of the fields that it reads."""
    match where:
        case Col(path):
            return resource.fields[path[-1]].weight
        case Compare(left=left):
            return filter_price(left, resource, resources)
        case Matches(of):
            return SEARCH_PRICE + sum(filter_price(part, resource, resources) for part in of)
        case Has(relation, inner):
            way = resource.relations[relation]
            return HOP_PRICE + way.weight + filter_price(inner, resources[way.target], resources)
        case Via(relation, inner):
            way = resource.relations[relation]
            return HOP_PRICE + way.weight + filter_price(inner, resources[way.target], resources)
        case Measure(of=inner, relation=relation) if relation:
            way = resource.relations[relation]
            return HOP_PRICE + TOTAL_PRICE + way.weight + filter_price(inner, resources[way.target], resources)
    return sum(filter_price(part, resource, resources) for part in _parts(where))


class _Pricer:
    """Walks through Asks once and collects the price of each list."""

    def __init__(self, resources: Resources, constant: int) -> None:
        self.resources = resources
        self.costs = [constant]
        """The constant, then the price of a row of each list without its nested lists."""
        self.lists: list[tuple[int, int]] = []
        """For each list: the number of the list around it, and the slot of its page size."""
        self.names: list[str] = []

    def steps(self) -> Iterator[tuple[int, int, int]]:
        for (outer, slot), row_price in zip(self.lists, self.costs[1:], strict=True):
            yield outer, slot, row_price

    def read(self, read: Read, at: int, name: str) -> None:
        """Add a Read that is nested in the rows of the list `at`."""
        resource = self.resources[read.resource]
        if read.where is not TRUE:
            self.costs[at] += filter_price(read.where, resource, self.resources)
        for key in read.order:
            self.costs[at] += filter_price(key.by, resource, self.resources)
        if read.take in ("summary", "groups"):
            self._aggregate(read, resource, at, name)
            return
        if read.page is None:
            self.costs[at] += 1
            self._picks(read.pick, resource, at)
            return
        rows, totals = _rows(read)
        self.costs[at] += TOTAL_PRICE * totals
        if not rows:  # only `__typename` or `totalCount`: still one object
            self.costs[at] += not totals
            return
        self.lists.append((at, read.page.size.index))
        self.costs.append(rows)
        self.names.append(name or resource.many)
        self._picks(read.pick, resource, len(self.lists))

    def _aggregate(self, read: Read, resource: ResourceDef, at: int, name: str) -> None:
        """The price of a summary or of groups: does not depend on how many rows they are of."""
        shown = group_values(read.pick)
        self.costs[at] += TOTAL_PRICE + MEASURE_PRICE * sum(isinstance(cell.of, Measure) for cell in shown)
        self.costs[at] += sum(filter_price(cell.of, resource, self.resources) for cell in shown)
        if read.page is None or read.groups is None:
            return
        exprs = (read.groups.having, *read.groups.by)
        self.costs[at] += sum(filter_price(expr, resource, self.resources) for expr in exprs)
        self.costs[at] += TOTAL_PRICE * sum(isinstance(part, Total) for part in read.pick)
        self.lists.append((at, read.page.size.index))
        self.costs.append(1)
        self.names.append(name or resource.many + "Groups")

    def _picks(self, parts: Iterable[Pick | ConnectionPart], resource: ResourceDef, at: int) -> None:
        for part in picks(parts):
            match part:
                case Field(name):
                    field = resource.fields[name]
                    self.costs[at] += field.weight + (field.scalar.members is not None)  # a value object is an object
                case Follow(relation, label, read):
                    self.costs[at] += resource.relations[relation].weight
                    self.read(read, at, label)


def _rows(read: Read) -> tuple[int, int]:
    """How many times each row of a list is in the answer, and how many times the total count is.

    A row in both the nodes and the edges of a page is counted once: the larger number counts. `pageInfo` shows no row,
    but the database has to find them.
    """
    if read.take in ("list", "each"):
        return 1, 0
    nodes = edges = infos = totals = 0
    for part in read.pick:
        match part:
            case Nodes():
                nodes += 1
            case Edges(parts=parts):
                edges += max(1, sum(edge.kind == "node" for edge in parts))
            case PageInfo():
                infos = 1
            case Total():
                totals += 1
    return max(nodes, edges, infos), totals
