"""The definitions of a model (resources, fields, relations, rules, actions, queries) that every later stage reads.

A ResourceDef has fields (values) and relations (to other resources), both by their name on the wire. A to-one relation
`author` has an entry in both: the relation `author`, and the field `authorId` with the foreign-key column. Its actions
and queries are functions of the model file that clients call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

from msgspec import Struct, field

from diptych.model.audit_def import AuditDef
from diptych.model.call_defs import ActionDef, CallDef, QueryDef
from diptych.model.declare.job_resource import JobResource
from diptych.model.declare.markers import Move
from diptych.model.declare.resource import GrantVerb, Resource
from diptych.model.deprecation import Deprecation
from diptych.model.naming import kebab
from diptych.model.rules.expr import TRUE, Col, Const, Expr, IsNull, Moment, ViewerId, ViewerValue
from diptych.model.scalars import JsonText, Scalar

SERVER_FIELDS = ("id", "version", "createdAt", "updatedAt")
"""The fields that every resource has and the server sets."""
NATURAL = ("text", "number")
"""The kinds of ids that are natural keys: clients give them."""
DELETED_AT = "deletedAt"
"""The field of resources with a trash: when the row was deleted; null if it was not."""
PRESENT = IsNull(Col((DELETED_AT,)))
"""The condition that a row with a trash is not deleted."""


class RuleDef(Struct, frozen=True, eq=False):
    """A rule: the verbs and actions allowed on rows that match `expr`, or on named fields, for a role or anyone."""

    name: str
    verbs: tuple[GrantVerb, ...]
    role: str | None
    fields: tuple[str, ...]
    expr: Expr
    actions: tuple[str, ...] = ()


class FieldDef(Struct, frozen=True, eq=False):
    """A field of a resource."""

    name: str
    attr: str
    column: str
    scalar: Scalar
    nullable: bool = False
    """May the stored value be null?"""
    hideable: bool = False
    """May a rule hide it from someone? Then it is nullable on the wire for all."""
    default: Any = None
    generated: Literal["", "now", "today", "viewer"] = ""
    """The generated default of a new row: the current time or date, or a value of who creates it."""
    ahead: timedelta = timedelta()
    """How much later than the current time or date it is."""
    of_viewer: ViewerId | ViewerValue | None = None
    """That value of the viewer. A viewer without it has to send one, unless the field is nullable."""
    counts: str | None = None
    """For a counter: the field within which it counts, or "" for all rows."""
    required: bool = False
    unique: bool = False
    indexed: bool = False
    """Does its column have an index? The key of a relation always has one."""
    constraints: tuple[object, ...] = ()
    read_roles: tuple[str, ...] | None = None
    write_roles: tuple[str, ...] | None = None
    moves: tuple[Move, ...] = ()
    computed: Expr | None = None
    """The expression by which the database computes it."""
    python: Callable[..., Any] | None = None
    """The Python function that computes it: from one row, or, if `batch`, from all rows of a request."""
    batch: bool = False
    needs: tuple[str, ...] = ()
    """The fields, by their names on the wire, that `python` reads."""
    relation: str = ""
    """The to-one relation whose key this is."""
    weight: int = 0
    """What selecting it adds to the price of an object."""
    public: int | None = None
    """The max-age in seconds of answers that depend on it, if less than that of the resource."""
    example: Any = None
    """The canonical value that documents show, if the model gives one."""
    description: str = ""
    deprecated: Deprecation | None = None

    renamed_from: str = ""
    """The attribute that it was before, if the model says so."""

    marks_deleted: bool = False
    """Is it `deletedAt` of a resource with a trash?"""
    cast: str = ""
    """The type of the column, where PostgreSQL does not convert text to it by itself."""

    @property
    def stored(self) -> bool:
        """Is it a column of the table, not computed?"""
        return self.column != ""

    @property
    def is_server_set(self) -> bool:
        """Does the server set it, and no client?"""
        return self.name in SERVER_FIELDS or self.counts is not None or self.marks_deleted

    @property
    def filled(self) -> bool:
        """Does the database have the default too, for rows that others insert and that are there?"""
        return self.default is not None or (self.generated in ("now", "today") and not self.ahead)

    @property
    def default_value(self) -> Const:
        """The default, or null, as a constant. Expressions are hashed, so JSON is text here."""
        if self.scalar.is_json and self.scalar.to_sqlite is not None and self.default is not None:
            return Const(JsonText(self.scalar.to_sqlite(self.default)), self.scalar)
        return Const(self.default, self.scalar)

    @property
    def fresh_value(self) -> Const | Moment | ViewerId | ViewerValue:
        """The value of a new row for which the client sends none."""
        if self.of_viewer is not None:
            return self.of_viewer
        return Moment(self.scalar, self.ahead) if self.generated else self.default_value


class RelationDef(Struct, frozen=True, eq=False):
    """A relation from one resource to another.

    one:     this row's `column` holds the other's id
    many:    the other row's `column` holds this row's id
    through: a row of `link` holds this row's id in `column` and the other's in `other_column`

    Where the key that a row refers to has several columns, the references are `columns` and `other_columns`.
    """

    name: str
    attr: str
    kind: Literal["one", "many", "through"]
    target: str
    column: str
    inverse: str = ""
    """For many: the to-one relation of the target to this resource."""
    link: str = ""
    link_mine: str = ""
    link_theirs: str = ""
    other_column: str = ""
    columns: tuple[str, ...] = ()
    other_columns: tuple[str, ...] = ()
    nullable: bool = False
    hideable: bool = False
    on_delete: Literal["restrict", "cascade", "set null"] = "restrict"
    weight: int = 0
    """What following it adds to the price of a row."""
    description: str = ""
    deprecated: Deprecation | None = None
    """Its own deprecation, or that of its target."""
    past: bool = False
    """Does it lead from a row to its versions, or from a version to the row as it was?"""

    @property
    def refers_by(self) -> tuple[str, ...]:
        """The columns that hold the id: of this row, of the other one, or of the link to this one."""
        return self.columns or (self.column,)

    @property
    def leads_by(self) -> tuple[str, ...]:
        """The columns of the link that hold the id of the other row."""
        return self.other_columns or (self.other_column,)


class KeyDef(Struct, frozen=True, eq=False):
    """A unique key or an index over fields; a partial one covers the rows that match `where`."""

    name: str
    """Its name on the wire: `teamId_userId`."""
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    unique: bool
    where: Expr = TRUE


class CheckDef(Struct, frozen=True, eq=False):
    """A condition on the row alone that every write must leave true."""

    name: str
    message: str
    """The error message for a client if it does not hold."""
    expr: Expr
    fields: tuple[str, ...]
    """The stored fields that it depends on."""


class ResourceDef(Struct, frozen=True, eq=False):
    """`OrderLine`: table `order_lines`, path `/order-lines`, root fields `orderLine` and `orderLines`."""

    name: str
    cls: type[Resource]
    table: str
    path: str
    one: str
    many: str
    description: str
    fields: Mapping[str, FieldDef]
    relations: Mapping[str, RelationDef]
    rules: tuple[RuleDef, ...] = field(default=())
    actions: Mapping[str, ActionDef] = field(default_factory=dict)
    queries: Mapping[str, QueryDef] = field(default_factory=dict)
    keys: tuple[KeyDef, ...] = ()
    checks: Mapping[str, CheckDef] = field(default_factory=dict)
    search: tuple[str, ...] = ()
    """The fields of its full-text search."""
    public: int = 0
    """The max-age in seconds of answers to anonymous viewers; 0 is never cached."""
    trash: int = 0
    """The time in seconds for which a deleted row can be restored; 0 if it is deleted at once."""
    managed: bool = True
    """Does Diptych make and change its table? If not, the table has no version and no times of its own."""
    is_view: bool = False
    """Is the table a view, which is read only?"""
    key_columns: tuple[str, ...] = ("id",)
    """The columns of the primary key."""
    followed: bool = True
    """Are its changes in the feed?"""
    deprecated: Deprecation | None = None
    audit: AuditDef | None = None
    """What is recorded of its changes; None if nothing is."""
    versions_of: str = ""
    """The resource whose versions its rows are."""

    @property
    def is_job(self) -> bool:
        """Are its rows jobs, which a DELETE cancels?"""
        return issubclass(self.cls, JobResource)

    @property
    def returns_id(self) -> bool:
        """Is the id of a new row known only once the row is there?"""
        return bool(self.cls.__diptych__["ids"] == "integer") or len(self.key_columns) > 1

    @property
    def unfollowed(self) -> str:
        """Why its changes cannot be followed, as a sentence."""
        return f"Changes of {self.path} are not recorded, and cannot be followed."

    @property
    def present(self) -> Expr:
        """The condition that a row is not deleted; TRUE where there is no trash."""
        return PRESENT if self.trash else TRUE

    def offers(self, verb: GrantVerb | Literal["replace", "upsert", "restore", "purge"]) -> bool:
        """Does any rule allow the verb? An upsert also needs a unique key, a restore a trash."""
        if verb == "upsert":
            return bool(self.unique_keys) and self.offers("create")
        if verb in ("restore", "purge"):
            return self.trash > 0 and self.offers("delete")
        verb = "update" if verb == "replace" else verb
        return any(verb in rule.verbs and (not rule.fields or verb == "update") for rule in self.rules)

    @property
    def key(self) -> Scalar:
        """The type of its ids."""
        return self.fields["id"].scalar

    @property
    def counters(self) -> Mapping[str, FieldDef]:
        """Its counters by their names, each with the field within which it counts in `counts`."""
        return {name: field for name, field in self.fields.items() if field.counts is not None}

    @property
    def client_ids(self) -> bool:
        """May clients make the ids of new rows?"""
        return self.cls.__diptych__["ids"] in ("client", *NATURAL) and len(self.key_columns) == 1

    @property
    def needs_id(self) -> bool:
        """Must clients give the id of a new row, which is a natural key?"""
        return self.client_ids and self.cls.__diptych__["ids"] in NATURAL

    @property
    def unique_keys(self) -> Mapping[str, tuple[str, ...]]:
        """The unique keys that cover all rows and whose values a client may give, by name, with their fields."""
        single: dict[str, tuple[str, ...]] = {
            name: (name,) for name, field in self.fields.items() if field.unique and field.stored
        }
        if self.client_ids:
            single = {"id": ("id",), **single}
        if len(self.key_columns) > 1:
            names = {field.column: name for name, field in self.fields.items()}
            parts = tuple(names[column] for column in self.key_columns)
            single["_".join(parts)] = parts
        return single | {key.name: key.fields for key in self.keys if key.unique and key.where == TRUE}

    @property
    def connection(self) -> str:
        """The root field of the list with its page: `orderLinesConnection`."""
        return self.many + "Connection"

    @property
    def groups(self) -> str:
        """The root field of groups of its rows: `orderLinesGroups`."""
        return self.many + "Groups"

    @property
    def summary(self) -> str:
        """The root field of numbers of its rows: `orderLinesSummary`."""
        return self.many + "Summary"

    @property
    def changed(self) -> str:
        """The subscription field of its changes: `orderLineChanged`."""
        return self.one + "Changed"

    def call(self, name: str) -> CallDef:
        """The action or query of this name."""
        return next(call for call in self.calls if call.name == name)

    @property
    def calls(self) -> tuple[CallDef, ...]:
        """The actions and the queries of the resource."""
        return (*self.actions.values(), *self.queries.values())

    @property
    def ways(self) -> Mapping[str, RelationDef]:
        """The relations to current rows: all but the one to the versions of the row."""
        if self.audit is None:
            return self.relations
        return {name: relation for name, relation in self.relations.items() if not relation.past}

    @property
    def collections(self) -> Mapping[str, str]:
        """Its to-many relations by their segment in a path: `/users/<id>/order-lines`."""
        return {kebab(name): name for name, relation in self.relations.items() if relation.kind != "one"}


Resources = Mapping[str, ResourceDef]
"""Resources by name."""
