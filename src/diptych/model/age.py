"""For how long anyone may keep an answer: what `public=` and `Public(…)` say, as whole seconds.

    class Post(Resource, public=60)                     answers made of posts may be kept for a minute
    views: Annotated[int, Public(5)]                    those that depend on this, for five seconds
    stock: Annotated[int, Public(0)]                    those that depend on this, never

What is said of a resource allows; what is said of a field can only take back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from diptych.model.defs import FieldDef
from diptych.model.naming import Fault

MOST = 31_536_000
"""A year: what caches take for always."""
_NO_TIME = "is no time of whole seconds, up to a year"


def seconds_of(age: object) -> int | None:
    """The seconds that an age means; None if it is none."""
    if isinstance(age, timedelta):
        age = None if age.microseconds else age.days * 86_400 + age.seconds
    return age if type(age) is int and 0 <= age <= MOST else None


def public_fault(age: object) -> Fault | None:
    """What is wrong with the `public` of a resource or a query. None says that it is not."""
    if age is None or seconds_of(age):
        return None
    if seconds_of(age) == 0:
        return "public=0 is not public", "Remove it"
    return f"public={age!r} {_NO_TIME}", "Write public=60, or public=timedelta(minutes=1)"


def field_fault(age: object) -> Fault | None:
    """What is wrong with the age of a field, and what else could be written than an age."""
    return None if seconds_of(age) is not None else (_NO_TIME, ", in seconds; 0 is never")


def idle_ages(public: int, name: str, fields: Iterable[FieldDef]) -> Iterator[tuple[str, Fault]]:
    """The fields whose age means nothing, since their resource does not allow as much."""
    for each in fields:
        attr = each.attr.removesuffix("_id") if each.relation else each.attr
        if each.public and not public:
            fix = f"Write class {name}(Resource, public={each.public}), or remove it"
            yield attr, (f"anyone may keep it, but {name} is not public", fix)
        elif each.public and each.public > public:
            yield attr, (f"anyone may keep it for longer than {name}", f"Write at most {public}, or remove it")
