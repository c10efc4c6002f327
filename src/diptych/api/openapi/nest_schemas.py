"""JSON Schemas of nested writes: what POST and PATCH take for the relations of a row.

    UserCreate        {"name": …, "posts": UserPostsWrite}        UserPostsWrite    {"create": [PostUnderAuthor], …}
    PostUnderAuthor   PostCreate without `authorId`               PostUpdate        {"id": …, "patch": PostPatch}

Their names are those of the GraphQL types.
"""

from __future__ import annotations

from collections.abc import Callable

from diptych.api.descriptions import describe_nest
from diptych.api.openapi.schemas import Schema, json_schema, ref, scalar_name, with_deprecation, with_description
from diptych.ask.measures import Limits
from diptych.model.nesting import (
    ROW_ID,
    ROW_REF,
    NestTaking,
    NestView,
    link_fields,
    link_type,
    nest_type,
    nests_of,
    offered,
    under_type,
    update_type,
)
from diptych.model.resource_view import ResourceView, Taking
from diptych.model.view import View

Values = Callable[[dict[str, Schema], Taking, ResourceView], Schema]
"""Makes the schema of the plain fields of a row."""
_VERSION: Schema = {"type": "integer", "description": "The write happens only if the row still has this version."}


def add_nests(
    schemas: dict[str, Schema],
    schema: Schema,
    verb: NestTaking,
    resource: ResourceView,
    view: View,
    values: Values,
    without: str = "",
) -> None:
    """Add the relations of a row to the schema of its values, and their schemas to the others. `without` is the key of
    the row around it."""
    for name, nest in nests_of(resource, view, verb).items():
        if nest.relation.kind == "one":
            if nest.key == without:
                continue
            if nest.key in schema.get("required", ()):
                schema["required"] = [required for required in schema["required"] if required != nest.key]
        kind = nest_type(resource.resource.name, nest.relation)
        described_nest = with_description(ref(kind), describe_nest(nest))
        schema["properties"][name] = with_deprecation(described_nest, nest.relation.deprecated)
        if kind not in schemas:
            schemas[kind] = {}  # relations may lead back here
            schemas[kind] = _nest(schemas, nest, resource, view, values)
    if not schema.get("required", True):
        del schema["required"]


def _nest(schemas: dict[str, Schema], nest: NestView, resource: ResourceView, view: View, values: Values) -> Schema:
    relation = nest.relation
    target = view.resources[relation.target]
    if relation.kind == "one":
        return _object({"create": ref(relation.target + "Create")}, ["create"], f"A new {relation.target}.")
    properties: Schema = {}
    for word in offered(relation.name, resource, view):
        if nest.theirs:
            item = _link(schemas, word, nest, resource, view, values)
        else:
            item = _item(schemas, word, nest, target, view, values)
        properties[word] = {"type": "array", "items": item, "maxItems": Limits().writes}
    of_new = [f"`{word}`" for word in properties if word in ("create", "connect")]
    less = f" A new row takes {' and '.join(of_new) or 'none'} alone." if len(of_new) < len(properties) else ""
    return _object(properties, [], f"What is done to `{relation.name}`.{less}")


def _item(
    schemas: dict[str, Schema], word: str, nest: NestView, target: ResourceView, view: View, values: Values
) -> Schema:
    name = target.resource.name
    row: Schema = {"id": json_schema(target.resource.key), "ifVersion": _VERSION}
    match word:
        case "create":
            kind = under_type(name, nest.relation.inverse)
            if kind not in schemas:
                schemas[kind] = {}
                schema = values(schemas, "create", target)
                del schema["properties"][nest.key]
                if nest.key in schema.get("required", ()):
                    schema["required"] = [required for required in schema["required"] if required != nest.key]
                text = f"A new {name}; its `{nest.relation.inverse}` is the row around it."
                schema["description"] = text
                add_nests(schemas, schema, "create", target, view, values, nest.key)
                schemas[kind] = schema
        case "update":
            kind = update_type(name)
            text = f"A {name} to change, and its fields."
            schemas[kind] = _object({**row, "patch": ref(name + "Patch")}, ["id", "patch"], text)
        case _:
            kind = f"{ROW_REF}-{scalar_name(target.resource.key)}"
            schemas[kind] = _object(row, ["id"], "A row.")
    return ref(kind)


def _link(
    schemas: dict[str, Schema], word: str, nest: NestView, resource: ResourceView, view: View, values: Values
) -> Schema:
    target = view.resources[nest.relation.target]
    if word == "create":
        return ref(target.resource.name + "Create")
    row: Schema = {"id": json_schema(target.resource.key)}
    fields = link_fields(nest, view) if word in ("connect", "set") else {}
    if not fields:
        kind = row_id_type(target)
        schemas[kind] = _object(row, ["id"], "A row.")
        return ref(kind)
    kind = link_type(resource.resource.name, nest.relation)
    own = values(schemas, "create", view.resources[nest.relation.link])["properties"]
    required = [name for name, taken in fields.items() if taken.required]
    text = f"A {target.resource.name} to connect, and the fields of its {nest.relation.link}."
    schemas[kind] = _object({**row, **{name: own[name] for name in fields}}, ["id", *required], text)
    return ref(kind)


def row_id_type(target: ResourceView) -> str:
    """The name of the schema of an item that names a row of a resource."""
    return f"{ROW_ID}-{scalar_name(target.resource.key)}"


def _object(properties: Schema, required: list[str], description: str) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return {**schema, "description": description}
