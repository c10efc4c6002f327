"""Reads the signature of an action or a query: a method of a resource class → ActionDef or QueryDef.

@action(to=editor)
async def publish(self, tx: Tx, note: Annotated[str | None, MaxLen(80)] = None) -> Post:
          └ names          └ the transaction, then arguments               default   └ result
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Self, get_args, get_origin

from msgspec import Struct

from diptych.model.call_defs import ActionDef, ArgumentDef, CallDef, QueryDef, ResultDef
from diptych.model.declare import markers as mark
from diptych.model.declare.actions import Offer
from diptych.model.declare.computed import Computed
from diptych.model.declare.declared import MISSING, evaluate
from diptych.model.declare.deprecated import DeprecatedMark
from diptych.model.declare.job_tx import JobTx
from diptych.model.declare.resource import Resource, allowances
from diptych.model.declare.roles import Role
from diptych.model.declare.tx import Tx
from diptych.model.naming import NameFault, camel, kebab, upper_first, word_fault
from diptych.model.read.annotations import (
    Annotation,
    Wrong,
    check_bounds,
    check_markers,
    check_use,
    unwrap,
    weight_fault,
)
from diptych.model.read.deprecations import deprecation_fault, deprecation_of
from diptych.model.read.fields import constraints_of, default_of, value_markers
from diptych.model.read.jobs import background_faults, background_of
from diptych.model.read.name_clashes import RESERVED_PARAMETERS
from diptych.model.read.public_ages import public_fault, seconds_of
from diptych.model.scalars import Scalar

CALL_WEIGHT = 100
"""The default weight of a call: code of unknown cost, in a transaction of its own."""
_IMPORT = "Import or define what it names"
_RESULTS = "Write -> Post, -> list[Post], a plain type, or -> None of an action"


class Home(Struct, frozen=True):
    """The context of a call: the class and its plural, the resources of the model, and how types of values are read."""

    cls: type[Resource]
    many: str
    classes: Mapping[str, type[Resource]]
    job: str
    """The name of the resource of jobs; "" if there is none."""
    scalar: Callable[[Annotation, Wrong], Scalar | None]


def read_call(attr: str, member: Any, offers: tuple[Offer, ...], home: Home, wrong: Wrong) -> CallDef | None:
    """The definition of an action or query; None, with every mistake reported, if it is not valid."""
    faults = list(_faults(attr, member, offers))
    for fault in faults:
        wrong(*fault)
    function = getattr(member, "__func__", member)
    if not isinstance(function, FunctionType):
        return None
    offer = offers[0]
    on_class = isinstance(member, classmethod)
    reader = _Reader(function, home, wrong, queued=offer.background is not None)
    name = camel(attr)
    kind = ActionDef if offer.kind == "action" else QueryDef
    arguments = tuple(reader.arguments(attr, on_class, reserved=_reserved(offer, on_class)))
    result = reader.result(offer)
    if faults or result is None:
        return None
    return kind(
        name=name,
        attr=attr,
        segment=kebab(name),
        on="class" if on_class else "row",
        root=name + (upper_first(home.many) if on_class else home.cls.__name__),
        arguments=arguments,
        result=result if offer.background is None else ResultDef("one", home.job),
        role=offer.to.name if isinstance(offer.to, Role) else None,
        function=function,
        description=inspect.cleandoc(function.__doc__ or ""),
        weight=CALL_WEIGHT if offer.weight is None else offer.weight,
        public=seconds_of(offer.public) or 0,
        deprecated=deprecation_of(offer.deprecated or home.cls.__diptych__["deprecated"]),
        background=None if offer.background is None else background_of(offer.background, result),
    )


def _reserved(offer: Offer, on_class: bool) -> Mapping[str, str]:
    """The names that an argument cannot have, each with what uses it."""
    if offer.kind == "query":
        return dict.fromkeys(RESERVED_PARAMETERS, "a parameter of every list")
    return {} if on_class else {"id": "the id of the row"}


def _faults(attr: str, member: Any, offers: tuple[Offer, ...]) -> Iterator[NameFault]:
    """The faults of a call as a whole."""
    kind = offers[0].kind
    function = getattr(member, "__func__", member)
    if len(offers) > 1:
        yield "@action and @query are given more than once", "Leave one"
    for to in (offer.to for offer in offers if not isinstance(offer.to, Role | None)):
        yield f"to={to!r} is no Role", "Write to=admin, with admin = Role(…)"
    for weight in (offer.weight for offer in offers if offer.weight is not None):
        if fault := weight_fault(weight):
            yield f"weight={weight!r} {fault}", f"Write @{kind}(weight=50)"
    yield from (aged for offer in offers if (aged := public_fault(offer.public)))
    yield from (gone for offer in offers if (gone := deprecation_fault(offer.deprecated)))
    yield from (fault for offer in offers if offer.background for fault in background_faults(offer.background))
    if named := word_fault(attr):
        yield named
    if isinstance(member, Computed):
        yield f"@{kind} on a computed field", f"Remove @{kind} or @computed"
    elif not isinstance(member, FunctionType | classmethod) or not isinstance(function, FunctionType):
        yield f"@{kind} does not decorate a method", f"Write @{kind} above async def {attr}(…), or above @classmethod"
    elif kind == "query" and not isinstance(member, classmethod):
        yield "@query on a method of one row", "Write @classmethod below @query"
    elif not inspect.iscoroutinefunction(function):
        yield f"@{kind} on a function that is not async", f"Write async def {attr}(…)"
    if allowances(member) or allowances(function):
        yield f"@allow and @{kind} on one function", f"Write @{kind}(to=…) to say who may call it"


class _Reader:
    """Reads the signature of a call."""

    def __init__(self, function: FunctionType, home: Home, wrong: Wrong, *, queued: bool = False) -> None:
        self.function = function
        self.home = home
        self.wrong = wrong
        self.queued = queued
        self.signature = inspect.signature(function)

    def arguments(self, attr: str, on_class: bool, reserved: Mapping[str, str]) -> Iterator[ArgumentDef]:
        """The parameters after `self` or `cls` and the transaction."""
        parameters = [*self.signature.parameters.values()][1:]
        if parameters and self._is_transaction(parameters[0]):
            parameters = parameters[1:]
        else:
            own = "cls" if on_class else "self"
            kind = "JobTx" if self.queued else "Tx"
            self.wrong("it takes no transaction", f"Write async def {attr}({own}, tx: {kind}, …)")
            parameters = [parameter for parameter in parameters if parameter.name != "tx"]
        owners = dict(reserved)
        for parameter in parameters:
            wrong = self._about(f"its argument '{parameter.name}'")
            name = camel(parameter.name)
            if name in owners:
                wrong(f"the name {name} is that of {owners[name]}", "Rename it")
            owners.setdefault(name, f"'{parameter.name}'")
            argument = self._argument(parameter, name, wrong)
            if argument is not None:
                yield argument

    def _is_transaction(self, parameter: inspect.Parameter) -> bool:
        in_order = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        kinds = (Tx, JobTx) if self.queued else (Tx,)
        return in_order and self._type(parameter.annotation, lambda *_: None) in kinds

    def _argument(self, parameter: inspect.Parameter, name: str, wrong: Wrong) -> ArgumentDef | None:
        fault = _parameter_fault(parameter)
        hint = None if fault else self._type(parameter.annotation, wrong)
        line = unwrap(parameter.name, hint, MISSING if parameter.default is parameter.empty else parameter.default)
        if _is_resource(line.type):
            fault = "a row cannot be sent", f"Take its id: {parameter.name}_id: Id"
        if fault:
            wrong(*fault)
        scalar = None if fault or hint is None else self.home.scalar(line, wrong)
        if scalar is None:
            return None
        check_markers(line, wrong)
        check_use(line, (*value_markers(scalar), DeprecatedMark), f"an argument of type {scalar.name}", wrong)
        check_bounds(line, wrong)
        required = line.default is MISSING and not line.optional
        if required and line.marker(DeprecatedMark):
            wrong("it is deprecated, and no client can leave it out", "Give it a default, or write `| None`")
        return ArgumentDef(
            name,
            parameter.name,
            scalar,
            nullable=line.optional,
            required=required,
            default=default_of(line, scalar, wrong),
            constraints=constraints_of(line),
            deprecated=line.deprecated,
        )

    def result(self, offer: Offer) -> ResultDef | None:
        """The declared result."""
        wrong = self._about("its result")
        hint = self.signature.return_annotation
        nothing = hint in (None, "None", type(None))
        if hint is inspect.Signature.empty or (nothing and offer.kind == "query"):
            self.wrong("it does not say what it gives", _RESULTS)
            return None
        if nothing:
            return ResultDef("none")
        hint = self._type(hint, wrong)
        return None if hint is None else self._some(unwrap("", hint, None), wrong)

    def _some(self, line: Annotation, wrong: Wrong) -> ResultDef | None:
        check_markers(line, wrong)
        if get_origin(line.type) is list:
            return self._list(line, wrong)
        if not _is_resource(line.type):
            return self._scalar(line, wrong)
        check_use(line, (), "a row", wrong)
        resource = self._resource(line.type, wrong)
        return ResultDef("one", resource, nullable=line.optional) if resource else None

    def _list(self, line: Annotation, wrong: Wrong) -> ResultDef | None:
        (item,) = get_args(line.type)
        if not _is_resource(item):
            return self._scalar(line, wrong)
        check_use(line, (), "a list", wrong)
        if line.optional:
            wrong("a list is never null", "Remove `| None`")
        resource = self._resource(item, wrong)
        return ResultDef("list", resource) if resource else None

    def _scalar(self, line: Annotation, wrong: Wrong) -> ResultDef | None:
        scalar = self.home.scalar(line, wrong)
        if scalar is not None and scalar.members is not None:
            wrong(f"a result cannot be a {scalar.name}", "Return a row that has it, or Json")
        check_use(line, (mark.Digits, mark.Big, mark.AnyJson, mark.KeyMark), "a result", wrong)
        return None if scalar is None else ResultDef("scalar", scalar=scalar, nullable=line.optional)

    def _resource(self, kind: Any, wrong: Wrong) -> str:
        """The name of a resource; empty, with a mistake reported, if it is not in the model."""
        name: str = self.home.cls.__name__ if kind is Self else kind.__name__
        if kind is Self:
            return name
        if self.home.classes.get(name) is kind:
            return name
        wrong(f"{name} is not in the model", f"Add it: Model(…, {name}); or write Self for the class itself")
        return ""

    def _type(self, hint: Any, wrong: Wrong) -> Any:
        """Evaluate an annotation; None, with a mistake reported, if that fails."""
        try:
            return evaluate(hint, self.home.cls, {**self.home.classes, **self.function.__globals__})
        except Exception as error:
            wrong(f"its type cannot be read: {error}", _IMPORT)
        return None

    def _about(self, what: str) -> Wrong:
        return lambda cause, fix: self.wrong(f"{what}: {cause}", fix)


def _is_resource(kind: Any) -> bool:
    return kind is Self or (isinstance(kind, type) and issubclass(kind, Resource))


def _parameter_fault(parameter: inspect.Parameter) -> NameFault | None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "it takes any number of values", "Name each argument"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return "it cannot be given by its name", "Remove the /"
    if parameter.annotation is parameter.empty:
        return "it has no type", f"Write {parameter.name}: str"
    return word_fault(parameter.name)
