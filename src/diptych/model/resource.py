"""The words of a model file: `Resource`, its fields, relations and rules.

Nothing is understood here: a declaration is only kept, and `model/build.py` reads all of them when the Model
is made. The signatures are shaped so that mypy and pyright check model files strictly without a plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, dataclass_transform

from diptych.model import rows
from diptych.model.declared import Auto, Inverse, Now, Through
from diptych.model.markers import Id
from diptych.model.roles import Role

Verb = Literal["read", "create", "update", "delete"]
VERBS: tuple[Verb, ...] = ("read", "create", "update", "delete")
Rule = TypeVar("Rule", bound=Callable[[Any, Any], bool])


@dataclass(frozen=True, slots=True)
class Grant:
    """Verbs allowed on every row, to a role or to anyone."""

    verbs: tuple[Verb, ...]
    to: Role | None


@dataclass(frozen=True, slots=True)
class Allowance:
    """What `@allow` noted on a rule."""

    verbs: tuple[Verb, ...]
    to: Role | None
    fields: tuple[str, ...]
    actions: tuple[str, ...] = ()


def auto(*, init: Literal[False] = False) -> Any:
    """A field that the server fills."""
    return Auto()


def now() -> Any:
    """The default of a `datetime`: the moment at which the row is made."""
    return Now("now")


def today() -> Any:
    """The default of a `date`: the day on which the row is made, in UTC."""
    return Now("today")


def inverse(field: str, *, init: Literal[False] = False) -> Any:
    """To many: `posts: list[Post] = inverse("author")` are the posts whose `author` is this row."""
    return Inverse(field)


def through(link: str, mine: str, theirs: str, *, init: Literal[False] = False) -> Any:
    """Many to many: `tags: list[Tag] = through("PostTag", "post", "tag")`."""
    return Through(link, mine, theirs)


def grant(*verbs: Verb, to: Role | None = None) -> Grant:
    """Allow verbs on every row: `access = (grant("read"), grant("create", to=admin))`."""
    return Grant(verbs, to)


def allow(
    *verbs: Verb, to: Role | None = None, field: str | tuple[str, ...] = (), action: str | tuple[str, ...] = ()
) -> Callable[[Rule], Rule]:
    """Allow verbs on the rows for which the rule below holds; with `field`, reading or writing that field; with
    `action`, calling that action of the class.

    The rule is traced once into an expression that runs inside the database. Rules of one verb are joined by
    or; a rule may carry several `@allow`.
    """
    fields, actions = ((each,) if isinstance(each, str) else tuple(each) for each in (field, action))

    def note(rule: Rule) -> Rule:
        rule.__dict__["__allow__"] = (*allowances(rule), Allowance(verbs, to, fields, actions))
        return rule

    bare: Any = verbs[0] if verbs else None
    if callable(bare):  # `@allow` without its parentheses: a rule without verbs, which the builder tells
        return cast("Callable[[Rule], Rule]", allow()(bare))
    return note


def allowances(rule: object) -> tuple[Allowance, ...]:
    """What `@allow` noted on a member of a class."""
    noted: tuple[Allowance, ...] = getattr(rule, "__dict__", {}).get("__allow__", ())
    return noted


@dataclass_transform(kw_only_default=True, field_specifiers=(auto, inverse, through))
class Resource:
    """The base of every resource. It brings `id`, `version`, `created_at` and `updated_at`.

    `class Person(Resource, plural="people")` gives the plural; `ids="integer"` takes integers as ids; with `public=60`,
    anyone may keep, for so many seconds, what an anonymous viewer is told. A subclass says so itself, or is not public.
    """

    id: Id = auto()
    version: int = auto()
    created_at: datetime = auto()
    updated_at: datetime = auto()

    access: ClassVar[tuple[Grant, ...]] = ()
    __diptych__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(
        cls, plural: str = "", ids: Literal["uuid", "integer"] | None = None, public: int | timedelta | None = None
    ) -> None:
        super().__init_subclass__()
        cls.__diptych__ = {"plural": plural, "ids": ids or cls.__diptych__.get("ids", "uuid"), "public": public}

    if not TYPE_CHECKING:  # type checkers know the fields of each class better, by dataclass_transform
        __init__ = rows.start
        __getattribute__ = rows.read
        __setattr__ = rows.assign
        __repr__ = rows.show
