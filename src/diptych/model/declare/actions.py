"""`@action` and `@query`: functions of a model file that clients can call.

    @action(to=editor)                          publishPost(id:)       POST /posts/<id>/publish
    async def publish(self, tx: Tx) -> Post:

    @action                                     importFeedPosts(url:)  POST /posts/import-feed
    @classmethod
    async def import_feed(cls, tx: Tx, url: str) -> list[Post]:

    @query                                      topPosts(limit:)       GET /posts/top?limit=…
    @classmethod
    async def top(cls, tx: Tx, limit: int = 10) -> list[Post]:

    @action(background=True)                    importAllPosts()       POST /posts/import-all → 202, a job
    @classmethod
    async def import_all(cls, tx: JobTx) -> int:

In Python they remain ordinary methods. The decorators attach an Offer, which is read when the Model is built.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Concatenate, Literal, TypeVar, overload

from msgspec import Struct

from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.job_tx import JobTx
from diptych.model.declare.roles import Role
from diptych.model.declare.tx import Tx

CallFunction = TypeVar("CallFunction", bound=Callable[Concatenate[Any, Tx, ...], Coroutine[Any, Any, Any]])
JobFunction = TypeVar("JobFunction", bound=Callable[Concatenate[Any, JobTx, ...], Coroutine[Any, Any, Any]])
CallKind = Literal["action", "query"]


class InBackground(Struct, frozen=True):
    """The arguments of `@action(background=True)`."""

    attempts: int
    timeout: float | None
    retry: tuple[type[Exception], ...]


class Offer(Struct, frozen=True):
    """The arguments of `@action` or `@query` on a method."""

    kind: CallKind
    to: Role | None
    weight: int | None = None
    public: int | timedelta | None = None
    deprecated: DeprecatedMark | None = None
    background: InBackground | None = None


@overload
def action(member: CallFunction, /) -> CallFunction: ...
@overload
def action(
    *, to: Role | None = None, weight: int | None = None, deprecated: DeprecatedMark | None = None
) -> Callable[[CallFunction], CallFunction]: ...
@overload
def action(
    *,
    background: Literal[True],
    attempts: int = 5,
    timeout: float | None = None,
    retry: tuple[type[Exception], ...] = (),
    to: Role | None = None,
    weight: int | None = None,
    deprecated: DeprecatedMark | None = None,
) -> Callable[[JobFunction], JobFunction]: ...
def action(
    member: Any = None,
    /,
    *,
    background: bool = False,
    attempts: int = 5,
    timeout: float | None = None,
    retry: tuple[type[Exception], ...] = (),
    to: Role | None = None,
    weight: int | None = None,
    deprecated: DeprecatedMark | None = None,
) -> Any:
    """Declare a write of the model's own, on one row or, above `@classmethod`, on the class; for a role or anyone.

    `weight` is what a call adds to the price of a request, besides its result. With `background=True` a call is queued
    and returns a job; the function gets a JobTx, has `timeout` seconds for each of at most `attempts`, and is tried
    again after the exceptions `retry` (and after Retry, a lost connection, or the death of its process).
    """
    queued = InBackground(attempts, timeout, retry) if background else None
    return _offer(member, Offer("action", to, weight, deprecated=deprecated, background=queued))


@overload
def query(member: CallFunction, /) -> CallFunction: ...
@overload
def query(
    *,
    to: Role | None = None,
    weight: int | None = None,
    public: int | timedelta | None = None,
    deprecated: DeprecatedMark | None = None,
) -> Callable[[CallFunction], CallFunction]: ...
def query(
    member: Any = None,
    /,
    *,
    to: Role | None = None,
    weight: int | None = None,
    public: int | timedelta | None = None,
    deprecated: DeprecatedMark | None = None,
) -> Any:
    """Declare a read implemented by the model, above `@classmethod`; `to` a role or anyone, `weight` as for an action.

    `public` is the max-age in seconds for which shared caches may keep answers to anonymous viewers.
    """
    return _offer(member, Offer("query", to, weight, public, deprecated))


def _offer(member: Any, offer: Offer) -> Any:
    def note(member: Any) -> Any:
        if not hasattr(member, "__dict__"):
            raise TypeError(f"@{offer.kind} decorates a function, not {member!r}")
        member.__dict__["__offer__"] = (*vars(member).get("__offer__", ()), offer)
        return member

    return note if member is None else note(member)


_NOTHING: dict[str, tuple[Offer, ...]] = {}


def offers(member: object) -> tuple[Offer, ...]:
    """The Offers on a member of a class, above `@classmethod` or below."""
    own = getattr(member, "__dict__", _NOTHING).get("__offer__", ())
    function = getattr(member, "__func__", None)
    return tuple(dict.fromkeys((*own, *function.__dict__.get("__offer__", ())))) if function is not None else own
