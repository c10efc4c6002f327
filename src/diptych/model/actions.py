"""`@action` and `@query`: functions of a model file that clients call.

    @action(to=editor)                          publishPost(id:)       POST /posts/<id>/publish
    async def publish(self, tx: Tx) -> Post:

    @action                                     importFeedPosts(url:)  POST /posts/import-feed
    @classmethod
    async def import_feed(cls, tx: Tx, url: str) -> list[Post]:

    @query                                      topPosts(limit:)       GET /posts/top?limit=…
    @classmethod
    async def top(cls, tx: Tx, limit: int = 10) -> list[Post]:

To Python they stay what they are: methods that can be called. What is noted on them is read when the Model is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Concatenate, Literal, TypeVar, overload

from diptych.model.roles import Role
from diptych.model.tx import Tx

Call = TypeVar("Call", bound=Callable[Concatenate[Any, Tx, ...], Coroutine[Any, Any, Any]])
Kind = Literal["action", "query"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What `@action` or `@query` noted on a member of a class."""

    kind: Kind
    to: Role | None
    weight: int | None = None
    public: int | timedelta | None = None


@overload
def action(member: Call, /) -> Call: ...
@overload
def action(*, to: Role | None = None, weight: int | None = None) -> Callable[[Call], Call]: ...
def action(member: Any = None, /, *, to: Role | None = None, weight: int | None = None) -> Any:
    """A write of the model's own, on one row or, above `@classmethod`, on the class; for anyone, or for a role.

    `weight` is what a call adds to the price of a request, besides its answer.
    """
    return _offer(member, Offer("action", to, weight))


@overload
def query(member: Call, /) -> Call: ...
@overload
def query(
    *, to: Role | None = None, weight: int | None = None, public: int | timedelta | None = None
) -> Callable[[Call], Call]: ...
def query(
    member: Any = None, /, *, to: Role | None = None, weight: int | None = None, public: int | timedelta | None = None
) -> Any:
    """A read of the model's own, above `@classmethod`; for anyone, or for a role. `weight` is as of an action.

    With `public`, anyone may keep what an anonymous viewer is given, for so many seconds.
    """
    return _offer(member, Offer("query", to, weight, public))


def _offer(member: Any, offer: Offer) -> Any:
    def note(member: Any) -> Any:
        if not hasattr(member, "__dict__"):
            raise TypeError(f"@{offer.kind} stands above a function, and this is {member!r}")
        member.__dict__["__offer__"] = (*vars(member).get("__offer__", ()), offer)
        return member

    return note if member is None else note(member)


def offers(member: object) -> tuple[Offer, ...]:
    """What `@action` and `@query` noted on a member of a class, above `@classmethod` or below."""
    noted: dict[Offer, None] = {}
    for each in (member, getattr(member, "__func__", None)):
        noted.update(dict.fromkeys(getattr(each, "__dict__", {}).get("__offer__", ())))
    return tuple(noted)
