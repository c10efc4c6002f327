"""From resource classes to ResourceDefs: four passes, and every mistake of all of them at once.

1. names   every class gets its names
2. lines   every annotated line becomes a field or a relation, every function that is offered an action or a
           query; names that collide are refused
3. ends    every relation finds its other end
4. rules   rules and computed fields are traced, now that all fields are known
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, ClassVar, get_origin

from diptych.errors import Mistake
from diptych.model.actions import offers
from diptych.model.age import idle_ages, public_fault, seconds_of
from diptych.model.calls import Home, read_call
from diptych.model.computed import Computed
from diptych.model.declared import Auto, Declared, Now, annotated, evaluate
from diptych.model.defs import SERVER_FIELDS, ActionDef, CallDef, FieldDef, QueryDef, ResourceDef
from diptych.model.expr import ViewerValue
from diptych.model.fields import TYPES, VALUES, each_row, is_the_clock, key_scalar, read_computed, read_field, scalar_of
from diptych.model.lines import Line, Wrong, take_apart
from diptych.model.members import calls, computed_fields, rules, untyped
from diptych.model.names import Names, call_clashes, root_clashes, table_clashes, type_clashes
from diptych.model.naming import attribute_fault, camel, class_fault, plural, snake
from diptych.model.needs import form_fault, one_of_batch
from diptych.model.relations import link, read_list, read_relation
from diptych.model.resource import Resource, allowances
from diptych.model.roles import Role, RoleBook, Viewer
from diptych.model.rules import Tracer
from diptych.model.scalars import Scalar, enumeration, own_doc
from diptych.model.source import changing_defaults, lines_of, place_of
from diptych.model.viewers import read_viewer

_ENUM_VALUE = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_ENUM_VALUES = ("true", "false", "null")
_IMPORT = "Import or define what it names"
_TWICE = "it is a field and a function", "Rename one"


class Builder:
    """Reads resource classes; `resources` are the definitions, `mistakes` all that is wrong with them."""

    def __init__(self, classes: tuple[type[Resource], ...], viewer: type[Viewer] = Viewer) -> None:
        self.mistakes: list[Mistake] = []
        self.enums: dict[type[enum.Enum], Scalar] = {}
        self._users: dict[type[enum.Enum], tuple[type, str]] = {}
        self._classes: dict[str, type[Resource]] = {}
        self._asked: list[Role] = []
        self._lines_of = cache(lines_of)
        if not classes:
            self.mistakes.append(Mistake("Model()", "it has no resources", "Write Model(Author, Post)"))
        for cls in classes:
            self._name(cls)
        read = {name: self._read(cls) for name, cls in self._classes.items()}
        self._check_names(read)
        self.viewer_values = self._viewer(viewer)
        tracer = Tracer(link(read, self._told), self.viewer_values, self._told)
        self.resources = tracer.run()
        self.roles = self._roles([*self._asked, *tracer.asked])

    def wrong(self, cls: type, member: str, cause: str, fix: str) -> None:
        """Note a mistake at the line of the member, or of the class."""
        where = f"{cls.__name__}.{member}" if member else cls.__name__
        self.mistakes.append(Mistake(where, cause, fix, *place_of(cls, member, self._lines_of)))

    def _told(self, found: ResourceDef, member: str, cause: str, fix: str) -> None:
        self.wrong(found.cls, member, cause, fix)

    # 1. names

    def _name(self, cls: type[Resource]) -> None:
        if not (isinstance(cls, type) and issubclass(cls, Resource) and cls is not Resource):
            self.mistakes.append(Mistake(repr(cls), "it is no resource", "Write class Post(Resource): …"))
        elif self._classes.get(cls.__name__) is cls:
            self.wrong(cls, "", "the model names it twice", "Name it once")
        elif cls.__name__ in self._classes:
            self.wrong(cls, "", "two resources have this name", "Rename one")
        elif fault := class_fault(cls.__name__, _stem(cls)):
            self.wrong(cls, "", *fault)
        elif cls.__diptych__["ids"] not in ("uuid", "integer"):
            told = f"ids={cls.__diptych__['ids']!r} is unknown"
            self.wrong(cls, "", told, 'Write ids="uuid" or ids="integer"')
        else:
            self._classes[cls.__name__] = cls

    def _check_names(self, read: dict[str, ResourceDef]) -> None:
        for owner, clash in type_clashes(read.values(), self.enums):
            if isinstance(owner, ResourceDef):
                self._told(owner, "", *clash)
            else:
                self.wrong(*self._users[owner], *clash)
        for found, clash in (*root_clashes(read.values()), *table_clashes(read.values())):
            self._told(found, "", *clash)
        for found, attr, clash in call_clashes(read.values()):
            self._told(found, attr, *clash)

    # 2. lines

    def _read(self, cls: type[Resource]) -> ResourceDef:
        names = Names(partial(self.wrong, cls))
        about = [name for _, _, note in rules(cls) if "read" in note.verbs for name in note.fields]
        restricted = frozenset(name for name in about if isinstance(name, str))
        lines = [*self._lines(cls)]
        for line in lines:
            self._understand(cls, line, restricted, names)
        for attr, each in computed_fields(cls).items():
            found = self._computed_field(cls, attr, each, restricted)
            if found is not None:
                names.add(attr, found)
        called = self._calls(cls, {line.attr for line in lines})
        self._check_defaults(cls, {line.attr: line.default for line in lines}, {call.attr for call in called})
        for attr in untyped(cls) if lines else ():
            self.wrong(cls, attr, "it has no type, so it is no field", f"Write {attr}: … = …")
        public = self._public(cls, names)
        stem = _stem(cls)
        return ResourceDef(
            name=cls.__name__, cls=cls, table=stem.replace("-", "_"), path=stem.replace("_", "-"),
            one=camel(snake(cls.__name__)), many=_many(cls), description=own_doc(cls),
            fields=names.fields, relations=names.relations,
            actions={each.name: each for each in called if isinstance(each, ActionDef)},
            queries={each.name: each for each in called if isinstance(each, QueryDef)}, public=public,
        )  # fmt: skip

    def _check_defaults(self, cls: type[Resource], lines: Mapping[str, Any], called: set[str]) -> None:
        """A default that the file computes is one value for all rows; of some it was surely not meant so."""
        changing = changing_defaults(cls)
        for attr, default in lines.items():
            if attr not in changing and is_the_clock(default):
                self.wrong(cls, attr, "the default is the moment at which the file was read", each_row(default))
        for name, text in changing.items():
            attr, _, argument = name.partition(".")
            told = f"{text} is computed once, when the file is read"
            if argument and attr in called:
                fix = f"Write {argument}: … | None = None, and compute it in the function"
                self.wrong(cls, attr, f"its argument '{argument}': {told}", fix)
            elif attr in lines and not argument and not isinstance(lines[attr], Now):
                self.wrong(cls, attr, f"{told}: all rows would have that value", each_row(lines[attr]))

    def _public(self, cls: type[Resource], names: Names) -> int:
        """For how many seconds anyone may keep what is told of it; what its fields say of that is held against it."""
        declared = cls.__diptych__["public"]
        if fault := public_fault(declared):
            self.wrong(cls, "", *fault)
            return 0
        public = seconds_of(declared) or 0
        for attr, fault in idle_ages(public, cls.__name__, names.fields.values()):
            self.wrong(cls, attr, *fault)
        return public

    def _lines(self, cls: type[Resource]) -> Iterator[Line]:
        """Every annotated line that declares a field or a relation, taken apart."""
        try:
            found = annotated(cls)
        except NameError as error:  # from Python 3.14 on, annotations are evaluated when they are asked for
            self.wrong(cls, "", f"a type cannot be read: {error}", _IMPORT)
            return
        for each in found:
            if offers(each.default):  # the function took the place of the default
                self.wrong(cls, each.attr, *_TWICE)
                continue
            try:
                hint = evaluate(each.hint, each.base, self._classes)
            except Exception as error:
                self.wrong(cls, each.attr, f"its type cannot be read: {error}", _IMPORT)
                continue
            if get_origin(hint) is not ClassVar and hint is not ClassVar and self._is_own(cls, each, hint):
                yield take_apart(each.attr, hint, each.default)

    def _is_own(self, cls: type[Resource], each: Declared, hint: Any) -> bool:
        """Is the line a field of the model's own, or rightly one of those that every resource has?"""
        automatic = isinstance(each.default, Auto)
        if camel(each.attr) in SERVER_FIELDS and not (automatic and hint == _given(each.attr)):
            self.wrong(cls, each.attr, "every resource has this field already", "Rename it")
            return False
        if automatic and camel(each.attr) not in SERVER_FIELDS:
            self.wrong(cls, each.attr, "auto() is for the fields that every resource has", "Give a default")
            return False
        return True

    def _understand(self, cls: type[Resource], line: Line, restricted: frozenset[str], names: Names) -> None:
        wrong = partial(self.wrong, cls, line.attr)
        self._asked += line.asked
        to_one = isinstance(line.type, type) and issubclass(line.type, Resource)
        fault = attribute_fault(line.attr, line.attr + "_id" * to_one)
        if fault:
            wrong(*fault)
        elif get_origin(line.type) is list:
            many = read_list(line, self._classes, wrong)
            if many is not None:
                names.add(line.attr, many)
        elif to_one:
            self._to_one(line, restricted, names, wrong)
        else:
            self._plain(cls, line, restricted, names, wrong)

    def _to_one(self, line: Line, restricted: frozenset[str], names: Names, wrong: Wrong) -> None:
        target = line.type.__name__
        if self._classes.get(target) is not line.type:
            wrong(f"{target} is not in the model", f"Add it: Model(…, {target})")
            return
        for each in read_relation(line, target, restricted, wrong):
            names.add(line.attr, each)

    def _plain(
        self, cls: type[Resource], line: Line, restricted: frozenset[str], names: Names, wrong: Wrong
    ) -> None:
        ids = cls.__diptych__["ids"]
        scalar = key_scalar(ids) if line.attr == "id" else self._scalar(cls, line, wrong)
        if scalar is not None:
            names.add(line.attr, read_field(line, scalar, restricted, wrong))

    def _computed_field(
        self, cls: type[Resource], attr: str, each: Computed[Any], restricted: frozenset[str]
    ) -> FieldDef | None:
        wrong = partial(self.wrong, cls, attr)
        hint = each.function.__annotations__.get("return")
        fault = attribute_fault(attr, attr) or form_fault(attr, each)
        if allowances(each.function) or allowances(each):
            fault = "@allow on a computed field", f'Write a rule with @allow("read", field="{attr}")'
        elif hint is None:
            fault = "a computed field does not say what it gives", f"Write def {attr}(self) -> str:"
        if fault:
            return wrong(*fault)
        try:
            hint = evaluate(hint, cls, {**self._classes, **getattr(each.function, "__globals__", {})})
        except Exception as error:
            return wrong(f"its type cannot be read: {error}", _IMPORT)
        line: Line | None = take_apart(attr, hint, None, (each.__doc__ or "").strip())
        if line is not None and each.batch:
            line = one_of_batch(line, wrong)
        if line is None:
            return None
        self._asked += line.asked
        scalar = self._scalar(cls, line, wrong)
        return None if scalar is None else read_computed(line, scalar, each, restricted, wrong)

    def _calls(self, cls: type[Resource], lines: set[str]) -> list[CallDef]:
        """Every action and query of a class."""
        home = Home(cls, _many(cls), self._classes, partial(self._scalar, cls, types=VALUES))
        found: list[CallDef] = []
        for attr, member, noted in calls(cls):
            wrong = partial(self.wrong, cls, attr)
            self._asked += [offer.to for offer in noted if isinstance(offer.to, Role)]
            if attr in lines:
                wrong(*_TWICE)
            call = read_call(attr, member, noted, home, wrong)
            twin = next((each for each in found if call and type(each) is type(call) and each.name == call.name), None)
            if call and twin:
                wrong(f"the name {call.name} is also that of '{twin.attr}'", "Rename one")
            found += [call] if call else []
        return found

    def _scalar(self, cls: type, line: Line, wrong: Wrong, types: str = TYPES) -> Scalar | None:
        self._note_enum(cls, line, wrong)
        return scalar_of(line, self.enums, wrong, types)

    def _note_enum(self, cls: type, line: Line, wrong: Wrong) -> None:
        kind = line.type
        if not line.is_enum or kind in self.enums:
            return
        if not len(kind):
            wrong(f"{kind.__name__} has no members", "Give it some")
        for member in kind:
            value = member.value
            if not isinstance(value, str) or not _ENUM_VALUE.fullmatch(value) or value in _NO_ENUM_VALUES:
                told = f"the value {value!r} of {kind.__name__} cannot be a name of GraphQL"
                wrong(told, "Use letters, digits and _, and not true, false or null")
        self.enums[kind] = enumeration(kind)
        self._users[kind] = (cls, line.attr)

    # who there is

    def _viewer(self, cls: type[Viewer]) -> dict[str, ViewerValue]:
        """What the model knows of a viewer besides its id and roles."""
        if not (isinstance(cls, type) and issubclass(cls, Viewer)):
            told = f"viewer={cls!r} is no class of viewers"
            self.mistakes.append(Mistake("Model()", told, "Write class Member(Viewer): …, and viewer=Member"))
            return {}
        served = dict(self.enums)
        try:
            return read_viewer(cls, partial(self._scalar, cls, types=VALUES), partial(self.wrong, cls))
        except Exception as error:
            self.wrong(cls, "", f"a type cannot be read: {error}", _IMPORT)
            return {}
        finally:
            self.enums = served  # what only a viewer has is told to no client

    def _roles(self, asked: list[Role]) -> dict[str, Role]:
        """Every role of the model: those that its rules name, and those that stand in its files."""
        book = RoleBook()
        for cls in self._classes.values():
            module = sys.modules.get(cls.__module__)
            found = [value for value in vars(module).values() if isinstance(value, Role)] if module else []
            for role in found:
                book.note(role)
        for role in asked:
            book.note(role)
        for name, fault in book.faults.items():
            self.mistakes.append(Mistake(f"Role({name!r})", *fault))
        return book.roles


def _stem(cls: type[Resource]) -> str:
    return cls.__diptych__["plural"] or plural(snake(cls.__name__))


def _many(cls: type[Resource]) -> str:
    return camel(_stem(cls).replace("-", "_"))


def _given(attr: str) -> Any:
    """The type that a field of every resource has."""
    return evaluate(Resource.__annotations__[attr], Resource, {})
