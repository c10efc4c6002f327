"""The documents that a role is given: introspection, SDL and OpenAPI. They name what exists for it, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner
from graphql import get_introspection_query, parse
from graphql.language import InputObjectTypeDefinitionNode, ObjectTypeDefinitionNode

from diptych.api.query_string import RESERVED
from diptych.cli.documents import schema
from diptych.model.defs import SERVER_FIELDS
from diptych.model.naming import kebab
from tests.proof.matrix.stage import Eye, Member, get, ql
from tests.proof.matrix.words import words

Types = Mapping[str, set[str]]
"""The names of the members of every type."""


def expected(eye: Eye, member: Member) -> dict[str, bool]:
    """In which types the member has a place."""
    resource, field, name = member.resource, member.field, member.resource.name
    if not eye.opens(resource):
        return dict.fromkeys(
            (name, f"{name}Where", f"{name}Order", f"{name}Create", f"{name}Patch", f"{name}Replace"), False
        )
    exists = eye.exists(member) is not False
    found = {name: exists, f"{name}Where": exists}
    if field is None:
        return found
    forecast, mine = eye.forecast, field.stored and member.name not in SERVER_FIELDS
    creates, updates, replaces = (forecast.has(verb, resource) for verb in ("create", "update", "replace"))
    may_create = mine and forecast.creates(resource, field) is not False
    may_update = mine and forecast.updates(resource, field) is not False
    return found | {
        f"{name}Order": exists and field.scalar.sortable,
        f"{name}Create": creates and may_create,
        f"{name}Patch": updates and may_update,
        f"{name}Replace": replaces and (exists or may_update),
    }


def check(eye: Eye, member: Member, types: Types) -> None:
    for name, wanted in expected(eye, member).items():
        assert (member.name in types.get(name, ())) == wanted, f"{member} in {name} for {eye.name}: expected {wanted}"


def introspection(eye: Eye, member: Member) -> None:
    types = eye.once("introspection", lambda: _introspected(eye))
    check(eye, member, types)
    relation, own = member.relation, types.get(member.resource.name, set())
    if relation is not None and relation.kind != "one":
        assert (f"{member.name}Connection" in own) == (eye.exists(member) is not False), f"{member} for {eye.name}"
    asked = eye.send(ql(f'{{ __type(name: "{member.resource.name}") {{ fields {{ name }} }} }}')).json()["data"][
        "__type"
    ]
    assert (asked is not None) == eye.opens(member.resource)
    assert {each["name"] for each in (asked or {"fields": ()})["fields"]} == own


def _introspected(eye: Eye) -> Types:
    found = eye.send(ql(get_introspection_query())).json()["data"]["__schema"]["types"]
    return {each["name"]: {field["name"] for field in each["fields"] or each["inputFields"] or ()} for each in found}


def _members(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    """The properties of a schema, with those that it includes."""
    parts = [schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in schema.get("allOf", ())]
    return {name for part in (*parts, schema) for name in part.get("properties", ())}


def sdl(eye: Eye, member: Member) -> None:
    check(eye, member, eye.once("sdl", lambda: _printed(eye)))


def _printed(eye: Eye) -> Types:
    """The SDL of a role, as the command line prints it."""
    result = CliRunner().invoke(schema, [eye.stage.address, "--as", eye.name])
    assert result.exit_code == 0, result.output
    told = words(result.output) & eye.unspoken
    assert not told, f"{eye.name} was told of {sorted(told)}"
    kinds = (ObjectTypeDefinitionNode, InputObjectTypeDefinitionNode)
    nodes = [each for each in parse(result.output).definitions if isinstance(each, kinds)]
    return {each.name.value: {field.name.value for field in each.fields or ()} for each in nodes}


def openapi(eye: Eye, member: Member) -> None:
    document = eye.once("openapi", lambda: eye.send(get("/openapi.json")).json())
    resource, name = member.resource, member.name
    schemas, parameters = document["components"]["schemas"], document["components"]["parameters"]
    types = {key: _members(found, schemas) for key, found in schemas.items()}
    pattern = parameters.get(f"{resource.name}.sort", {}).get("schema", {}).get("pattern", "")
    check(eye, member, {**types, f"{resource.name}Order": words(pattern)})
    exists = eye.exists(member) is not False
    if member.field is not None:
        item = document["paths"].get(f"/{resource.path}", {"get": {"parameters": []}})
        listed = [parameters[part["$ref"].rpartition("/")[2]]["name"] for part in item["get"]["parameters"]]
        field = member.field
        plain = name not in (*RESERVED, *SERVER_FIELDS) and field.python is None and "eq" in field.scalar.ops
        assert name in RESERVED or (name in listed) == (exists and plain), f"{listed} and {member} for {eye.name}"
    elif member.relation is not None and member.relation.kind != "one":
        assert (f"/{resource.path}/{{id}}/{kebab(name)}" in document["paths"]) == exists, f"{member} for {eye.name}"
