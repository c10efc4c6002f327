"""The Ask: a request as data, independent of the API style that it came from and of the database that answers it.

An Ask is a frozen tree: equal asks hash equal, so an Ask is the key of the plan cache. It holds no values: a
Slot marks where the n-th value goes, and the values are passed beside it. These two are the same Ask:

    { post(id: "…") { title author { name } } }              GET /posts/…?fields=title,author(name)

    Read("Post", "one", pick=(Field("title", "title"),
                              Follow("author", "author", Read("User", "one", pick=(Field("name", "name"),)))),
         where=Compare("eq", Col(("id",)), Slot(0, ID)))

A Read takes one row, a list of rows, or a page: a list with pagination. A page picks its parts (Nodes, Edges, PageInfo,
Total); one row and a list pick fields. `policy` rewrites an Ask before it is compiled: the rules of the viewer are
added to every `where`, and a field or relation that shows on some rows only gets a `rule`.

A Read of "groups" takes groups of rows, and a "summary" takes all rows as one: their Cells show keys and measures.
These two are the same Ask:

    { ordersSummary { count total { sum } } }                GET /orders/summary?fields=count,total(sum)

    Read("Order", "summary", (Cell("count", Measure("count")),
                              Cells("total", (Cell("sum", Measure("sum", Col(("total",)))),))))

A Write changes one row and returns what it picks of it. These two are the same Ask:

    mutation { updatePost(id: "…", patch: {title: "…"}) { title } }      PATCH /posts/…?fields=title   {"title": "…"}

    Write("update", "Post", Slot(0, ID), (Assign("title", Slot(1, STRING)),), pick=(Field("title", "title"),))

A Watch follows the changes of a resource and reports the parts that it names. These two are the same Ask:

    subscription { postChanged(where: …) { eventId cursor … post { title } } }     GET /posts/changes?fields=title&…

    Watch("Post", (…, ChangePart("row", "post", (Field("title", "title"),))), where=…)
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from diptych.model.rules.expr import TRUE, Expr, GroupKey, Slot


class MemberPick(Struct, frozen=True):
    """A member of a value object; `label` is its key in the answer."""

    name: str
    label: str


class Field(Struct, frozen=True):
    """A field of the row; `label` is its key in the answer. `inside` are members of a value object; None is all."""

    name: str
    label: str
    rule: Expr = TRUE
    inside: tuple[MemberPick | TypeName, ...] | None = None


class TypeName(Struct, frozen=True):
    """The name of the type, for `__typename` in GraphQL."""

    label: str
    type: str


class Follow(Struct, frozen=True):
    """Follow a relation and read its rows."""

    relation: str
    label: str
    read: Read
    rule: Expr = TRUE
    link: Expr = TRUE


class Nodes(Struct, frozen=True):
    """The rows of a page."""

    label: str
    pick: tuple[Pick, ...]


class Edges(Struct, frozen=True):
    """The rows of a page, each with its cursor: `cursor`, `node` and `__typename` in the requested order."""

    label: str
    parts: tuple[EdgePart, ...]


class EdgePart(Struct, frozen=True):
    kind: Literal["cursor", "node", "__typename"]
    label: str
    pick: tuple[Pick, ...] = ()


InfoKind = Literal["hasNextPage", "hasPreviousPage", "startCursor", "endCursor", "__typename"]


class PageInfo(Struct, frozen=True):
    """The pagination info of a page: (kind, label) in the requested order."""

    label: str
    parts: tuple[tuple[InfoKind, str], ...]


class Total(Struct, frozen=True):
    """The number of rows on all pages."""

    label: str


class GroupValue(Struct, frozen=True):
    """A key or a measure of a group; `label` is its key in the answer."""

    label: str
    of: Expr


class GroupObject(Struct, frozen=True):
    """Several of them, as an object: `total { sum avg }`."""

    label: str
    parts: tuple[GroupValue | GroupObject | TypeName, ...]


Pick = Field | TypeName | Follow | GroupValue | GroupObject
ConnectionPart = Nodes | Edges | PageInfo | Total | TypeName


class OrderBy(Struct, frozen=True):
    """One sort key; nulls come last in both directions."""

    by: Expr
    descending: bool = False

    def __repr__(self) -> str:
        """Part of the key that signs cursors: another text would invalidate those that clients have."""
        return f"Order(by={self.by!r}, descending={self.descending!r})"


class Page(Struct, frozen=True):
    """Pagination of a list: the first `size` rows, or the last if `backward`, between two cursors or from an offset.

    With `ids`, the rows that have these, one place for each; `size` is their number.
    """

    size: Slot
    backward: bool = False
    after: Slot | None = None
    before: Slot | None = None
    offset: Slot | None = None
    ids: Slot | None = None


class Groups(Struct, frozen=True):
    """How rows are grouped: by which keys, which groups (`having`), and whether they are a page, not a list."""

    by: tuple[GroupKey, ...]
    having: Expr = TRUE
    paged: bool = False


class Read(Struct, frozen=True):
    """Read one row, a list, a page, a row for each id, or numbers of rows.

    `pick` holds Picks of rows or groups, or Parts of a page. The `order` of groups is by their keys and measures. With
    `deleted`, of the rows in the trash alone.
    """

    resource: str
    take: Literal["one", "list", "page", "each", "summary", "groups"]
    pick: tuple[Pick | ConnectionPart, ...]
    where: Expr = TRUE
    order: tuple[OrderBy, ...] = ()
    page: Page | None = None
    deleted: bool = False
    groups: Groups | None = None


class Assign(Struct, frozen=True):
    """A field and its new value from the client; None is null. With `merge`, JSON is merged into the stored value."""

    name: str
    value: Slot | None
    merge: bool = False


class Within(Struct, frozen=True):
    """The row is one of a to-many relation of another row, as the viewer sees it: else there is no such row."""

    resource: str
    relation: str
    id: Slot


class RowSet(Struct, frozen=True):
    """The rows that a Write changes instead of one: all that match `where`, if there are at most `most`.

    With a value of `dry` that is true, nothing is changed in the end.
    """

    where: Expr
    most: Slot
    dry: Slot | None = None


class BulkPart(Struct, frozen=True):
    """A part of the answer to a change of many rows."""

    what: Literal["matched", "changed", "dryRun"]
    label: str


WriteVerb = Literal["create", "update", "replace", "delete", "upsert", "restore", "purge"]


class Write(Struct, frozen=True):
    """Create, update, replace, delete or restore the row with this `id`. The values are in the order of the model's
    fields.

    An update changes the fields in `values`; a replacement resets the others too. A deletion moves the row to the trash
    where there is one, and "purge" deletes it from there for good. `version` is the version that the
    row must have, or a list that must contain it. An empty `pick` returns nothing. In a nested write, `within` says
    that the row belongs to the row around it.

    An upsert updates the row that has the same values of `key`, or keeps it; if there is none, it creates one with
    this `id`. These two are the same Ask:

        mutation { upsertUser(by: email, input: {…}) { id } }      POST /users?by=email&fields=id   {…}
    """

    verb: WriteVerb
    resource: str
    id: Slot
    values: tuple[Assign, ...] = ()
    version: Slot | None = None
    pick: tuple[Pick, ...] = ()
    key: str = ""
    """The unique key by which an upsert finds its row: `email`, `teamId_userId`. For a creation, the key that no row
    may have before."""
    keep: bool = False
    """Does an upsert leave a row that it finds as it is?"""
    within: Within | None = None
    rows: RowSet | None = None
    """The rows of an update or a deletion of many; `id` has no value then, and `parts` is what it answers."""
    parts: tuple[BulkPart | Nodes | TypeName, ...] = ()


class Call(Struct, frozen=True):
    """Run an action or a query of the model's own code, on one row or on the class, and pick from its result."""

    resource: str
    name: str
    id: Slot | None = None
    values: tuple[Assign, ...] = ()
    pick: tuple[Pick, ...] = ()


ChangeWhat = Literal["eventId", "cursor", "kind", "rowId", "at", "row", "__typename"]


class ChangePart(Struct, frozen=True):
    """A part of a reported change; `pick` is what a "row" part shows of the row."""

    what: ChangeWhat
    label: str
    pick: tuple[Pick, ...] = ()


class Watch(Struct, frozen=True):
    """Follow the changes of the rows that match `where`, optionally only of some kinds and after a cursor."""

    resource: str
    parts: tuple[ChangePart, ...]
    where: Expr = TRUE
    kinds: Slot | None = None
    after: Slot | None = None

    @property
    def rows(self) -> tuple[Read, ...]:
        """The Reads of the parts that show the row."""
        return tuple(Read(self.resource, "one", part.pick) for part in self.parts if part.what == "row")


Ask = Read | Write | Call | Watch
"""Any request, as data."""
