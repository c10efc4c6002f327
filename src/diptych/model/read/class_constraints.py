"""Reads the constraints of a class as a whole: unique keys, indexes and checks → KeyDef, CheckDef.

The database enforces them too, so a condition is about the stored fields of the row alone, and is made of what means
the same in every process that writes: comparisons, and no search in texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from diptych.model.constraints import INDEXED, MaxBytes
from diptych.model.declare.keys import DeclaredKey
from diptych.model.declare.markers import MaxLen
from diptych.model.declare.search import Search
from diptych.model.defs import CheckDef, FieldDef, KeyDef, ResourceDef
from diptych.model.operators import SEARCHES
from diptych.model.read.members import checks_of, partial_keys_of, rules_of
from diptych.model.rules.expr import TRUE, Col, Compare, Const, Expr, leaves, rewrite
from diptych.model.rules.source_check import Untraceable
from diptych.model.rules.trace import trace_check
from diptych.model.rules.traced import TraceLookup
from diptych.model.scalars import BIGINT, IDS, INT, STRING
from diptych.model.searching import MOST_FIELDS

_PAGE = "See docs/reference/model.md, Constraints"
_KEYS = 'Write keys = (unique("team", "user"),)'
_SEARCH = 'Write search = Search("title", "body")'
_ENTRY = 2_560
"""Bytes of text in an index entry of several fields: PostgreSQL takes 2,704, and numbers and ids need some of them."""
Wrong = Callable[[str, str, str], None]


def read_constraints(resource: ResourceDef, known: TraceLookup, wrong: Wrong) -> ResourceDef:
    """The resource with its keys and checks; every mistake is reported."""
    reader = _Reader(resource, known, wrong)
    counted = {name: reader.counter(field) for name, field in resource.counters.items()}
    reader.resource = resource = replace(resource, fields={**resource.fields, **counted})
    keys = tuple(reader.keys())
    fields = _bounded(resource, keys)
    return replace(resource, keys=keys, checks=reader.checks(), search=tuple(reader.search()), fields=fields)


class _Reader:
    def __init__(self, resource: ResourceDef, known: TraceLookup, wrong: Wrong) -> None:
        self.resource = resource
        self.known = known
        self.wrong = wrong

    def keys(self) -> Iterator[KeyDef]:
        declared: Any = self.resource.cls.keys
        if not isinstance(declared, tuple) or not all(isinstance(key, DeclaredKey) for key in declared):
            self.wrong("keys", "keys is no tuple of unique() and index()", _KEYS)
            return
        seen: set[object] = set()
        for key in declared:
            yield from self._key("keys", key, TRUE, seen)
        for field in self.resource.counters.values():
            if field.counts and (frozenset((field.counts, field.name)), TRUE) not in seen:
                columns = (self.resource.fields[field.counts].column, field.column)
                yield KeyDef(f"{field.counts}_{field.name}", (field.counts, field.name), columns, unique=True)
        for attr, function, key in partial_keys_of(self.resource.cls):
            if not key.unique:
                self.wrong(attr, "an index is over all rows", "Write it in keys = (index(…),)")
                continue
            where = self._condition(attr, function)
            if where is not None:
                yield from self._key(attr, key, where[0], seen)

    def counter(self, field: FieldDef) -> FieldDef:
        """A counter with the name on the wire of the field within which it counts; unique, if that is all rows."""
        if not field.counts:
            return replace(field, unique=True)
        within = self._field(field.attr, field.counts)
        if within is None:
            return replace(field, counts=None)
        fixed = within.scalar in (STRING, INT, BIGINT, *IDS) or within.scalar.choices
        if not fixed or within.nullable or within.is_server_set:
            cause = f"'{field.counts}' is nothing to count within"
            self.wrong(field.attr, cause, "Name a relation, a text, a whole number or an enum that is never null")
            return replace(field, counts=None)
        return replace(field, counts=within.name)

    def search(self) -> Iterator[str]:
        """The fields of the full-text search, by their names on the wire."""
        declared: Any = self.resource.cls.search
        if declared is None:
            return
        named = declared.fields if isinstance(declared, Search) else ()
        if not 1 <= len(set(named)) == len(named) <= MOST_FIELDS:
            self.wrong("search", f"search is no Search() of 1 to {MOST_FIELDS} different fields", _SEARCH)
            return
        about = {name for _, _, note in rules_of(self.resource.cls) if "read" in note.verbs for name in note.fields}
        for name in named:
            field = next((field for field in self.resource.fields.values() if field.attr == name), None)
            if field is None or not field.stored or field.scalar is not STRING:
                self.wrong("search", f"{self.resource.name} has no text {name!r} to search", _SEARCH)
            elif name in about:
                cause = f"a rule hides '{name}' on some rows, and a match would reveal it"
                self.wrong("search", cause, "Leave it out, or use ReadBy instead of the rule")
            else:
                yield field.name

    def _key(self, attr: str, key: DeclaredKey, where: Expr, seen: set[object]) -> Iterator[KeyDef]:
        fields = [field for name in key.fields if (field := self._field(attr, name)) is not None]
        names = tuple(field.name for field in fields)
        if len(fields) < len(key.fields):
            return
        if not fields or len(set(names)) < len(names):
            self.wrong(attr, "a key names each of its fields once", _KEYS)
        elif (frozenset(names) if key.unique else names, where) in seen:
            self.wrong(attr, f"the key of {', '.join(key.fields)} is declared twice", "Leave one")
        else:
            seen.add((frozenset(names) if key.unique else names, where))
            yield KeyDef("_".join(names), names, tuple(field.column for field in fields), key.unique, where)

    def _field(self, attr: str, name: object) -> FieldDef | None:
        """The stored field of a name, or of a to-one relation; None, with a mistake reported, if there is none."""
        for field in self.resource.fields.values():
            relation = self.resource.relations.get(field.relation)
            if relation.attr == name if relation else field.attr == name:
                if field.stored and not field.scalar.is_json:
                    return field
                self.wrong(attr, f"'{name}' cannot be part of a key", "Name stored fields that are no Json")
                return None
        self.wrong(attr, f"{self.resource.name} has no field {name!r}", "Name fields and to-one relations of the class")
        return None

    def checks(self) -> dict[str, CheckDef]:
        checks = {}
        for attr, function, noted in checks_of(self.resource.cls):
            if not isinstance(noted.message, str) or not noted.message.strip():
                self.wrong(attr, "a check does not say what is wrong", 'Write @check("It must end after it began.")')
                continue
            traced = self._condition(attr, function)
            if traced is not None:
                checks[attr] = CheckDef(attr, _as_part(noted.message), *traced)
        return checks

    def _condition(self, attr: str, function: Callable[..., Any]) -> tuple[Expr, tuple[str, ...]] | None:
        """A condition on the row, and the stored fields that it depends on."""
        try:
            expr = trace_check(self.known, self.resource.name, function)
            named = set(self._stored(expr))
            fields = tuple(name for name in self.resource.fields if name in named)
            if not fields:
                raise Untraceable("it names no field of the row")
            return expr, fields
        except Untraceable as error:
            self.wrong(attr, str(error), _PAGE)
        except Exception as error:
            self.wrong(attr, f"it failed while it was traced: {error}", _PAGE)
        return None

    def _stored(self, expr: Expr) -> Iterator[str]:
        """The stored fields of an expression."""
        compared: list[Compare] = []
        rewrite(expr, lambda part: compared.append(part) if isinstance(part, Compare) else None)
        for part in leaves(expr):
            match part:
                case Col((name,)):
                    field = self.resource.fields[name]
                    if field.scalar.is_json and compared:
                        kind = "a list" if field.scalar.items else "a value" if field.scalar.members else "Json"
                        raise Untraceable(f"'{field.attr}' is {kind}, which only is_null() asks about here")
                    if field.counts is not None:
                        raise Untraceable(f"'{field.attr}' is a counter, which is not known before the row is written")
                    yield from self._stored(field.computed) if field.computed is not None else (name,)
                case Const():
                    pass
                case _:
                    raise Untraceable("it asks about more than the fields of its own row; write a rule with @allow")
        if any(part.op in SEARCHES for part in compared):
            raise Untraceable("a search in a text cannot be a constraint of the database")


def _as_part(message: str) -> str:
    """A sentence as the part of one that a fault is: "it must end after it began"."""
    text = message.strip().removesuffix(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _bounded(resource: ResourceDef, keys: tuple[KeyDef, ...]) -> dict[str, FieldDef]:
    """The fields; a text that is part of a key has a maximum length."""
    fields = dict(resource.fields)
    for key in keys:
        texts = [name for name in key.fields if fields[name].scalar.is_text and not fields[name].scalar.choices]
        for name in texts:
            most = min(INDEXED.length, _ENTRY // len(texts))
            markers = fields[name].constraints
            known = [marker.length for marker in markers if isinstance(marker, MaxBytes)]
            known += [4 * marker.length for marker in markers if isinstance(marker, MaxLen)]
            if min(known, default=most + 1) > most:
                others = tuple(marker for marker in markers if not isinstance(marker, MaxBytes))
                fields[name] = replace(fields[name], constraints=(*others, MaxBytes(most)))
    return fields
