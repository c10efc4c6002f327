"""The viewer as an object of the API: `viewer` in GraphQL, `GET /viewer` in REST.

    { viewer { subject roles user { name } } }        GET /viewer?fields=subject,roles,user(name)

    Read("Viewer", "one", (Field("subject", "subject"), Field("roles", "roles"), Follow("user", "user", …)))

It is an object like a row: its fields are values of the viewer, bound when the statement runs, and its relation `user`
leads to the row of the model that the viewer is, under the rules of that row. It is no resource: it has no table, no id
in a path, no list and no changes. So it is found by its name, and not listed among the resources.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from diptych.model.declare.resource import Resource
from diptych.model.declare.roles import SIGNED_IN, Viewer
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.rules.expr import And, Choose, Col, Compare, Expr, Has, Mask, Not, Or, ViewerId, ViewerValue
from diptych.model.scalars import DATETIME, JSON, STRING, Scalar

T = TypeVar("T")
D = TypeVar("D")
VIEWER, ROOT, USER, USER_KEY = "Viewer", "viewer", "user", "user_id"
"""Its type, its root field and path, its relation to its row, and the column with the id of that."""
SUBJECT = "subject"
"""The field with its id. It is not named `id`: clients store objects under that, and this is the id of a row."""
TEXTS = (ViewerValue("@roles", JSON), ViewerValue("@scopes", JSON))
"""The values that are lists of texts."""


def _expiry(viewer: Viewer) -> str | None:
    moment = viewer.expires
    if moment is None:
        return None
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


ABOUT: Mapping[str, Callable[[Viewer], Any]] = {
    "@id": lambda viewer: viewer.id,
    "@roles": lambda viewer: sorted(viewer.roles - {SIGNED_IN}),
    "@scopes": lambda viewer: None if viewer.scopes is None else sorted(viewer.scopes),
    "@expires": _expiry,
}
"""The values of a viewer, by the names under which statements bind them: no attribute of Python has such a name."""


class ByName(dict[str, T]):
    """Definitions of resources by name. Those of the viewer, and of versions of rows, are found by their names, and
    are not listed."""

    def __init__(self, resources: Mapping[str, T], viewer: T, versions: Mapping[str, T] | None = None) -> None:
        super().__init__(resources)
        self.versions: Mapping[str, T] = versions or {}
        self._unlisted = {VIEWER: viewer, **self.versions}

    def __missing__(self, name: str) -> T:
        return self._unlisted[name]

    @overload
    def get(self, name: str, default: None = None, /) -> T | None: ...
    @overload
    def get(self, name: str, default: T | D, /) -> T | D: ...
    def get(self, name: str, default: Any = None, /) -> Any:
        return self._unlisted[name] if name in self._unlisted else super().get(name, default)


def viewer_object(user: ResourceDef | None) -> ResourceDef:
    """The definition of the viewer, whose row is one of `user`."""
    known = "The id of the viewer, which rules compare"
    fields = (
        _field(SUBJECT, ViewerId(), f"{known}: that of its `user`, if there is one.", user.key)
        if user
        else _field(SUBJECT, ViewerValue("@id", STRING), f"{known}."),
        _field("roles", ViewerValue("@roles", JSON), "The roles, with those that they imply.", nullable=False),
        _field("scopes", ViewerValue("@scopes", JSON), "The scopes that narrow the roles; null if nothing does."),
        _field("expiresAt", ViewerValue("@expires", DATETIME), "When the token expires; null if it never does."),
    )
    text = "The row that the viewer is, as far as it may read it."
    relations = {}
    if user is not None:
        relations[USER] = RelationDef(
            USER, USER, "one", user.name, USER_KEY, nullable=True, hideable=True, description=text
        )
    return ResourceDef(
        name=VIEWER,
        cls=Resource,
        table="",
        path=ROOT,
        one=ROOT,
        many=ROOT,
        description="Who sends the request, by its token.",
        fields={field.name: field for field in fields},
        relations=relations,
    )


def _field(
    name: str, value: ViewerId | ViewerValue, description: str, key: Scalar = STRING, *, nullable: bool = True
) -> FieldDef:
    scalar = value.scalar if isinstance(value, ViewerValue) else key
    return FieldDef(name, name, "", scalar, nullable, computed=value, description=description)


def users_in(resources: Mapping[str, ResourceDef]) -> set[str]:
    """The resources whose ids some rule compares with that of the viewer."""
    return {
        name
        for resource in resources.values()
        for rule in resource.rules
        for name in _compared(rule.expr, resource, resources)
    }


def _compared(expr: Expr, resource: ResourceDef, resources: Mapping[str, ResourceDef]) -> Iterable[str]:
    match expr:
        case Compare("eq", Col(path), ViewerId()) | Compare("eq", ViewerId(), Col(path)):
            for step in path[:-1]:
                resource = resources[resource.relations[step].target]
            field = resource.fields[path[-1]]
            if field.name == "id":
                yield resource.name
            elif field.relation:
                yield resource.relations[field.relation].target
        case And(of) | Or(of):
            for part in of:
                yield from _compared(part, resource, resources)
        case Not(of) | Mask(of=of):
            yield from _compared(of, resource, resources)
        case Has(relation, where):
            yield from _compared(where, resources[resource.relations[relation].target], resources)
        case Choose(when, then, other):
            for part in (when, then, other):
                yield from _compared(part, resource, resources)
