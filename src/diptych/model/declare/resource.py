"""Resource classes and the functions that declare their fields, relations and rules.

Declarations are only recorded here; `model/read/build.py` interprets all of them when the Model is built. The
signatures are chosen so that mypy and pyright check model files strictly without a plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, dataclass_transform

from msgspec import Struct

from diptych.model.declare import rows
from diptych.model.declare.audited import Audited
from diptych.model.declare.declared import Auto, FromViewer, Inverse, Now, Through
from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.keys import DeclaredKey
from diptych.model.declare.markers import Id
from diptych.model.declare.roles import Role
from diptych.model.declare.search import Search

Verb = Literal["read", "create", "update", "delete"]
VERBS: tuple[Verb, ...] = ("read", "create", "update", "delete")
GrantVerb = Verb | Literal["export"]
"""A verb of a grant: `export` is reading a whole list at once, as CSV or NDJSON."""
Rule = TypeVar("Rule", bound=Callable[[Any, Any], bool])


class VerbGrant(Struct, frozen=True):
    """Verbs allowed on every row, for a role or for anyone."""

    verbs: tuple[GrantVerb, ...]
    to: Role | None


class Allowance(Struct, frozen=True):
    """The arguments of one `@allow` on a rule."""

    verbs: tuple[Verb, ...]
    to: Role | None
    fields: tuple[str, ...]
    actions: tuple[str, ...] = ()


def auto(*, init: Literal[False] = False) -> Any:
    """Declare a field that the server sets."""
    return Auto()


def now() -> datetime:
    """The current time: in a rule or a computed field, or as the default of a `datetime` when the row is created."""
    return cast(datetime, Now("now"))


def today() -> date:
    """The current day in UTC: in a rule or a computed field, or as the default of a `date` when the row is created."""
    return cast(date, Now("today"))


def from_viewer(name: str = "") -> Any:
    """The default of a relation or an id: who creates the row. `from_viewer("tenant")` is that field of the viewer."""
    return FromViewer(name)


def inverse(field: str, *, init: Literal[False] = False) -> Any:
    """To many: `posts: list[Post] = inverse("author")` are the posts whose `author` is this row."""
    return Inverse(field)


def through(link: str, mine: str, theirs: str, *, init: Literal[False] = False) -> Any:
    """Many to many: `tags: list[Tag] = through("PostTag", "post", "tag")`."""
    return Through(link, mine, theirs)


def grant(*verbs: GrantVerb, to: Role | None = None) -> VerbGrant:
    """Allow verbs on every row: `access = (grant("read"), grant("create", to=admin))`.

    `grant("export", to=staff)` lets a role read all rows that it may read at once, as CSV or NDJSON.
    """
    return VerbGrant(verbs, to)


def allow(
    *verbs: Verb, to: Role | None = None, field: str | tuple[str, ...] = (), action: str | tuple[str, ...] = ()
) -> Callable[[Rule], Rule]:
    """Allow verbs on the rows that match the decorated rule; with `field`, reading or writing that field; with
    `action`, calling that action of the class.

    The rule is traced once into an expression that runs inside the database. Rules of one verb are combined by "or"; a
    rule may have several `@allow`.
    """
    fields, actions = ((names,) if isinstance(names, str) else tuple(names) for names in (field, action))

    def note(rule: Rule) -> Rule:
        rule.__dict__["__allow__"] = (*allowances(rule), Allowance(verbs, to, fields, actions))
        return rule

    bare: Any = verbs[0] if verbs else None
    if callable(bare):  # `@allow` without its parentheses: a rule without verbs, which the builder reports
        return cast("Callable[[Rule], Rule]", allow()(bare))
    return note


def allowances(rule: object) -> tuple[Allowance, ...]:
    """The Allowances of a rule; empty for other members of a class."""
    noted: tuple[Allowance, ...] = getattr(rule, "__dict__", {}).get("__allow__", ())
    return noted


@dataclass_transform(kw_only_default=True, field_specifiers=(auto, inverse, through))
class Resource:
    """The base class of resources, with the fields `id`, `version`, `created_at` and `updated_at`.

    `class Person(Resource, plural="people")` sets the plural; `ids="integer"` uses integer ids, and with `ids="client"`
    clients may make the UUIDs of new rows; with `public=60`, shared caches may keep answers to anonymous viewers for
    that number of seconds. With `trash=timedelta(days=30)`, a deleted row can be restored for that time (soft delete),
    and has a field `deletedAt`. `table="person"` names the table. With `managed=False` the table exists, and Diptych
    never changes it: `key="person_id"` names its primary key, and `ids="text"` or `ids="number"` says that clients give
    the key; with `triggers=True`, Diptych puts triggers on it by which its changes can be followed;
    `view="people_by_age"` is a view, which is read only. With `deprecated=deprecated(…)`, all that is served of it is
    deprecated; `renamed_from="Note"` is its name before, for the next migration. With `audit=Audited(…)`, its changes
    are kept with who made them. Subclasses inherit `ids` alone.
    """

    id: Id = auto()
    version: int = auto()
    created_at: datetime = auto()
    updated_at: datetime = auto()

    access: ClassVar[tuple[VerbGrant, ...]] = ()
    keys: ClassVar[tuple[DeclaredKey, ...]] = ()
    search: ClassVar[Search | None] = None
    __diptych__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(
        cls,
        plural: str = "",
        ids: Literal["uuid", "integer", "client", "text", "number"] | None = None,
        public: int | timedelta | None = None,
        trash: timedelta | None = None,
        table: str = "",
        view: str = "",
        key: str | tuple[str, ...] = "",
        managed: bool = True,
        triggers: bool = False,
        deprecated: DeprecatedMark | None = None,
        renamed_from: str = "",
        audit: Audited | None = None,
    ) -> None:
        super().__init_subclass__()
        ids = ids or cls.__diptych__.get("ids", "uuid")
        cls.__diptych__ = {
            **{"plural": plural, "ids": ids, "public": public, "trash": trash},
            **{"table": table, "view": view, "key": key, "managed": managed},
            "triggers": triggers,
            "deprecated": deprecated,
            "renamed_from": renamed_from,
            "audit": audit,
        }

    if not TYPE_CHECKING:  # type checkers know the fields of each class better, by dataclass_transform
        __init__ = rows.start_row
        __getattribute__ = rows.read
        __setattr__ = rows.assign
        __repr__ = rows.describe_row
