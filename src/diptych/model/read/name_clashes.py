"""Name clashes: of types, of root fields, of paths, of tables, and of the fields of one resource.

Names that coming features need are reserved before these exist, so that no model breaks when they come.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from diptych.model.call_defs import QueryDef
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.naming import upper_first
from diptych.model.nesting import ROW_ID, ROW_REF, link_type, nest_type, under_type
from diptych.model.scalars import ALL, Scalar
from diptych.model.versions import SUFFIX, VersionKind
from diptych.model.viewer_object import ROOT, VIEWER

RESERVED_PATHS = frozenset(
    {
        *("graphql", "oauth", ".well-known", "openapi.json", "console", "health", "metrics"),
        *("batch", "files", "mcp", "viewer"),
    }
)
RESERVED_PARAMETERS = (
    *("fields", "sort", "first", "last", "after", "before", "offset", "count", "where"),
    *("search", "by", "having", "onConflict", "most", "dryRun", "deleted"),
)
"""The query parameters of every list."""
RESERVED_SEGMENTS = frozenset({"batch", "changes", "groups", "summary"})
"""The segments after `/posts/` that are not ids of rows."""
RESERVED_ROW_SEGMENTS = frozenset({"restore"})
"""The segments after `/posts/<id>/` that are no relations."""
_SCALARS = ("Decimal", *dict.fromkeys(scalar.graphql or scalar.name for scalar in ALL))
_MEASURES = ("Measures", "MeasuresFilter", "KeyMeasures")
RESERVED_TYPES = frozenset(
    {
        "Query",
        "Mutation",
        "Subscription",
        "PageInfo",
        "Direction",
        "ChangeKind",
        "OnConflict",
        "Deleted",
        VIEWER,
        *(ROW_REF, ROW_ID),
        *_SCALARS,
        *(name + "Filter" for name in _SCALARS),
        *(name + "ListFilter" for name in _SCALARS),
        *(name + suffix for name in (*_SCALARS, "Distinct") for suffix in _MEASURES),
        *(name + suffix for name in ("Number", "Range", "Distinct") for suffix in ("KeyOrder", "MeasuresOrder")),
        *("ValueBucket", "DateBucket", "TimeBucket"),
    }
)
_WRITES = ("create", "update", "replace", "delete", "upsert", "restore")
_BULK = ("update", "delete")
"""Verbs that change many rows: `updatePosts`."""
_SUFFIXES = (
    *("", "Where", "ListWhere", "Order", "Connection", "Edge", "Create", "Patch", "Replace", "Change"),
    *("UpsertKey", "Update"),
)
_PLURAL_SUFFIXES = (
    *("Bulk", "Group", "GroupBy", "GroupConnection", "GroupOrder", "Having", "Summary", "SummaryOrder"),
)
"""Suffixes of types about many rows: `PostsSummary`."""

_VERSION_SUFFIXES = ("", "Where", "Order", "Connection", "Edge")
CHANGE_PARTS = ("eventId", "cursor", "kind", "rowId", "at")
"""The fields of a change, besides the row itself."""

Clash = tuple[str, str]
"""What is wrong, and how to fix it."""


def type_clashes(
    resources: Collection[ResourceDef], enums: Mapping[type[enum.Enum], Scalar], values: Iterable[type] = ()
) -> Iterator[tuple[ResourceDef | type[enum.Enum], Clash]]:
    """Resources and enums whose GraphQL type names are taken."""
    taken = dict.fromkeys(RESERVED_TYPES, "Diptych itself")
    for value in values:
        names = [value.__name__ + suffix for suffix in ("", "Input", "Patch", "Filter", "Order")]
        taken |= dict.fromkeys(names, f"the value {value.__name__}")
    if any(resource.audit and resource.audit.history for resource in resources):
        taken |= dict.fromkeys([VersionKind.__name__ + suffix for suffix in ("", "Filter")], "Diptych itself")
    for kind in enums:
        names = [kind.__name__ + suffix for suffix in ("", "Filter", "ListFilter")]
        yield from _take(kind, names, f"the enum {kind.__name__}", taken)
    plurals: set[str] = set()
    for resource in resources:
        names = [resource.name + suffix for suffix in _SUFFIXES]
        if resource.audit is not None and resource.audit.history:
            names += [resource.name + SUFFIX + suffix for suffix in _VERSION_SUFFIXES]
        if resource.many not in plurals:  # a plural that two have is a clash of their root fields
            names += [upper_first(resource.many) + suffix for suffix in _PLURAL_SUFFIXES]
        plurals.add(resource.many)
        names += _nested(resource)
        yield from _take(resource, names, f"the resource {resource.name}", taken)


def _nested(resource: ResourceDef) -> Iterator[str]:
    """The types of writes that are nested in those of a resource."""
    for relation in resource.relations.values():
        yield nest_type(resource.name, relation)
        if relation.kind == "through":
            yield link_type(resource.name, relation)
        if relation.kind == "one":
            yield under_type(resource.name, relation.name)


def _take(
    owner: ResourceDef | type[enum.Enum], names: Iterable[str], what: str, taken: dict[str, str]
) -> Iterator[tuple[ResourceDef | type[enum.Enum], Clash]]:
    reported = False
    for name in names:
        if name in taken and not reported:
            reported = True
            yield owner, (f"the type {name} is also that of {taken[name]}", "Rename one")
        taken.setdefault(name, what)


def root_clashes(resources: Iterable[ResourceDef]) -> Iterator[tuple[ResourceDef, Clash]]:
    """Resources whose path or root fields are taken by another resource or reserved."""
    taken: dict[str, str] = {}
    for resource in resources:
        if resource.path in RESERVED_PATHS:
            yield resource, (f"the path /{resource.path} is reserved", 'Give another plural: plural="…"')
        if resource.one in CHANGE_PARTS:
            yield resource, (f"the name {resource.one} is also that of a part of every change", "Rename the class")
        names = (*_reads(resource), f"/{resource.path}")
        clash = next((name for name in names if name in taken), resource.many if resource.one == resource.many else "")
        if clash:
            owner = taken.get(clash, "one of its rows")
            yield resource, (f"the name {clash} is also that of {owner}", 'Give another plural: plural="…"')
        taken.update({name: taken.get(name, resource.name) for name in names})


def _reads(resource: ResourceDef) -> tuple[str, ...]:
    """The root fields of a query for its rows, and for groups and numbers of them."""
    groups = (resource.groups, resource.groups + "Connection")
    return resource.one, resource.many, resource.connection, *groups, resource.summary


def names_beside(resource: ResourceDef) -> Iterator[str]:
    """The names of the keys and sequences that PostgreSQL creates with a table: they share its namespace."""
    yield f"{resource.table}_pkey"
    for field in resource.fields.values():
        if field.unique:
            yield f"{resource.table}_{field.column}_key"
    yield f"{resource.table}_id_seq"


def table_clashes(resources: Collection[ResourceDef]) -> Iterator[tuple[ResourceDef, Clash]]:
    """Resources whose table has the name of a key or sequence of another table in PostgreSQL."""
    taken = {name: resource.table for resource in resources if resource.managed for name in names_beside(resource)}
    owners: dict[str, ResourceDef] = {}
    for resource in resources:
        owner = owners.setdefault(resource.table.lower(), resource)
        if owner.path != resource.path:
            yield resource, (f"the table {resource.table} is also that of {owner.name}", "Give another table=")
        if resource.table in taken:
            cause = f"the table {resource.table} would have the name of a key of the table {taken[resource.table]}"
            yield resource, (cause, 'Give another plural: plural="…"')


def call_clashes(resources: Collection[ResourceDef]) -> Iterator[tuple[ResourceDef, str, Clash]]:
    """Actions and queries whose root field or path is taken: the resource, the attribute, and the clash."""
    fields = {name: resource.name for resource in resources for name in _reads(resource)}
    fields[ROOT] = "the viewer"
    writes = {verb + resource.name: resource.name for resource in resources for verb in _WRITES}
    writes |= {verb + upper_first(resource.many): resource.name for resource in resources for verb in _BULK}
    for resource in resources:
        paths = {f"/{resource.path}/<id>/{segment}": name for segment, name in resource.collections.items()}
        for call in resource.calls:
            path = f"/{resource.path}/<id>/{call.segment}" if call.on == "row" else f"/{resource.path}/{call.segment}"
            roots = fields if isinstance(call, QueryDef) else writes
            reserved = RESERVED_SEGMENTS if call.on == "class" else RESERVED_ROW_SEGMENTS
            if call.segment in reserved:
                yield resource, call.attr, (f"the path {path} is reserved", "Rename it")
            elif path in paths:
                yield resource, call.attr, (f"the path {path} is also that of '{paths[path]}'", "Rename one")
            elif call.root in roots:
                yield resource, call.attr, (f"the name {call.root} is also that of {roots[call.root]}", "Rename it")
            paths.setdefault(path, call.attr)
            roots.setdefault(call.root, f"{resource.name}.{call.attr}")


class Names:
    """The fields and relations of one resource, by their names on the wire."""

    def __init__(self, wrong: Callable[[str, str, str], None]) -> None:
        self.fields: dict[str, FieldDef] = {}
        self.relations: dict[str, RelationDef] = {}
        self._owners: dict[str, str] = {}
        self._wrong = wrong

    def add(self, attr: str, member: FieldDef | RelationDef) -> None:
        """Add a field or a relation, or report that one of its names is taken."""
        names = [member.name]
        if isinstance(member, RelationDef) and member.kind != "one":
            names += [member.name + "Connection", member.name + "Summary"]
        clash = next((name for name in names if name in self._owners), None)
        if clash:
            self._wrong(attr, f"the name {clash} is also that of '{self._owners[clash]}'", "Rename one")
        elif isinstance(member, FieldDef):
            self.fields[member.name] = member
        else:
            self.relations[member.name] = member
        self._owners.update({name: self._owners.get(name, attr) for name in names})
