"""The waist: what a client asks for, with no word of how it asked or how the database will answer.

An Ask is a frozen tree: equal asks hash equal, so an Ask is the key of the plan cache. It holds no values: a
Slot marks where the n-th value goes, and the values travel beside it. These two are the same Ask:

    { post(id: "…") { title author { name } } }              GET /posts/…?fields=title,author(name)

    Read("Post", "one", pick=(Field("title", "title"),
                              Follow("author", "author", Read("User", "one", pick=(Field("name", "name"),)))),
         where=Compare("eq", Col(("id",)), Slot(0, ID)))

A Read takes one row, a list of rows, or a page: a list with what leads on from it. A page picks its parts
(Nodes, Edges, PageInfo, Total); one row and a list pick fields. `check` rewrites an Ask before it is compiled:
rules are joined to every `where`, and what depends on the row is put behind a `rule`.

A Write changes one row and answers with what it picks of it. These two are the same Ask:

    mutation { updatePost(id: "…", patch: {title: "…"}) { title } }      PATCH /posts/…?fields=title   {"title": "…"}

    Write("update", "Post", Slot(0, ID), (Assign("title", Slot(1, STRING)),), pick=(Field("title", "title"),))

A Watch follows the changes of a resource, and tells of each what its parts name. These two are the same Ask:

    subscription { postChanged(where: …) { cursor kind id at post { title } } }     GET /posts/changes?fields=title&…

    Watch("Post", (…, ChangePart("row", "post", (Field("title", "title"),))), where=…)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diptych.model.expr import TRUE, Expr, Slot


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the row; `label` is its key in the answer."""

    name: str
    label: str
    rule: Expr = TRUE


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of the type, where a GraphQL client asks for `__typename`."""

    label: str
    type: str


@dataclass(frozen=True, slots=True)
class Follow:
    """Go through a relation and read there."""

    relation: str
    label: str
    read: Read
    rule: Expr = TRUE
    link: Expr = TRUE


@dataclass(frozen=True, slots=True)
class Nodes:
    """The rows of a page."""

    label: str
    pick: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class Edges:
    """The rows of a page, each with its cursor: `cursor`, `node` and `__typename` in the order asked."""

    label: str
    parts: tuple[EdgePart, ...]


@dataclass(frozen=True, slots=True)
class EdgePart:
    kind: Literal["cursor", "node", "__typename"]
    label: str
    pick: tuple[Pick, ...] = ()


InfoKind = Literal["hasNextPage", "hasPreviousPage", "startCursor", "endCursor", "__typename"]


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What leads on from a page: (what, label) in the order asked."""

    label: str
    parts: tuple[tuple[InfoKind, str], ...]


@dataclass(frozen=True, slots=True)
class Total:
    """How many rows there are on all pages."""

    label: str


Pick = Field | TypeName | Follow
Part = Nodes | Edges | PageInfo | Total | TypeName


@dataclass(frozen=True, slots=True)
class Order:
    """One key of a sort; nulls stand last in both directions."""

    by: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of a list: `size` of them from the beginning, or from the end if `backward`."""

    size: Slot
    backward: bool = False
    after: Slot | None = None
    before: Slot | None = None
    offset: Slot | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read one row, a list, or a page. `pick` holds Picks for one row and a list, Parts for a page."""

    resource: str
    take: Literal["one", "list", "page"]
    pick: tuple[Pick | Part, ...]
    where: Expr = TRUE
    order: tuple[Order, ...] = ()
    page: Page | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """A field, and the value that the client gave for it; None is null."""

    name: str
    value: Slot | None


Change = Literal["create", "update", "replace", "delete"]


@dataclass(frozen=True, slots=True)
class Write:
    """Change one row: the one with this `id`, which a new row gets. Its values stand in the order of the model.

    An update changes what was given; a replacement also what was not. `version` is the one that the row must
    have, or several of which it must have one. Nothing is answered if nothing is picked.
    """

    verb: Change
    resource: str
    id: Slot
    values: tuple[Assign, ...] = ()
    version: Slot | None = None
    pick: tuple[Pick, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """Run an action or a query of the model's own code, on one row or on the class, and pick from what it gives."""

    resource: str
    name: str
    id: Slot | None = None
    values: tuple[Assign, ...] = ()
    pick: tuple[Pick, ...] = ()


ChangeWhat = Literal["cursor", "kind", "id", "at", "row", "__typename"]


@dataclass(frozen=True, slots=True)
class ChangePart:
    """A part of what is told of a change; of the row, what is picked of it."""

    what: ChangeWhat
    label: str
    pick: tuple[Pick, ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """Follow the changes of the rows for which `where` holds; of some kinds, and after a cursor, if these are given."""

    resource: str
    parts: tuple[ChangePart, ...]
    where: Expr = TRUE
    kinds: Slot | None = None
    after: Slot | None = None

    @property
    def rows(self) -> tuple[Read, ...]:
        """What is read of the row, for each part that shows it."""
        return tuple(Read(self.resource, "one", part.pick) for part in self.parts if part.what == "row")


Ask = Read | Write | Call | Watch
"""What can be asked."""
