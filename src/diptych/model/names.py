"""Names that collide: of types, of root fields, of paths, of the fields of one resource."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from diptych.model.defs import FieldDef, QueryDef, RelationDef, ResourceDef
from diptych.model.scalars import JSON, PLAIN, Scalar

RESERVED_PATHS = frozenset(
    {"graphql", "oauth", ".well-known", "openapi.json", "console", "health", "metrics"}
)
RESERVED_PARAMETERS = ("fields", "sort", "first", "last", "after", "before", "offset", "count", "where")
"""The query parameters of every list."""
RESERVED_SEGMENTS = frozenset({"changes"})
"""Where `/posts/…` leads, besides to a row."""
_SCALARS = ("ID", "BigInt", "Decimal", JSON.name, *(scalar.name for scalar in PLAIN.values()))
RESERVED_TYPES = frozenset({
    "Query", "Mutation", "Subscription", "PageInfo", "Direction", "ChangeKind",
    *_SCALARS, *(name + "Filter" for name in _SCALARS),
})  # fmt: skip
_WRITES = ("create", "update", "replace", "delete")
_SUFFIXES = ("", "Where", "ListWhere", "Order", "Connection", "Edge", "Create", "Patch", "Replace", "Change")

_CHANGE_PARTS = ("cursor", "kind", "id", "at")
"""What is told of a change, besides the row itself."""

Clash = tuple[str, str]
"""What is wrong, and how to mend it."""


def type_clashes(
    resources: Iterable[ResourceDef], enums: Mapping[type[enum.Enum], Scalar]
) -> Iterator[tuple[ResourceDef | type[enum.Enum], Clash]]:
    """Resources and enums whose GraphQL types have the name of another."""
    taken = dict.fromkeys(RESERVED_TYPES, "Diptych itself")
    for kind in enums:
        yield from _take(kind, (kind.__name__, kind.__name__ + "Filter"), f"the enum {kind.__name__}", taken)
    for found in resources:
        names = (found.name + suffix for suffix in _SUFFIXES)
        yield from _take(found, names, f"the resource {found.name}", taken)


def _take(
    owner: ResourceDef | type[enum.Enum], names: Iterable[str], what: str, taken: dict[str, str]
) -> Iterator[tuple[ResourceDef | type[enum.Enum], Clash]]:
    told = False
    for name in names:
        if name in taken and not told:
            told = True
            yield owner, (f"the type {name} is also that of {taken[name]}", "Rename one")
        taken.setdefault(name, what)


def root_clashes(resources: Iterable[ResourceDef]) -> Iterator[tuple[ResourceDef, Clash]]:
    """Resources whose path or root fields are those of another, or of the server."""
    taken: dict[str, str] = {}
    for found in resources:
        if found.path in RESERVED_PATHS:
            yield found, (f"the path /{found.path} is reserved", 'Give another plural: plural="…"')
        if found.one in _CHANGE_PARTS:
            yield found, (f"the name {found.one} is also that of a part of every change", "Rename the class")
        names = (found.one, found.many, found.connection, f"/{found.path}")
        clash = next((name for name in names if name in taken), found.many if found.one == found.many else "")
        if clash:
            owner = taken.get(clash, "one of its rows")
            yield found, (f"the name {clash} is also that of {owner}", 'Give another plural: plural="…"')
        taken.update({name: taken.get(name, found.name) for name in names})


def names_beside(resource: ResourceDef) -> Iterator[str]:
    """The names that PostgreSQL gives to what it makes with a table: they share a namespace with tables and indexes."""
    yield f"{resource.table}_pkey"
    for field in resource.fields.values():
        if field.unique:
            yield f"{resource.table}_{field.column}_key"
    yield f"{resource.table}_id_seq"


def table_clashes(resources: Collection[ResourceDef]) -> Iterator[tuple[ResourceDef, Clash]]:
    """Resources whose table has a name that PostgreSQL gives to a key or sequence of another."""
    taken = {name: found.table for found in resources for name in names_beside(found)}
    for found in resources:
        if found.table in taken:
            told = f"the table {found.table} would have the name of a key of the table {taken[found.table]}"
            yield found, (told, 'Give another plural: plural="…"')


def call_clashes(resources: Collection[ResourceDef]) -> Iterator[tuple[ResourceDef, str, Clash]]:
    """Actions and queries whose root field or path is that of something else: the resource and the attribute."""
    fields = {name: found.name for found in resources for name in (found.one, found.many, found.connection)}
    writes = {verb + found.name: found.name for found in resources for verb in _WRITES}
    for found in resources:
        paths = {f"/{found.path}/<id>/{segment}": name for segment, name in found.collections.items()}
        for call in found.calls:
            path = f"/{found.path}/<id>/{call.segment}" if call.on == "row" else f"/{found.path}/{call.segment}"
            roots = fields if isinstance(call, QueryDef) else writes
            if call.on == "class" and call.segment in RESERVED_SEGMENTS:
                yield found, call.attr, (f"the path {path} is reserved", "Rename it")
            elif path in paths:
                yield found, call.attr, (f"the path {path} is also that of '{paths[path]}'", "Rename one")
            elif call.root in roots:
                yield found, call.attr, (f"the name {call.root} is also that of {roots[call.root]}", "Rename it")
            paths.setdefault(path, call.attr)
            roots.setdefault(call.root, f"{found.name}.{call.attr}")


class Names:
    """The fields and relations of one resource, by their names on the wire."""

    def __init__(self, wrong: Callable[[str, str, str], None]) -> None:
        self.fields: dict[str, FieldDef] = {}
        self.relations: dict[str, RelationDef] = {}
        self._owners: dict[str, str] = {}
        self._wrong = wrong

    def add(self, attr: str, found: FieldDef | RelationDef) -> None:
        """Keep a field or a relation, unless one of the names that it takes is taken."""
        names = [found.name]
        if isinstance(found, RelationDef) and found.kind != "one":
            names.append(found.name + "Connection")
        clash = next((name for name in names if name in self._owners), None)
        if clash:
            self._wrong(attr, f"the name {clash} is also that of '{self._owners[clash]}'", "Rename one")
        elif isinstance(found, FieldDef):
            self.fields[found.name] = found
        else:
            self.relations[found.name] = found
        self._owners.update({name: self._owners.get(name, attr) for name in names})
