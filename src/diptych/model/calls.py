"""From a function of a resource class to its ActionDef or QueryDef: its names, its arguments, its result.

    @action(to=editor)
    async def publish(self, tx: Tx, note: Annotated[str | None, MaxLen(80)] = None) -> Post:
              └ names          └ the transaction, then arguments               default   └ result
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Self, get_args, get_origin

from diptych.model import markers as mark
from diptych.model.actions import Offer
from diptych.model.age import public_fault, seconds_of
from diptych.model.computed import Computed
from diptych.model.declared import MISSING, evaluate
from diptych.model.defs import ActionDef, ArgumentDef, CallDef, QueryDef, ResultDef
from diptych.model.fields import constraints_of, default_of, value_markers
from diptych.model.lines import Line, Wrong, check_bounds, check_markers, check_use, take_apart, weight_fault
from diptych.model.names import RESERVED_PARAMETERS
from diptych.model.naming import Fault, camel, kebab, upper_first, word_fault
from diptych.model.resource import Resource, allowances
from diptych.model.roles import Role
from diptych.model.scalars import Scalar
from diptych.model.tx import Tx

CALL_WEIGHT = 100
"""What a call adds to a price, if the model does not say: code that nobody measured, in a transaction of its own."""
_IMPORT = "Import or define what it names"
_RESULTS = "Write -> Post, -> list[Post], a plain type, or -> None of an action"


@dataclass(frozen=True, slots=True)
class Home:
    """Where a call stands: the class and its plural, the resources of the model, and how a value's type is read."""

    cls: type[Resource]
    many: str
    classes: Mapping[str, type[Resource]]
    scalar: Callable[[Line, Wrong], Scalar | None]


def read_call(attr: str, member: Any, offers: tuple[Offer, ...], home: Home, wrong: Wrong) -> CallDef | None:
    """The action or query that a member of a class is, or None and every mistake in it."""
    faults = list(_faults(attr, member, offers))
    for fault in faults:
        wrong(*fault)
    function = getattr(member, "__func__", member)
    if not isinstance(function, FunctionType):
        return None
    offer = offers[0]
    on_class = isinstance(member, classmethod)
    reader = _Reader(function, home, wrong)
    name = camel(attr)
    kind = ActionDef if offer.kind == "action" else QueryDef
    arguments = tuple(reader.arguments(attr, on_class, reserved=_reserved(offer, on_class)))
    result = reader.result(offer)
    if faults or result is None:
        return None
    return kind(
        name=name, attr=attr, segment=kebab(name), on="class" if on_class else "row",
        root=name + (upper_first(home.many) if on_class else home.cls.__name__), arguments=arguments, result=result,
        role=offer.to.name if isinstance(offer.to, Role) else None, function=function,
        description=inspect.cleandoc(function.__doc__ or ""),
        weight=CALL_WEIGHT if offer.weight is None else offer.weight, public=seconds_of(offer.public) or 0,
    )  # fmt: skip


def _reserved(offer: Offer, on_class: bool) -> Mapping[str, str]:
    """The names that an argument cannot have, each with what has it."""
    if offer.kind == "query":
        return dict.fromkeys(RESERVED_PARAMETERS, "a parameter of every list")
    return {} if on_class else {"id": "the id of the row"}


def _faults(attr: str, member: Any, offers: tuple[Offer, ...]) -> Iterator[Fault]:
    """What is wrong with a call as a whole."""
    kind = offers[0].kind
    function = getattr(member, "__func__", member)
    if len(offers) > 1:
        yield "@action and @query stand there more than once", "Leave one"
    for to in (offer.to for offer in offers if not isinstance(offer.to, Role | None)):
        yield f"to={to!r} is no Role", "Write to=admin, with admin = Role(…)"
    for weight in (offer.weight for offer in offers if offer.weight is not None):
        if fault := weight_fault(weight):
            yield f"weight={weight!r} {fault}", f"Write @{kind}(weight=50)"
    yield from (aged for offer in offers if (aged := public_fault(offer.public)))
    if named := word_fault(attr):
        yield named
    if isinstance(member, Computed):
        yield f"@{kind} on a computed field", f"Remove @{kind} or @computed"
    elif not isinstance(member, FunctionType | classmethod) or not isinstance(function, FunctionType):
        yield f"@{kind} stands on no method", f"Write @{kind} above async def {attr}(…), or above @classmethod"
    elif kind == "query" and not isinstance(member, classmethod):
        yield "@query on a method of one row", "Write @classmethod below @query"
    elif not inspect.iscoroutinefunction(function):
        yield f"@{kind} on a function that is not async", f"Write async def {attr}(…)"
    if allowances(member) or allowances(function):
        yield f"@allow and @{kind} on one function", f"Write @{kind}(to=…) to say who may call it"


class _Reader:
    """Reads the signature of a call."""

    def __init__(self, function: FunctionType, home: Home, wrong: Wrong) -> None:
        self.function = function
        self.home = home
        self.wrong = wrong
        self.signature = inspect.signature(function)

    def arguments(self, attr: str, on_class: bool, reserved: Mapping[str, str]) -> Iterator[ArgumentDef]:
        """All that follows the row, or the class, and the transaction."""
        given = [*self.signature.parameters.values()][1:]
        if given and self._is_transaction(given[0]):
            given = given[1:]
        else:
            own = "cls" if on_class else "self"
            self.wrong("it takes no transaction", f"Write async def {attr}({own}, tx: Tx, …)")
            given = [each for each in given if each.name != "tx"]
        owners = dict(reserved)
        for each in given:
            wrong = self._about(f"its argument '{each.name}'")
            name = camel(each.name)
            if name in owners:
                wrong(f"the name {name} is that of {owners[name]}", "Rename it")
            owners.setdefault(name, f"'{each.name}'")
            found = self._argument(each, name, wrong)
            if found is not None:
                yield found

    def _is_transaction(self, each: inspect.Parameter) -> bool:
        in_order = each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        return in_order and self._type(each.annotation, lambda *_: None) is Tx

    def _argument(self, each: inspect.Parameter, name: str, wrong: Wrong) -> ArgumentDef | None:
        fault = _parameter_fault(each)
        hint = None if fault else self._type(each.annotation, wrong)
        line = take_apart(each.name, hint, MISSING if each.default is each.empty else each.default)
        if _is_resource(line.type):
            fault = "a row cannot be sent", f"Take its id: {each.name}_id: Id"
        if fault:
            wrong(*fault)
        scalar = None if fault or hint is None else self.home.scalar(line, wrong)
        if scalar is None:
            return None
        check_markers(line, wrong)
        check_use(line, value_markers(scalar), f"an argument of type {scalar.name}", wrong)
        check_bounds(line, wrong)
        return ArgumentDef(
            name, each.name, scalar, nullable=line.optional, required=line.default is MISSING and not line.optional,
            default=default_of(line, scalar, wrong), constraints=constraints_of(line),
        )  # fmt: skip

    def result(self, offer: Offer) -> ResultDef | None:
        """What it says that it gives."""
        wrong = self._about("its result")
        hint = self.signature.return_annotation
        nothing = hint in (None, "None", type(None))
        if hint is inspect.Signature.empty or (nothing and offer.kind == "query"):
            self.wrong("it does not say what it gives", _RESULTS)
            return None
        if nothing:
            return ResultDef("none")
        hint = self._type(hint, wrong)
        return None if hint is None else self._some(take_apart("", hint, None), wrong)

    def _some(self, line: Line, wrong: Wrong) -> ResultDef | None:
        check_markers(line, wrong)
        if get_origin(line.type) is list:
            return self._list(line, wrong)
        if not _is_resource(line.type):
            return self._scalar(line, wrong)
        check_use(line, (), "a row", wrong)
        resource = self._resource(line.type, wrong)
        return ResultDef("one", resource, nullable=line.optional) if resource else None

    def _list(self, line: Line, wrong: Wrong) -> ResultDef | None:
        (item,) = get_args(line.type)
        check_use(line, (), "a list", wrong)
        if line.optional:
            wrong("a list is never null", "Remove `| None`")
        if not _is_resource(item):
            wrong("a list can only hold resources", "Write list[Post], or Json for plain lists")
            return None
        resource = self._resource(item, wrong)
        return ResultDef("list", resource) if resource else None

    def _scalar(self, line: Line, wrong: Wrong) -> ResultDef | None:
        scalar = self.home.scalar(line, wrong)
        check_use(line, (mark.Digits, mark.Big, mark.AnyJson, mark.Key), "a result", wrong)
        return None if scalar is None else ResultDef("scalar", scalar=scalar, nullable=line.optional)

    def _resource(self, kind: Any, wrong: Wrong) -> str:
        """The name of a resource of the model; nothing if it is not in it."""
        name: str = self.home.cls.__name__ if kind is Self else kind.__name__
        if kind is Self:
            return name
        if self.home.classes.get(name) is kind:
            return name
        wrong(f"{name} is not in the model", f"Add it: Model(…, {name}); or write Self for the class itself")
        return ""

    def _type(self, hint: Any, wrong: Wrong) -> Any:
        """The type that an annotation means; None if it cannot be read."""
        try:
            return evaluate(hint, self.home.cls, {**self.home.classes, **self.function.__globals__})
        except Exception as error:
            wrong(f"its type cannot be read: {error}", _IMPORT)
        return None

    def _about(self, what: str) -> Wrong:
        return lambda cause, fix: self.wrong(f"{what}: {cause}", fix)


def _is_resource(kind: Any) -> bool:
    return kind is Self or (isinstance(kind, type) and issubclass(kind, Resource))


def _parameter_fault(each: inspect.Parameter) -> Fault | None:
    if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
        return "it takes any number of values", "Name each argument"
    if each.kind is each.POSITIONAL_ONLY:
        return "it cannot be given by its name", "Remove the /"
    if each.annotation is each.empty:
        return "it has no type", f"Write {each.name}: str"
    return word_fault(each.name)
