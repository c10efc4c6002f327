"""Can we afford it: depth and price of an Ask, before any SQL.

Depth: a root field is 1, every relation below it one more; a relation in `where` counts; plain fields and the
parts of a page do not. Price: the most objects that can be returned. One object is 1; a list is its page size
times what one row costs; a page the dearer of its nodes and its edges; `totalCount` 20, a relation in `where`
10. The price depends on page sizes, which are values; so an Ask is priced once into a formula over its slots,
and a plan that is kept is priced in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.ask.nodes import Edges, Follow, Nodes, Part, Pick, Read, Total
from diptych.ask.walk import reads
from diptych.errors import Code, Refusal
from diptych.model.expr import And, Compare, Expr, Has, IsNull, Mask, Not, Or

TOTAL_PRICE = 20
HOP_PRICE = 10

Values = Sequence[Any]
Price = Callable[[Values], int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may cost."""

    depth: int = 10
    complexity: int = 5_000
    page: int = 100
    offset: int = 10_000
    in_list: int = 250
    filter_terms: int = 50
    sort_keys: int = 5


def check_shape(asks: Iterable[Read], limits: Limits) -> None:
    """Refuse what is too deep, or filters and sorts too much, whatever its values are."""
    asks = tuple(asks)
    deep = max(map(depth, asks), default=0)
    if deep > limits.depth:
        raise Refusal(Code.TOO_DEEP, f"The request is {deep} levels deep; {limits.depth} are allowed.")
    for read in reads(asks):
        terms = filter_terms(read.where)
        if terms > limits.filter_terms:
            raise Refusal(
                Code.TOO_COMPLEX, f"A filter has {terms} comparisons; {limits.filter_terms} are allowed."
            )
        if len(read.order) > limits.sort_keys:
            raise Refusal(Code.TOO_COMPLEX, f"A sort has {len(read.order)} keys; {limits.sort_keys} are allowed.")


def check_price(price: int, limits: Limits) -> None:
    """Refuse what is too dear."""
    if price > limits.complexity:
        raise Refusal(
            Code.TOO_COMPLEX, f"The request could return {price} objects; {limits.complexity} are allowed."
        )


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


def hops(expr: Expr) -> int:
    """How many relations a filter follows."""
    return isinstance(expr, Has) + sum(map(hops, _parts(expr)))


def filter_terms(expr: Expr) -> int:
    """How many comparisons a filter makes."""
    return isinstance(expr, Compare | IsNull) + sum(map(filter_terms, _parts(expr)))


def price_of(asks: Iterable[Read]) -> Price:
    """The formula of the price of a request."""
    return _sum(0, [_price(read) for read in asks])


def _price(read: Read) -> Price:
    where = HOP_PRICE * hops(read.where)
    if read.take == "one":
        return _sum(1 + where, _inside(read.pick))
    assert read.page is not None
    size = read.page.size.index
    if read.take == "list":
        return _times(size, where, [_sum(1, _inside(read.pick))])
    totals = sum(isinstance(part, Total) for part in read.pick)
    return _times(size, where + TOTAL_PRICE * totals, [_nodes(read.pick), _edges(read.pick)])


def _nodes(parts: Iterable[Pick | Part]) -> Price:
    """What one row of a page costs among its nodes; those under several aliases add up."""
    return _sum(0, [_sum(1, _inside(part.pick)) for part in parts if isinstance(part, Nodes)])


def _edges(parts: Iterable[Pick | Part]) -> Price:
    """What one row of a page costs among its edges; an edge without a node is an object too."""
    rows: list[Price] = []
    for part in parts:
        if isinstance(part, Edges):
            nodes = [_sum(1, _inside(each.pick)) for each in part.parts if each.kind == "node"]
            rows.extend(nodes or [_sum(1, [])])
    return _sum(0, rows)


def _inside(parts: Iterable[Pick | Part]) -> list[Price]:
    return [_price(part.read) for part in parts if isinstance(part, Follow)]


def _sum(constant: int, parts: list[Price]) -> Price:
    if not parts:
        return lambda values: constant
    return lambda values: constant + sum(part(values) for part in parts)


def _times(size: int, constant: int, rows: list[Price]) -> Price:
    return lambda values: constant + int(values[size]) * max(row(values) for row in rows)
