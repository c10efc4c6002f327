"""The size of a request in numbers (RequestMeasures), and the limits on them (Limits).

RequestMeasures are filled step by step while a request is parsed and translated: first what its text shows, then its
selections, then the depth and filters of its Asks, and last its price. What is not known yet is 0. After each step the
checks run (`policy/limits.py`), so that a request over a limit is refused before the next, more expensive step.
"""

from __future__ import annotations

import copy
from typing import Literal, Protocol

from msgspec import Struct, field

from diptych.ask.page_hint import PageHint
from diptych.errors import Code, Refusal
from diptych.model.declare.roles import Viewer

Style = Literal["graphql", "rest"]


class Limits(Struct, frozen=True):
    """The limits on a request."""

    depth: int = 10
    complexity: int = 5_000
    aliases: int = 30
    roots: int = 20
    directives: int = 50
    selections: int = 100
    definitions: int = 100
    expanded: int = 1_000
    described: int = 4_000
    listed: int = 300
    tokens: int = 2_000
    string: int = 4_096
    document: int = 102_400
    nesting: int = 64
    values: int = 10_000
    filter_terms: int = 50
    sort_keys: int = 5
    page: int = 100
    offset: int = 10_000
    in_list: int = 250
    writes: int = 100
    group_keys: int = 5
    numbers: int = 50
    bulk: int = 1_000


class RequestMeasures(Struct, eq=False):
    """The measures of a request, as far as they are known."""

    style: Style
    viewer: Viewer
    operation: str = ""
    """The name of the operation; in the resource style, the method and the kind of path: `GET /users/{id}`."""
    resources: frozenset[str] = field(default_factory=frozenset)
    """The names of all resources that are read, written or watched, also through relations."""
    document: int = 0
    """Bytes of the document."""
    tokens: int = 0
    string: int = 0
    """Bytes of the longest string, number or name in the document."""
    nesting: int = 0
    """How deep brackets are nested, in the document with its fragments expanded, or in `fields`."""
    aliases: int = 0
    roots: int = 0
    """Root fields."""
    directives: int = 0
    selections: int = 0
    """The most fields in one selection, arguments of one field, or variables."""
    definitions: int = 0
    """Operations and fragments."""
    expanded: int = 0
    """Selections of all operations with every fragment expanded at each spread."""
    described: int = 0
    """Introspection selections among them; a selection inside a list counts four times."""
    listed: int = 0
    """Items of the longest list in the document."""
    values: int = 0
    """Values in all variables together."""
    depth: int = 0
    """Levels of relations."""
    filter_terms: int = 0
    """Comparisons in the longest filter."""
    sort_keys: int = 0
    least: int = 0
    """A lower bound of its price, computed from its text."""
    price: int = 0
    """The most objects that can be returned, plus the weights of the model. It is known last."""
    hint: PageHint | None = None
    """If the price is over its limit: the page that would have to be smaller."""

    def of(self, viewer: Viewer) -> RequestMeasures:
        """A copy of these measures for another viewer."""
        same = copy.copy(self)
        same.viewer = viewer
        return same


class Checking(Protocol):
    """Runs the checks on the measures of a request; raises a Refusal if one is over its limit."""

    limits: Limits

    def __call__(self, measures: RequestMeasures) -> RequestMeasures: ...


def too_many_writes(rows: int, limits: Limits) -> Refusal:
    """The Refusal of a request that writes too many rows."""
    cause = f"The request writes {rows} rows or more; {limits.writes} are allowed."
    return Refusal(Code.TOO_COMPLEX, cause, more={"rows": rows, "allowed": limits.writes})


def too_many_levels(depth: int, limits: Limits) -> Refusal:
    """The Refusal of a request that is too deep."""
    cause = f"The request is {depth} levels deep; {limits.depth} are allowed."
    return Refusal(Code.TOO_DEEP, cause, more={"depth": depth, "allowed": limits.depth})
