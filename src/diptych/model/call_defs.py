"""The definitions of actions, queries and schedules: functions of the model file, which clients call or a clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct

from diptych.model.declare.every import Timetable
from diptych.model.declare.resource import Resource
from diptych.model.deprecation import Deprecation
from diptych.model.scalars import Scalar


class ArgumentDef(Struct, frozen=True, eq=False):
    """An argument of an action or a query. An absent one has its default (a canonical value) or null."""

    name: str
    attr: str
    scalar: Scalar
    nullable: bool = False
    required: bool = False
    default: Any = None
    constraints: tuple[object, ...] = ()
    deprecated: Deprecation | None = None


class ResultDef(Struct, frozen=True, eq=False):
    """The result of an action or a query.

    one:    a row of `resource`
    list:   rows of `resource`
    scalar: a value of the type `scalar`
    none:   nothing
    """

    kind: Literal["one", "list", "scalar", "none"]
    resource: str = ""
    scalar: Scalar | None = None
    nullable: bool = False


class JobOptions(Struct, frozen=True):
    """How a job runs: how often it is tried, for how long, after which exceptions again, and what it returns."""

    attempts: int
    timeout: float | None
    """Seconds; None is that of the settings."""
    retry: tuple[type[Exception], ...]
    returns: ResultDef


class ScheduleDef(Struct, frozen=True, eq=False):
    """A function of the model file that runs by the clock: `await function(class, tx)`."""

    name: str
    """`Order.expire`."""
    cls: type[Resource]
    function: Callable[..., Awaitable[None]]
    when: Timetable
    roles: tuple[str, ...]
    background: JobOptions


class CallDef(Struct, frozen=True, eq=False, kw_only=True):
    """A function of the model file that clients call: `await function(row or class, tx, **arguments)`."""

    name: str
    attr: str
    segment: str
    """Its path segment: `/posts/<id>/publish`, `/posts/import-feed`."""
    root: str
    """Its root field: `publishPost`, `importFeedPosts`."""
    on: Literal["row", "class"]
    arguments: tuple[ArgumentDef, ...]
    result: ResultDef
    role: str | None
    """The role that may call it; None is everyone."""
    description: str
    function: Callable[..., Awaitable[Any]]
    weight: int
    """What a call adds to the price of a request."""
    public: int = 0
    """The max-age in seconds of a query's answer to anonymous viewers; 0 is never cached."""
    deprecated: Deprecation | None = None
    """Its own deprecation, or that of its resource."""
    background: JobOptions | None = None
    """How it runs, if a call is only queued; `result` is the job then."""


class ActionDef(CallDef, frozen=True, eq=False, kw_only=True):
    """A write implemented by the model, on one row or on the class."""


class QueryDef(CallDef, frozen=True, eq=False, kw_only=True):
    """A read implemented by the model, always on the class."""
