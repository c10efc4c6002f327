"""Can we afford it: depth and price of an Ask, before any SQL.

Depth: a root field is 1, every relation below it one more; a relation in `where` counts; plain fields and the
parts of a page do not. Price: the most objects that can be returned. One object is 1; a list is its page size
times what one row costs; a page counts the larger of its nodes and its edges; `totalCount` 20, a relation in `where`
10; and fields and relations have the weights that the model gives them. The price depends on page sizes, which are
values; so an Ask is priced once into a formula over its slots, and a plan that is kept is priced in a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from diptych.ask.nodes import Edges, Field, Follow, Nodes, PageInfo, Part, Pick, Read, Total, Watch, Write
from diptych.model.defs import ResourceDef
from diptych.model.expr import And, Col, Compare, Expr, Has, IsNull, Mask, Not, Or

TOTAL_PRICE = 20
HOP_PRICE = 10

Values = Sequence[Any]
Resources = Mapping[str, ResourceDef]


def depth(read: Read) -> int:
    """How many levels of objects an Ask has."""
    return 1 + max(where_depth(read.where), *map(_depth_of, read.pick), 0)


def _depth_of(part: Pick | Part) -> int:
    match part:
        case Follow(read=read):
            return depth(read)
        case Nodes(pick=pick):
            return max(map(_depth_of, pick), default=0)
        case Edges(parts=parts):
            return max((_depth_of(pick) for edge in parts for pick in edge.pick), default=0)
    return 0


def _parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case And(of) | Or(of):
            return of
        case Not(of) | IsNull(of) | Mask(of=of):
            return (of,)
        case Has(where=where):
            return (where,)
    return ()


def where_depth(expr: Expr) -> int:
    """How many relations deep a filter reaches."""
    return isinstance(expr, Has) + max(map(where_depth, _parts(expr)), default=0)


def filter_terms(expr: Expr) -> int:
    """How many comparisons a filter makes."""
    return isinstance(expr, Compare | IsNull) + sum(map(filter_terms, _parts(expr)))


class Price:
    """The formula of a price: what there is once, and for each list how many rows there can be, times what one costs.

        { user(id: …) { posts(first: $n) { comments(first: 5) { author { name } } } } }

        1 + n × (1 + 5 × 2):   constant 1,   steps (0, slot of n, 1), (1, slot of 5, 2)

    A step is a list: the number of the one that it stands in (0 is none), the slot of its page size, and what a row
    costs without the lists in it. The lists of a request stand in a row, outer before inner, so that it is evaluated
    in one go.
    """

    __slots__ = ("constant", "names", "steps")

    def __init__(self, constant: int, steps: tuple[tuple[int, int, int], ...], names: Sequence[str] = ()) -> None:
        self.constant = constant
        self.steps = steps
        self.names = tuple(names)
        """What each list is called, for people."""

    def __call__(self, values: Values) -> int:
        total = self.constant
        if self.steps:
            counts = [1]
            for outer, slot, each in self.steps:
                counts.append(count := counts[outer] * values[slot])
                total += count * each
        return total

    def told(self, values: Values) -> str:
        """The formula in words: `1 + 10 posts × (1 + 5 comments × 2)`."""
        return " + ".join(self._sum(0, self.constant, values)) or "0"

    def _sum(self, at: int, constant: int, values: Values) -> list[str]:
        parts = [str(constant)] if constant else []
        for number, (outer, slot, each) in enumerate(self.steps, 1):
            if outer == at:
                inside = self._sum(number, each, values)
                row = f"({' + '.join(inside)})" if len(inside) > 1 else "".join(inside) or "0"
                parts.append(f"{values[slot]} {self.names[number - 1]} × {row}")
        return parts


class Cost(NamedTuple):
    """What a request costs, whatever its values are: how deep it is, and the formula of its price."""

    depth: int
    price: Price


def cost_of(asks: Sequence[Read], resources: Resources, constant: int = 0) -> Cost:
    """The cost of a request, and of something constant besides."""
    return Cost(max(map(depth, asks), default=0), price_of(asks, resources, constant))


def cost_of_write(write: Write, resources: Resources) -> Cost:
    """The cost of a change, and of its answer."""
    answer = (Read(write.resource, "one", write.pick),) if write.pick else ()
    return Cost(max(map(depth, answer), default=1), price_of(answer, resources, constant=1))


def cost_of_watch(watch: Watch, resources: Resources) -> tuple[Cost, int]:
    """The cost of a change that is told, and what it costs to find those that are. One that shows no row is an object
    all the same."""
    rows = watch.rows
    found = Read(watch.resource, "one", (), watch.where)
    price = price_of(rows, resources, 0 if rows else 1)
    return Cost(max(map(depth, (found, *rows))), price), filter_price(watch.where, resources[watch.resource], resources)


def price_of(asks: Iterable[Read], resources: Resources, constant: int = 0) -> Price:
    """The formula of the price of a request, and of something constant besides."""
    pricer = _Pricer(resources, constant)
    for read in asks:
        pricer.read(read, 0, "")
    return Price(pricer.costs[0], tuple(pricer.steps()), pricer.names)


def filter_price(where: Expr, resource: ResourceDef, resources: Resources) -> int:
    """What a filter costs: the relations that it follows, and the weights of what it looks at."""
    match where:
        case Col(path):
            return resource.fields[path[-1]].weight
        case Compare(left=left):
            return filter_price(left, resource, resources)
        case Has(relation, inner):
            way = resource.relations[relation]
            return HOP_PRICE + way.weight + filter_price(inner, resources[way.target], resources)
    return sum(filter_price(part, resource, resources) for part in _parts(where))


class _Pricer:
    """Walks through Asks once, and notes what each list costs."""

    def __init__(self, resources: Resources, constant: int) -> None:
        self.resources = resources
        self.costs = [constant]
        """What there is once, and then what a row of each list costs, without the lists in it."""
        self.places: list[tuple[int, int]] = []
        """In which list each stands, and the slot of its page size."""
        self.names: list[str] = []

    def steps(self) -> Iterator[tuple[int, int, int]]:
        for (outer, slot), each in zip(self.places, self.costs[1:], strict=True):
            yield outer, slot, each

    def read(self, read: Read, at: int, name: str) -> None:
        """A Read that stands in a row of the list `at`."""
        resource = self.resources[read.resource]
        self.costs[at] += filter_price(read.where, resource, self.resources)
        self.costs[at] += sum(filter_price(key.by, resource, self.resources) for key in read.order)
        if read.page is None:
            self.costs[at] += 1
            self._picks(read.pick, resource, at)
            return
        rows, totals = _rows(read)
        self.costs[at] += TOTAL_PRICE * totals
        if not rows:  # its type, or its number of rows: an object all the same
            self.costs[at] += not totals
            return
        self.places.append((at, read.page.size.index))
        self.costs.append(rows)
        self.names.append(name or resource.many)
        self._picks(read.pick, resource, len(self.places))

    def _picks(self, parts: Iterable[Pick | Part], resource: ResourceDef, at: int) -> None:
        for part in parts:
            match part:
                case Field(name):
                    self.costs[at] += resource.fields[name].weight
                case Follow(relation, label, read):
                    self.costs[at] += resource.relations[relation].weight
                    self.read(read, at, label)
                case Nodes(pick=pick):
                    self._picks(pick, resource, at)
                case Edges(parts=edges):
                    for edge in edges:
                        self._picks(edge.pick, resource, at)


def _rows(read: Read) -> tuple[int, int]:
    """How often a row of a list stands in the answer, and how often the number of all rows does.

    A row that stands among the nodes and the edges of a page is counted once: what is larger holds. What leads on
    from a page shows no row, but has to find them.
    """
    if read.take == "list":
        return 1, 0
    nodes = edges = leads = totals = 0
    for part in read.pick:
        match part:
            case Nodes():
                nodes += 1
            case Edges(parts=parts):
                edges += max(1, sum(each.kind == "node" for each in parts))
            case PageInfo():
                leads = 1
            case Total():
                totals += 1
    return max(nodes, edges, leads), totals
