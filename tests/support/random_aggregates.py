"""Random requests for numbers of rows, as a client of either style would send them.

request = draw(random, view, rows)
request.document, request.variables        a GraphQL document
request.url                                the same as a URL
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from diptych.model.aggregates import buckets, functions, groupable, is_measured_key, measure_scalar, measured
from diptych.model.naming import upper_first
from diptych.model.resource_view import ResourceView
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, FLOAT, INT, Scalar
from diptych.model.view import View
from diptych.model.viewer_object import VIEWER
from tests.support.edge_cases import Data
from tests.support.oracle import wire

Tree = list[Any]
"""Selected names; an object is a pair of its name and a Tree."""
_INFO = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"


@dataclass
class Drawn:
    """A request: a summary, groups, or a list that is sorted, filtered or described by numbers of related rows."""

    kind: str
    resource: ResourceView
    fields: Tree
    where: Mapping[str, Any] | None = None
    having: Mapping[str, Any] | None = None
    by: Sequence[tuple[str, str]] = ()
    sort: Sequence[tuple[list[str], bool]] = ()
    size: int = 20
    count: bool = False
    path: str = field(default="", init=False)

    @property
    def variables(self) -> dict[str, Any]:
        given = {"where": self.where, "having": self.having, "n": self.size if self.kind != "summary" else None}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def document(self) -> str:
        definition = self.resource.resource
        types = {"where": definition.name + "Where", "having": upper_first(definition.many) + "Having", "n": "Int"}
        names = {"where": "where", "having": "having", "n": "first"}
        given = {names[name]: f"${name}" for name in self.variables}
        if self.by:
            given["by"] = "[" + ", ".join(f"{{{name}: {by.upper()}}}" for name, by in self.by) + "]"
        if self.sort:
            given["orderBy"] = "[" + ", ".join(_order(names, down) for names, down in self.sort) + "]"
        arguments = ", ".join(f"{name}: {text}" for name, text in given.items())
        root = {"summary": definition.summary, "groups": definition.groups + "Connection"}
        head = f"answer: {root.get(self.kind, definition.connection)}({arguments})" if arguments else ""
        head = head or f"answer: {root.get(self.kind, definition.connection)}"
        body = _graphql(self.fields)
        if self.kind != "summary":
            body = f"{_INFO} {'totalCount ' * self.count}nodes {{ {body} }}"
        declared = ", ".join(f"${name}: {types[name]}" for name in self.variables)
        return f"query {f'({declared})' if declared else ''} {{ {head} {{ {body} }} }}"

    @property
    def url(self) -> str:
        parameters: dict[str, str] = {"fields": _rest(self.fields)}
        if self.where is not None:
            parameters["where"] = json.dumps(self.where)
        if self.having is not None:
            parameters["having"] = json.dumps(self.having)
        if self.by:
            parameters["by"] = ",".join(name if by == "value" else f"{name}:{by}" for name, by in self.by)
        if self.sort:
            parameters["sort"] = ",".join("-" * down + ".".join(names) for names, down in self.sort)
        if self.kind != "summary":
            parameters["first"] = str(self.size)
        if self.count:
            parameters["count"] = "exact"
        tail = {"summary": "/summary", "groups": "/groups"}.get(self.kind, "")
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
        return f"/{self.resource.resource.path}{tail}?{query}"


def _order(names: Sequence[str], down: bool) -> str:
    text = "DESC" if down else "ASC"
    for name in reversed(names):
        text = f"{{{name}: {text}}}"
    return text


def _graphql(tree: Tree) -> str:
    return " ".join(item if isinstance(item, str) else f"{item[0]} {{ {_graphql(item[1])} }}" for item in tree)


def _rest(tree: Tree) -> str:
    return ",".join(item if isinstance(item, str) else f"{item[0]}({_rest(item[1])})" for item in tree)


class Draw:
    """Draws requests of one viewer."""

    def __init__(self, random: Random, view: View, rows: Data) -> None:
        self.random = random
        self.view = view
        self.rows = rows
        self.resources = [each for name, each in view.resources.items() if name != VIEWER]

    def __call__(self) -> Drawn | None:
        """The next request; None if this viewer sees nothing."""
        if not self.resources:
            return None
        resource = self.random.choice(self.resources)
        kind = self.random.choice(["summary", "groups", "groups", "list"])
        if kind == "list" and any(way.relation.kind != "one" for way in resource.relations.values()):
            return self._list(resource)
        if kind == "groups" and groupable(resource):
            return self._groups(resource)
        return Drawn("summary", resource, self._numbers(resource), self._where(resource))

    def _list(self, resource: ResourceView) -> Drawn:
        many = [name for name, way in resource.relations.items() if way.relation.kind != "one"]
        fields: Tree = ["id"]
        for name in self.random.sample(many, self.random.randint(0, min(2, len(many)))):
            fields.append((name + "Summary", self._numbers(self._target(resource, name))))
        sort = [(self._path(resource), self.random.random() < 0.5) for _ in range(self.random.randint(0, 2))]
        return Drawn("list", resource, fields, self._where(resource), sort=sort, size=self.random.randint(1, 9))

    def _groups(self, resource: ResourceView) -> Drawn:
        keys = groupable(resource)
        names = self.random.sample(list(keys), min(len(keys), self.random.choice([1, 1, 1, 2, 2, 3])))
        by = [(name, self.random.choice(buckets(keys[name].field.scalar))) for name in names]
        fields: Tree = []
        for name in names:
            fields.append((name, ["value"]) if is_measured_key(keys[name].field.scalar) else name)
        shown = [item for item in self._numbers(resource) if isinstance(item, str) or item[0] not in names]
        plain = [item for item in shown if not isinstance(item, str) and self._is_plain(resource, item[0])]
        fields += [item for item in shown if item not in plain]
        fields += [("summary", plain)] if plain else []
        sort: list[tuple[list[str], bool]] = []
        for _ in range(self.random.randint(0, 2)):
            path = self._measure(resource)
            if len(path) > 1 and self._is_plain(resource, path[0]):
                path = ["summary", *path]
            path = self.random.choice([path, [names[0]]])
            if path == names[:1] and is_measured_key(keys[names[0]].field.scalar):
                path = [names[0], "value"]
            sort.append((path, self.random.random() < 0.5))
        having = self._compared(resource, self._measure(resource)) if self.random.random() < 0.4 else None
        if having is not None and self.random.random() < 0.3:
            having = {"not": having}
        size = self.random.randint(1, 12)
        return Drawn(
            "groups", resource, fields, self._where(resource), having, by, sort, size, self.random.random() < 0.3
        )

    @staticmethod
    def _is_plain(resource: ResourceView, name: str) -> bool:
        return not is_measured_key(resource.fields[name].field.scalar)

    def _target(self, resource: ResourceView, relation: str) -> ResourceView:
        return self.view.resources[resource.relations[relation].relation.target]

    def _numbers(self, resource: ResourceView) -> Tree:
        found = measured(resource)
        tree: Tree = ["count"]
        for name in self.random.sample(list(found), min(len(found), self.random.randint(0, 3))):
            fns = functions(found[name].field.scalar)
            tree.append((name, self.random.sample(list(fns), self.random.randint(1, len(fns)))))
        return tree

    def _measure(self, resource: ResourceView) -> list[str]:
        found = measured(resource)
        if not found or self.random.random() < 0.3:
            return ["count"]
        name = self.random.choice(list(found))
        return [name, self.random.choice(functions(found[name].field.scalar))]

    def _path(self, resource: ResourceView, deep: int = 2) -> list[str]:
        """A path to sort by: a field, or through relations."""
        ways = list(resource.relations.items())
        if deep and ways and self.random.random() < 0.8:
            name, way = self.random.choice(ways)
            target = self.view.resources[way.relation.target]
            inner = self._path(target, deep - 1) if way.relation.kind == "one" else self._measure(target)
            return [name, *inner]
        fields = [name for name, shown in resource.searchable.items() if shown.field.scalar.sortable]
        return [self.random.choice(fields)]

    def _where(self, resource: ResourceView) -> Mapping[str, Any] | None:
        choice = self.random.random()
        if choice < 0.4:
            return None
        many = [name for name, way in resource.relations.items() if way.relation.kind != "one"]
        if choice < 0.7 and many:
            name = self.random.choice(many)
            return {name: self._compared(self._target(resource, name), self._measure(self._target(resource, name)))}
        fields = [name for name, shown in resource.searchable.items() if "eq" in shown.field.scalar.ops]
        name = self.random.choice(fields)
        value = self._sample(resource, name)
        if value is None:
            return {name: {"isNull": self.random.random() < 0.5}}
        ops = [op for op in resource.fields[name].field.scalar.ops if op in ("eq", "ne", "gte", "lt")]
        return {name: {self.random.choice(ops): value}}

    def _sample(self, resource: ResourceView, name: str) -> Any:
        rows = self.rows[resource.resource.name]
        value = self.random.choice(rows).get(name) if rows else None
        return wire(resource.fields[name].field.scalar, value)

    def _compared(self, resource: ResourceView, path: list[str]) -> Mapping[str, Any]:
        """A comparison of a measure."""
        op = self.random.choice(["eq", "ne", "gt", "gte", "lt", "lte", "isNull"])
        if path == ["count"]:
            return {"count": {op: True if op == "isNull" else self.random.randint(0, 4)}}
        name, fn = path
        own = resource.fields[name].field.scalar
        scalar = measure_scalar(fn, own)  # type: ignore[arg-type]  # the name of a function
        value = self._sample(resource, name) if fn in ("min", "max") else self._number(scalar)
        if op == "isNull" or value is None or op not in scalar.ops:
            return {name: {fn: {"isNull": self.random.random() < 0.5}}}
        return {name: {fn: {op: value}}}

    def _number(self, scalar: Scalar) -> Any:
        number = self.random.choice([0, 1, 2, 3, 7, 50])
        if scalar is INT:
            return number
        if scalar is FLOAT:
            return self.random.choice([0.0, 1.5, -3.25, 42])
        if scalar is BIGINT:
            return str(number)
        assert scalar not in (BOOLEAN, DATE)
        precision, scale = scalar.digits or (18, 2)
        if precision == scale:
            return f"0.{number}"[: scale + 2]
        return f"{number}.00"[: -3 if not scale else None]
