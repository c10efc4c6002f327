"""Reads what runs in the background: the resource of jobs, the options of `@action(background=True)`, and `@every`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from diptych.model.call_defs import JobOptions, ResultDef, ScheduleDef
from diptych.model.declare.actions import InBackground, offers
from diptych.model.declare.declared import evaluate
from diptych.model.declare.every import EXAMPLE, Schedule, Timetable, schedule_of
from diptych.model.declare.job_resource import Job, JobResource
from diptych.model.declare.job_tx import JobTx
from diptych.model.declare.resource import Resource, allowances
from diptych.model.declare.roles import Role
from diptych.model.declare.tx import Tx
from diptych.model.naming import NameFault
from diptych.model.read.members import members_of

MOST_ATTEMPTS = 100
_NONE = ResultDef("none")
_WRITES = frozenset(("create", "update", "delete"))


def with_jobs(classes: tuple[type[Resource], ...]) -> tuple[type[Resource], ...]:
    """The classes of a model, with the resource of jobs if something runs in the background and none is declared."""
    sound = [cls for cls in classes if isinstance(cls, type) and issubclass(cls, Resource)]
    if any(issubclass(cls, JobResource) for cls in sound) or not any(map(_has_jobs, sound)):
        return classes
    return (*classes, Job)


def job_class(classes: Iterable[type[Resource]]) -> type[Resource] | None:
    """The resource of jobs."""
    return next((cls for cls in classes if issubclass(cls, JobResource)), None)


def job_faults(classes: Iterable[type[Resource]]) -> Iterator[tuple[type[Resource], NameFault]]:
    """What is wrong with resources of jobs as a whole."""
    seen = False
    for cls in classes:
        if not issubclass(cls, JobResource):
            continue
        if seen:
            yield cls, ("two resources are of jobs", "Leave one")
        seen = True
        verbs = {verb for granted in cls.access for verb in granted.verbs}
        verbs |= {verb for member in members_of(cls).values() for rule in allowances(member) for verb in rule.verbs}
        if verbs & _WRITES:
            yield cls, ("clients cannot write jobs", 'Grant "read" alone: who may read a job may cancel it')


def _has_jobs(cls: type) -> bool:
    members = members_of(cls).values()
    return any(
        schedule_of(member) is not None or any(offer.background for offer in offers(member)) for member in members
    )


def background_of(declared: InBackground, returns: ResultDef) -> JobOptions:
    """How an action runs in the background."""
    return JobOptions(declared.attempts, declared.timeout, declared.retry, returns)


def background_faults(declared: InBackground | Schedule) -> Iterator[NameFault]:
    """What is wrong with the options of a job."""
    attempts, timeout = declared.attempts, declared.timeout
    if type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS:
        yield f"attempts={attempts!r} is no number from 1 to {MOST_ATTEMPTS}", "Write attempts=5"
    if timeout is not None and (not isinstance(timeout, int | float) or not 0 < timeout <= 86_400):
        yield f"timeout={timeout!r} is no number of seconds up to a day", "Write timeout=300"
    retry: Any = declared.retry if isinstance(declared, InBackground) else ()
    if not isinstance(retry, tuple) or not all(
        isinstance(kind, type) and issubclass(kind, Exception) for kind in retry
    ):
        yield f"retry={retry!r} is no tuple of exceptions", "Write retry=(ConnectionError,)"


def read_schedules(cls: type[Resource], wrong: Callable[[str, str, str], None]) -> Iterator[ScheduleDef]:
    """The functions of a class that run by the clock; mistakes are reported with the name of the member."""
    for attr, member in members_of(cls).items():
        schedule = schedule_of(member)
        if schedule is None:
            continue
        faults = [*_schedule_faults(attr, member, schedule, cls)]
        for fault in faults:
            wrong(attr, *fault)
        if not faults and isinstance(schedule.when, Timetable):
            background = JobOptions(schedule.attempts, schedule.timeout, (), _NONE)
            roles = tuple(sorted(role.name for role in schedule.roles))
            yield ScheduleDef(f"{cls.__name__}.{attr}", cls, member.__func__, schedule.when, roles, background)


def scheduled_roles(classes: Iterable[type[Resource]]) -> list[Role]:
    """The roles that `@every` names."""
    schedules = [schedule_of(member) for cls in classes for member in members_of(cls).values()]
    return [role for schedule in schedules if schedule for role in schedule.roles if isinstance(role, Role)]


def _schedule_faults(attr: str, member: Any, schedule: Schedule, cls: type) -> Iterator[NameFault]:
    if isinstance(schedule.when, str):
        yield f"@every: {schedule.when}", EXAMPLE
    if not isinstance(schedule.roles, tuple) or not all(isinstance(role, Role) for role in schedule.roles):
        yield f"roles={schedule.roles!r} is no tuple of roles", "Write roles=(robot,), with robot = Role(…)"
    yield from background_faults(schedule)
    function = getattr(member, "__func__", None)
    if offers(member) or allowances(member):
        yield "@every with @action, @query or @allow on one function", "Write two functions"
    elif not isinstance(member, classmethod) or not isinstance(function, FunctionType):
        yield "@every does not decorate a class method", f"Write @every(…) above @classmethod async def {attr}(…)"
    elif not inspect.iscoroutinefunction(function):
        yield "@every on a function that is not async", f"Write async def {attr}(cls, tx: JobTx) -> None"
    else:
        parameters = [*inspect.signature(function).parameters.values()][1:]
        hints = [_hint(parameter.annotation, function, cls) for parameter in parameters]
        if hints not in ([JobTx], [Tx]):
            yield "@every on a function with other arguments", f"Write async def {attr}(cls, tx: JobTx) -> None"


def _hint(hint: Any, function: FunctionType, cls: type) -> Any:
    try:
        return evaluate(hint, cls, function.__globals__)
    except Exception:
        return None
