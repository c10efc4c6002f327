"""The model as the console needs it: what one role may see and do, from its View alone.

    {"resources": [{"name": "Post", "path": "posts", "label": "title", "verbs": {…}, "fields": […], "actions": […]}]}

It depends on the model and on the signature of the viewer, never on rows. Members that are null, false or empty are
left out, so that a model of 300 resources stays small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from diptych.model.call_defs import ArgumentDef, CallDef, QueryDef
from diptych.model.constraints import MaxItems, MinItems
from diptych.model.declare.markers import Max, MaxLen, Min, MinLen, Pattern
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.resource_view import InputView, RelationView, ResourceView
from diptych.model.rules.expr import FALSE
from diptych.model.scalar_values import to_json
from diptych.model.scalars import Member, Scalar
from diptych.model.view import View

Json = dict[str, Any]
_LABELS = ("name", "title", "label", "subject", "login", "email", "number", "code", "key")
"""Fields by which a person knows a row; the first that there is."""
_VERBS: tuple[Literal["read", "create", "update", "delete", "restore", "upsert"], ...] = (
    *("read", "create", "update", "delete", "restore", "upsert"),
)
_CONSTRAINTS: Mapping[type[Any], tuple[str, str]] = {
    Min: ("min", "value"),
    Max: ("max", "value"),
    MinLen: ("minLength", "length"),
    MaxLen: ("maxLength", "length"),
    MinItems: ("minItems", "length"),
    MaxItems: ("maxItems", "length"),
    Pattern: ("pattern", "regex"),
}


def describe_resources(view: View) -> Iterator[Json]:
    """The resources of a view, one after the other."""
    calls: dict[str, list[CallDef]] = {}
    for resource, call in view.calls.values():
        calls.setdefault(resource.name, []).append(call)
    for mine in view.resources.values():
        yield _resource(mine, calls.get(mine.resource.name, []), view)


def _resource(mine: ResourceView, calls: Iterable[CallDef], view: View) -> Json:
    resource, creates, updates = mine.resource, mine.takes("create"), mine.takes("update")
    known = [field for name, field in resource.fields.items() if name in mine.fields or name in mine.writes]
    return _dense(
        {
            "name": resource.name,
            "one": resource.one,
            "many": resource.many,
            "path": resource.path,
            "label": _label(mine),
            "doc": resource.description,
            "search": bool(mine.searched),
            "softDelete": mine.deleted != FALSE,
            "changes": resource.followed,
            "history": resource.audit is not None and resource.audit.history and "history" in mine.relations,
            "export": mine.exports,
            "verbs": {verb: mine.may(verb) for verb in _VERBS},
            "keys": {name: list(names) for name, names in mine.upsert_keys.items()},
            "fields": [
                *(_field(mine, field, creates.get(field.name), updates.get(field.name), view) for field in known),
                *(_relation(way, view) for way in mine.ways.values()),
            ],
            "actions": [_call(resource, call) for call in calls],
        }
    )


def _label(mine: ResourceView) -> str | None:
    named = (name for name in _LABELS if name in mine.fields)
    texts = (name for name, shown in mine.fields.items() if shown.field.scalar.is_text)
    return next(named, next(texts, None))


def _field(mine: ResourceView, field: FieldDef, create: InputView | None, update: InputView | None, view: View) -> Json:
    """A field. What only a writer needs to know is there for those who may write it."""
    scalar, shown = field.scalar, mine.fields.get(field.name)
    writable = create is not None or update is not None
    filtered = shown is not None and field.python is None
    return _dense(
        {
            "name": field.name,
            "type": _type(scalar, required=not (field.nullable or field.hideable)),
            "kind": _kind(field),
            "scalar": scalar.name,
            "values": list((scalar.items or scalar).choices),
            "states": _states(field, view) if update is not None else {},
            "required": create is not None and create.required,
            "nullable": field.nullable or field.hideable,
            "readOnly": not writable,
            "writeOnce": create is not None and update is None,
            "writeOnly": shown is None,
            "unique": writable and field.unique,
            "keyOf": field.relation if field.relation in mine.relations else "",
            "default": to_json(scalar, field.default) if create is not None else None,
            "generated": field.generated if create is not None else "",
            "example": to_json(scalar, field.example),
            "doc": field.description,
            "filter": list(scalar.ops) if filtered else [],
            "sort": filtered and scalar.sortable,
            "constraints": _constraints(field.constraints) if writable else {},
            "members": [_input(member) for member in (scalar.members or {}).values()],
        }
    )


def _kind(field: FieldDef) -> str:
    if field.counts is not None:
        return "counter"
    if not field.stored:
        return "computed"
    return _kind_of(field.scalar)


def _kind_of(scalar: Scalar) -> str:
    if scalar.items is not None:
        return "list"
    if scalar.members is not None:
        return "value"
    if scalar.name == "JSON":
        return "json"
    return "enum" if scalar.choices else "scalar"


def _type(scalar: Scalar, *, required: bool) -> str:
    """The type in the words of GraphQL."""
    name = f"[{_type(scalar.items, required=True)}]" if scalar.items is not None else scalar.graphql or scalar.name
    return name + "!" * required


def _states(field: FieldDef, view: View) -> dict[str, list[str]]:
    """The transitions that the role may make, by the state before."""
    states: dict[str, list[str]] = {}
    for move in field.moves:
        if move.to is None or move.to.name in view.signature.roles:
            states.setdefault(str(move.source.value), []).append(str(move.target.value))
    return states


def _relation(way: RelationView, view: View) -> Json:
    relation = way.relation
    target = view.resources[relation.target]
    return _dense(
        {
            "name": relation.name,
            "type": relation.target,
            "kind": "relation",
            "nullable": relation.nullable or relation.hideable,
            "doc": relation.description,
            "relation": {
                "to": relation.target,
                "many": relation.kind != "one",
                "inverse": relation.inverse if relation.inverse in target.relations else "",
                "through": relation.link if relation.link in view.resources else "",
            },
        }
    )


def _call(resource: ResourceDef, call: CallDef) -> Json:
    path = f"/{resource.path}/{{id}}/{call.segment}" if call.on == "row" else f"/{resource.path}/{call.segment}"
    return _dense(
        {
            "name": call.name,
            "root": call.root,
            "path": path,
            "method": "GET" if isinstance(call, QueryDef) else "POST",
            "on": "row" if call.on == "row" else "collection",
            "doc": call.description,
            "arguments": [_input(argument) for argument in call.arguments],
            "result": {"kind": call.result.kind, "resource": call.result.resource},
        }
    )


def _input(field: ArgumentDef | Member) -> Json:
    """An argument of a call, or a member of a value object."""
    return _dense(
        {
            "name": field.name,
            "type": _type(field.scalar, required=field.required),
            "kind": _kind_of(field.scalar),
            "scalar": field.scalar.name,
            "values": list((field.scalar.items or field.scalar).choices),
            "required": field.required,
            "nullable": field.nullable,
            "default": to_json(field.scalar, field.default),
            "constraints": _constraints(field.constraints),
        }
    )


def _constraints(markers: Iterable[object]) -> Json:
    constraints: Json = {}
    for marker in markers:
        if type(marker) in _CONSTRAINTS:
            name, attr = _CONSTRAINTS[type(marker)]
            value = getattr(marker, attr)
            constraints[name] = value if isinstance(value, int | str) else str(value)
    return constraints


def _dense(members: Json) -> Json:
    """Without members that say nothing; a value of the model says something, whatever it is."""
    return {
        name: value
        for name, value in members.items()
        if value is not None and (name in ("default", "example") or (value is not False and value not in ("", [], {})))
    }
