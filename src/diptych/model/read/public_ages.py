"""Checks `public=` and `Public(…)`: for how many seconds shared caches may keep an answer.

    class Post(Resource, public=60)                     answers with posts may be cached for a minute
    views: Annotated[int, Public(5)]                    those that depend on this field, for five seconds
    stock: Annotated[int, Public(0)]                    those that depend on this field, never

A resource allows caching; a field can only shorten the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from diptych.model.defs import FieldDef
from diptych.model.naming import NameFault

LONGEST_AGE = 31_536_000
"""A year, which caches treat as forever."""
_NO_TIME = "is no time of whole seconds, up to a year"


def seconds_of(age: object) -> int | None:
    """An age in whole seconds; None if it is not valid."""
    if isinstance(age, timedelta):
        age = None if age.microseconds else age.days * 86_400 + age.seconds
    return age if type(age) is int and 0 <= age <= LONGEST_AGE else None


def public_fault(age: object) -> NameFault | None:
    """The fault of the `public` of a resource or a query; None if it is valid or absent."""
    if age is None or seconds_of(age):
        return None
    if seconds_of(age) == 0:
        return "public=0 is not public", "Remove it"
    return f"public={age!r} {_NO_TIME}", "Write public=60, or public=timedelta(minutes=1)"


def field_fault(age: object) -> NameFault | None:
    """The fault of the age of a field, and the end of its fix; None if it is valid."""
    return None if seconds_of(age) is not None else (_NO_TIME, ", in seconds; 0 is never")


def idle_ages(public: int, name: str, fields: Iterable[FieldDef]) -> Iterator[tuple[str, NameFault]]:
    """The fields whose age has no effect, since that of their resource is shorter."""
    for field in fields:
        attr = field.attr.removesuffix("_id") if field.relation else field.attr
        if field.public and not public:
            fix = f"Write class {name}(Resource, public={field.public}), or remove it"
            yield attr, (f"anyone may keep it, but {name} is not public", fix)
        elif field.public and field.public > public:
            yield attr, (f"anyone may keep it for longer than {name}", f"Write at most {public}, or remove it")
