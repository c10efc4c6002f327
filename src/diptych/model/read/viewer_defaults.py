"""Settles defaults that come from the viewer: `author: User = from_viewer()`, `tenant: str = from_viewer("tenant")`.

They are checked once the model's viewer class and the types of all keys are known.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.read.relations import Report
from diptych.model.rules.expr import ViewerValue
from diptych.model.scalars import IDS


def settle_defaults(
    resources: Mapping[str, ResourceDef], viewer: Mapping[str, ViewerValue], wrong: Report
) -> dict[str, ResourceDef]:
    """The resources with the types of these defaults; every mistake is reported."""
    settled = {}
    for name, resource in resources.items():
        fields = resource.fields
        if any(field.of_viewer is not None for field in fields.values()):
            fields = {key: _settled(resource, field, viewer, wrong) for key, field in fields.items()}
        settled[name] = replace(resource, fields=fields)
    return settled


def _settled(resource: ResourceDef, field: FieldDef, viewer: Mapping[str, ViewerValue], wrong: Report) -> FieldDef:
    attr = resource.relations[field.relation].attr if field.relation in resource.relations else field.attr
    if not isinstance(field.of_viewer, ViewerValue):
        if field.of_viewer is not None and field.scalar not in IDS:
            fix = 'Declare it as a relation or an Id, or write from_viewer("tenant") for another field of the viewer'
            wrong(resource, attr, f"from_viewer() is an id, and no {field.scalar.name}", fix)
        return field
    known = viewer.get(field.of_viewer.name)
    if known is None:
        fix = "Declare it: class Member(Viewer): …, and Model(…, viewer=Member)"
        wrong(resource, attr, f"the viewer has no field {field.of_viewer.name!r}", fix)
    elif known.many or known.scalar is not field.scalar:
        kind = f"many {known.scalar.name}" if known.many else known.scalar.name
        cause = f"viewer.{known.name} is {kind}, and the field {field.scalar.name}"
        wrong(resource, attr, cause, "Give both the same type")
    else:
        return replace(field, of_viewer=known)
    return field
