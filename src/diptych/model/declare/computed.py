"""`@computed`: a read-only field, computed from others in SQL or in Python.

@computed                                   traced: becomes SQL
def teaser(self) -> str:
    return self.body[:200]

@computed(needs="body")                     plain Python, after the statement
def minutes(self) -> int:
    return len(self.body.split()) // 200 + 1

@computed(weight=5)                         each object that shows it costs 5 more
def digest(self) -> str:
    return self.body[:200] + self.author.name

@computed(needs="body", batch=True)         the same for all rows of a request at once
@staticmethod
def minutes(posts: Sequence[Post]) -> Sequence[int]:
    return [len(post.body.split()) // 200 + 1 for post in posts]
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, Never, NoReturn, TypeVar, cast, overload

T = TypeVar("T")
Age = int | timedelta


class Computed(Generic[T]):
    """A read-only field. Without `needs` it is traced into SQL; with `needs` it runs in Python."""

    def __init__(
        self, member: Any, needs: object = None, batch: bool = False, weight: object = None, public: object = None
    ) -> None:
        self.member = member
        self.function: Callable[..., Any] = getattr(member, "__func__", member)
        self.needs = (needs,) if isinstance(needs, str) else needs
        self.batch = batch
        self.weight = weight
        self.public = public
        self.name = ""
        self.__doc__ = self.function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"

    @overload
    def __get__(self, row: None, owner: type) -> Computed[T]: ...
    @overload
    def __get__(self, row: object, owner: type) -> T: ...
    def __get__(self, row: object | None, owner: type) -> Computed[T] | T:
        return self if row is None else self._value(row)

    def __set__(self, row: object, value: Never) -> NoReturn:
        raise AttributeError("a computed field is read-only")

    def _value(self, row: object) -> T:
        """The value of one row in Python. (Values that the database computed are in the row's own dict.)"""
        if self.needs is None:
            raise AttributeError(f"{self.name} is computed by the database: it is known of a row as it was loaded")
        if inspect.iscoroutinefunction(self.function):
            raise AttributeError(f"{self.name} is computed later, for all rows of a request: it is known in answers")
        return cast(T, self.function([row])[0] if self.batch else self.function(row))


@overload
def computed(function: Callable[[Any], T], /) -> Computed[T]: ...
@overload
def computed(
    *, weight: int | None = None, public: Age | None = None
) -> Callable[[Callable[[Any], T]], Computed[T]]: ...
@overload
def computed(
    *, needs: str | tuple[str, ...], weight: int | None = None, public: Age | None = None
) -> Callable[[Callable[[Any], T]], Computed[T]]: ...
@overload
def computed(
    *, needs: str | tuple[str, ...], batch: Literal[True], weight: int | None = None, public: Age | None = None
) -> Callable[[Callable[[Sequence[Any]], Sequence[T] | Awaitable[Sequence[T]]]], Computed[T]]: ...
def computed(
    function: Any = None,
    /,
    *,
    needs: Any = None,
    batch: bool = False,
    weight: int | None = None,
    public: Age | None = None,
) -> Any:
    """Declare a read-only field. It is traced into SQL, or, with `needs`, run in Python on a row that has those fields.

    With `batch` it is a static method that takes all rows of a request and returns a value for each. `weight` is what
    selecting it adds to the price of an object; `public` is its max-age in seconds for shared caches, if less than that
    of its resource and of the fields that it is computed from.
    """
    if function is not None:
        return Computed(function)
    return lambda member: Computed(member, needs, batch, weight, public)
