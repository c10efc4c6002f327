"""The versions of rows as a resource: `post { history { … } }` in GraphQL, `GET /posts/<id>/history` in REST.

The versions of a `Post` are rows of `PostVersion`. It has no table, path or root field of its own, so it is found by
its name, and not listed among the resources: the relation `history` of a post leads to its versions, and their
relation `post` to the row as it was. The id of one is the version of the row, which says nothing of other rows.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from msgspec.structs import replace

from diptych.model.declare.resource import Resource
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.enum_scalar import enumeration
from diptych.model.rules.expr import Col
from diptych.model.scalars import DATETIME, INTEGER_ID, JSON, STRING, TEXT_ID, Scalar

HISTORY = "history"
"""The relation of a row to its versions."""
SUFFIX = "Version"
"""The name of their type ends with it."""
ACTOR_FIELDS = ("actor", "account", "client", "token", "roles", "requestId", "channel", "operation", "reason")
"""What only those see who may see the actor."""
PARTS = ("id", "kind", "at", *ACTOR_FIELDS)
OWN = Col(("actor",))
"""What is compared with the id of the viewer: who made a version sees all of that."""


class VersionKind(enum.Enum):
    """What made a version of a row."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"


_KIND = enumeration(VersionKind)


def with_history(resources: Mapping[str, ResourceDef]) -> dict[str, ResourceDef]:
    """The resources, with the relation to versions where there is one. No rule leads through it."""
    return {
        name: replace(resource, relations={**resource.relations, HISTORY: _history(resource)})
        if resource.audit is not None and resource.audit.history
        else resource
        for name, resource in resources.items()
    }


def _history(resource: ResourceDef) -> RelationDef:
    text = "Its versions, the newest first, as far as you could have seen them."
    target = resource.name + SUFFIX
    return RelationDef(HISTORY, HISTORY, "many", target, "row_id", inverse=resource.one, description=text, past=True)


def all_versions(resources: Mapping[str, ResourceDef]) -> dict[str, ResourceDef]:
    """The resources of the versions of rows, by name."""
    made = (versions_of(resource) for resource in resources.values() if HISTORY in resource.relations)
    return {versions.name: versions for versions in made if resources[versions.versions_of].relations[HISTORY].past}


def versions_of(resource: ResourceDef) -> ResourceDef:
    """The resource of the versions of rows."""
    name = resource.name + SUFFIX
    row = f"The {resource.name} as it was; null if it cannot be shown any more."
    fields = (
        FieldDef("id", "id", "id", INTEGER_ID, description=f"The version of the {resource.name}."),
        FieldDef("kind", "kind", "kind", _KIND, description="Was the row created, or updated?"),
        FieldDef("at", "at", "at", DATETIME, description="When it was changed."),
        _actor("actor", TEXT_ID, "The id of the viewer who changed it."),
        _actor("account", TEXT_ID, "The id of the account."),
        _actor("client", STRING, "The OAuth client."),
        _actor("token", STRING, "The id of the token, which is not the token."),
        _actor("roles", JSON, "The roles that the viewer had."),
        _actor("requestId", STRING, "The id of the request.", "request_id"),
        _actor("channel", STRING, "By which way it came: rest, graphql, batch, action, job, import, sql …"),
        _actor("operation", STRING, "The action, job or command that ran."),
        _actor("reason", STRING, "Why it was changed."),
    )
    relation = RelationDef(
        resource.one, resource.one, "one", resource.name, "id", nullable=True, hideable=True, description=row, past=True
    )
    return ResourceDef(
        name=name,
        cls=Resource,
        table="diptych_audit",
        path=resource.path,
        one=resource.one + SUFFIX,
        many=resource.one + SUFFIX + "s",
        description=f"A version of one {resource.name}: the row after a change, and who made it.",
        fields={field.name: field for field in fields},
        relations={resource.one: relation},
        followed=False,
        versions_of=resource.name,
    )


def _actor(name: str, scalar: Scalar, description: str, column: str = "") -> FieldDef:
    return FieldDef(name, name, column or name, scalar, nullable=True, hideable=True, description=description)
