"""What is asked, in numbers, and how much of it is allowed.

An Asked is filled step by step, while a request is understood: first what its text shows, then its selections, then
what its Asks reach, and last their price. What is not known yet is 0. Whoever fills in more has the checks look at it
(`check/limits.py`), so that whatever is too much is refused as soon as it can be told, before the dearer step that
follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from diptych.model.roles import Viewer

Style = Literal["graphql", "rest"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be asked for."""

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


@dataclass(slots=True, eq=False)
class Asked:
    """A request, as far as it is understood."""

    style: Style
    viewer: Viewer
    operation: str = ""
    """The name of the operation; in the resource style, the method and the kind of path: `GET /users/{id}`."""
    resources: frozenset[str] = field(default_factory=frozenset)
    """The names of all resources that are read, changed, or followed on the way."""
    document: int = 0
    """Bytes of the document."""
    tokens: int = 0
    string: int = 0
    """Bytes of the longest string, number or name in the document."""
    nesting: int = 0
    """How deep brackets stand in each other, in the document with its fragments unfolded, or in `fields`."""
    aliases: int = 0
    roots: int = 0
    """Root fields."""
    directives: int = 0
    selections: int = 0
    """Fields of the widest selection, or arguments of one field, or variables."""
    definitions: int = 0
    """Operations and fragments."""
    expanded: int = 0
    """Selections of all operations, once every fragment is unfolded wherever it is spread."""
    described: int = 0
    """Those of them that ask about the schema; what is asked of each of a list counts four times."""
    listed: int = 0
    """Values of the longest list in the document."""
    values: int = 0
    """Values in all variables together."""
    depth: int = 0
    """Levels of relations."""
    filter_terms: int = 0
    """Comparisons of the longest filter."""
    sort_keys: int = 0
    least: int = 0
    """What it costs at least, as far as its text tells."""
    price: int = 0
    """The most objects that can be returned, with what the model adds by weights. It is known last."""


class Checking(Protocol):
    """Whoever looks at what is asked, and refuses what is too much."""

    limits: Limits

    def __call__(self, asked: Asked) -> Asked: ...
