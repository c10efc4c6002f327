"""The OpenAPI document of every role: sound, exact for the role, and of use to code generators."""

from __future__ import annotations

import json
import re
from typing import Annotated

import jsonschema_rs
import msgspec
import pytest
import schemathesis

from diptych import Model, OnDelete, Resource, Tx, action, grant, inverse, through
from diptych.api.openapi.document import build_openapi
from diptych.api.query_string import LIST_PARAMETERS
from diptych.demo.model import model as default
from diptych.model.call_defs import ActionDef
from diptych.model.defs import SERVER_FIELDS
from diptych.serve.endpoint.oauth_paths import PATHS as OAUTH_PATHS
from tests.support.cases import cases
from tests.support.documents import (
    MODELS,
    ROLES,
    document_of,
    every_role,
    find,
    operations,
    parameters,
    properties,
    published,
    validator,
    view_of,
    walk,
)
from tests.support.many_resources import many
from tests.support.written_out import written_out

# sound

UNUSED = {
    f"#/components/{key}"
    for key in (
        "schemas/PageInfo",
        "schemas/JsonPatch",
        "parameters/id",
        "parameters/If-Match",
        "parameters/Idempotency-Key",
        "parameters/Prefer",
        "parameters/fields",
        *(f"parameters/{name}" for name in ("first", "last", "after", "before", "offset", "count")),
        *(f"responses/{name}" for name in ("Conflict", "NotFound", "PreconditionFailed", "BadUserInput")),
    )
}
"""What a role that reads nothing, or changes nothing, has no use for."""


@every_role
def test_the_document_is_valid(name: str, role: str) -> None:
    document = published(name, role)
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


@every_role
def test_every_reference_leads_somewhere_and_every_component_is_used(name: str, role: str) -> None:
    document = published(name, role)
    used = {part["$ref"] for part in walk(document) if isinstance(part, dict) and isinstance(part.get("$ref"), str)}
    for reference in used:
        find(document, reference)
    kinds = ("schemas", "parameters", "responses")
    known = {f"#/components/{kind}/{key}" for kind in kinds for key in document["components"][kind]}
    assert known - used <= {*UNUSED, *(key for key in known if key.endswith("ListWhere"))}


@every_role
def test_every_operation_has_an_id_of_its_own(name: str, role: str) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document_of(name, role))]
    assert len(ids) == len(set(ids))


@every_role
def test_the_document_is_the_same_every_time(name: str, role: str) -> None:
    model = MODELS[name]
    again = Model(*(found.cls for found in model.resources.values()), viewer=model.viewer_type)
    assert json.dumps(build_openapi(view_of(again, role))) == json.dumps(published(name, role))


@every_role
def test_examples_are_valid(name: str, role: str) -> None:
    document = published(name, role)
    found = 0
    for part in walk(document):
        if isinstance(part, dict) and "example" in part:
            schema = part.get("schema") or {key: value for key, value in part.items() if key != "example"}
            validator(document, schema).validate(part["example"])
            found += 1
    assert found > 10


@every_role
def test_every_field_has_an_example(name: str, role: str) -> None:
    document = published(name, role)
    for each in view_of(MODELS[name], role).resources.values():
        row = properties(document, each.resource.name)
        assert all("example" in row[key] for key in each.fields), each.resource.name


@every_role
def test_no_optional_parameter_is_filled_in(name: str, role: str) -> None:
    """Pages that send requests send the example of a parameter, too, of any kind."""
    document = published(name, role)
    for path, method, operation in operations(document):
        for key in (parameters(document, path, method) if operation.get("parameters") else {}).values():
            schema = key.get("schema", {})
            whole = find(document, schema["$ref"]) if "$ref" in schema else schema
            assert key.get("required") or not {"example", "examples"} & (key.keys() | whole.keys()), key


# exact for the role


@cases("word", ["internalNote", "email", "Order", "/orders", '"orders', "customer", "pending", "staff"])
def test_anonymous_is_told_nothing_of_what_others_may_see(word: str) -> None:
    document = published("default", "anonymous")
    for path in ("/oauth/sign-up", "/oauth/reset"):  # the same for all: they take the address of an account
        post = document["paths"][path]["post"]
        document["paths"][path] = {**document["paths"][path], "post": {**post, "requestBody": None}}
    assert word not in json.dumps(document)
    assert word in json.dumps(published("default", "admin"))  # so the word is spelt as it would be


def test_a_field_is_there_for_those_who_may_ever_see_it() -> None:
    for role, fields in {
        "anonymous": {"id", "version", "createdAt", "updatedAt", "name", "posts", "comments"},
        "signed_in": {
            "id",
            "version",
            "createdAt",
            "updatedAt",
            "name",
            "email",
            "posts",
            "comments",
            "orders",
        },
    }.items():
        schemas = document_of("default", role)["components"]["schemas"]
        assert set(schemas["User"]["properties"]) == fields
        assert set(schemas["UserWhere"]["properties"]) == {*fields, "and", "or", "not"}
    assert "internalNote" not in document_of("default", "signed_in")["components"]["schemas"]["Order"]["properties"]
    assert "internalNote" in document_of("default", "staff")["components"]["schemas"]["Order"]["properties"]


@every_role
def test_the_paths_are_those_that_the_role_can_read(name: str, role: str) -> None:
    view = view_of(MODELS[name], role)
    expected = {"/graphql", "/openapi.json", "/health/live", "/health/ready", *OAUTH_PATHS}
    expected |= {"/viewer"} if role != "anonymous" else set()
    writes = any(each.may(verb) for each in view.resources.values() for verb in ("create", "update", "delete"))
    actions = any(isinstance(call, ActionDef) for _, call in view.calls.values())
    expected |= {"/batch"} if writes or actions else set()
    expected |= {"/{collection}/summary", "/{collection}/groups"} if view.resources else set()
    for each in view.resources.values():
        path = f"/{each.resource.path}"
        below = {f"{path}/{{id}}/{to}" for to, key in each.resource.collections.items() if key in each.relations}
        expected |= {path, path + "/changes", path + "/{id}", *below}
        expected |= {path + "/batch"} if each.may("create") else set()
    for found, call in view.calls.values():
        expected.add(f"/{found.path}/{{id}}/{call.segment}" if call.on == "row" else f"/{found.path}/{call.segment}")
    assert set(document_of(name, role)["paths"]) == expected


@every_role
def test_every_field_and_operator_of_the_role_is_a_parameter(name: str, role: str) -> None:
    document = document_of(name, role)
    for each in view_of(MODELS[name], role).resources.values():
        filters = {
            key if op == "eq" else f"{key}[{op}]"
            for key, field in each.fields.items()
            if key not in LIST_PARAMETERS
            for op in field.field.scalar.ops
        }
        for method in ("get", "head"):
            found = parameters(document, f"/{each.resource.path}", method)
            general = {name for name in LIST_PARAMETERS if name != "search" or each.searched}
            assert set(found) == {*filters, *general, "If-None-Match", "Prefer"}
            assert set(parameters(document, f"/{each.resource.path}/{{id}}", method)) == {
                "fields",
                "If-None-Match",
                "Prefer",
            }


# parameters


def test_pages_have_their_limits() -> None:
    found = parameters(document_of("default", "anonymous"), "/posts")
    schemas = {name: part.get("schema") for name, part in found.items()}
    assert schemas["first"] == {"type": "integer", "minimum": 1, "maximum": 100}  # a default would be sent with `last`
    assert schemas["last"] == {"type": "integer", "minimum": 1, "maximum": 100}
    assert schemas["offset"] == {"type": "integer", "minimum": 0, "maximum": 10_000}
    assert schemas["count"] == {"type": "string", "const": "exact"}
    assert schemas["after"] == schemas["before"] == {"type": "string", "format": "cursor"}
    assert schemas["fields"] == {"type": "string", "format": "fields", "minLength": 1}
    assert {name: part["x-excludes"] for name, part in found.items() if "x-excludes" in part} == {
        "first": ["last"],
        "last": ["first", "offset"],
        "offset": ["last"],
    }
    small = written_out(build_openapi(view_of(default, "anonymous"), max_page=7))
    assert parameters(small, "/posts")["last"]["schema"]["maximum"] == 7


@cases(
    ("sort", "valid"),
    [
        ("id", True),
        ("-id", True),
        ("title,-id", True),
        ("id,id,-id,id,id", True),
        ("", False),
        ("nope", False),
        ("id,", False),
        ("+id", False),
        ("--id", False),
        ("author", False),
        ("id,id,id,id,id,id", False),
        ("id\n", False),
        ("Title", False),
    ],
)
def test_a_sort_names_up_to_five_fields(sort: str, valid: bool) -> None:
    document = document_of("default", "anonymous")
    assert validator(document, parameters(document, "/posts")["sort"]["schema"]).is_valid(sort) == valid


def test_a_field_that_is_named_like_a_parameter_is_filtered_through_where() -> None:
    document = document_of("shelf", "anonymous")
    found = parameters(document, "/items")
    assert found["count"]["schema"] == {"type": "string", "const": "exact"}
    assert "count[gte]" not in found
    assert "count" in document["components"]["schemas"]["ItemWhere"]["properties"]


@every_role
def test_a_list_has_a_plain_parameter_for_a_field_and_shares_it(name: str, role: str) -> None:
    """Every generator of clients can send a plain value, or a list of them; of objects, each makes something else."""
    document = published(name, role)
    for each in view_of(MODELS[name], role).resources.values():
        found = parameters(document, f"/{each.resource.path}")
        scalars = {
            key: view.field.scalar
            for key, view in each.searchable.items()
            if key not in (*LIST_PARAMETERS, *SERVER_FIELDS) and "eq" in view.field.scalar.ops
        }
        lists = {f"{key}[in]" for key, scalar in scalars.items() if scalar.choices}
        assert set(found) - {*LIST_PARAMETERS} == {*scalars, *lists}
        for key in found.keys() - {*LIST_PARAMETERS}:
            schema = found[key]["schema"]
            kind = find(document, schema["$ref"])["type"] if "$ref" in schema else schema["type"]
            assert kind in (("array",) if key in lists else ("string", "integer", "number", "boolean"))
            assert "example" not in schema and "default" not in schema  # a page that tries it would send it
    filters = [part for part in document["components"]["parameters"].values() if part["in"] == "query"]
    assert len({json.dumps(part) for part in filters}) == len(filters)


def test_json_in_a_query_is_text_with_a_schema() -> None:
    """A parameter with `content` is what many generators of clients cannot read, and for a media type pages ask for a
    file."""
    document = published("default", "admin")
    assert not [part for part in walk(document) if isinstance(part, dict) and "in" in part and "content" in part]
    schema = {"$ref": "#/components/schemas/OrderWhere"}
    assert parameters(document, "/orders")["where"]["schema"] == {"type": "string", "contentSchema": schema}


def test_a_resource_adds_little_to_the_document() -> None:
    """A model of three hundred resources has a document of two megabytes, for who reads them all."""
    sizes = [len(msgspec.json.encode(build_openapi(view_of(many(count), "anonymous")))) for count in (10, 30)]
    assert (sizes[1] - sizes[0]) / 20 < 6_800


# what it says


def test_a_state_tells_its_transitions() -> None:
    schemas = document_of("default", "signed_in")["components"]["schemas"]
    status = schemas["Order"]["properties"]["status"]
    assert status["$ref"] == "#/components/schemas/OrderStatus"
    assert "pending → paid (staff), paid → shipped (staff)" in status["description"]
    assert schemas["OrderStatus"]["enum"] == ["pending", "paid", "shipped", "delivered", "cancelled"]
    assert schemas["OrderStatus"]["description"].startswith("The state of an order")


def test_what_may_be_null_or_hidden_is_nullable_for_all() -> None:
    user = document_of("default", "admin")["components"]["schemas"]["User"]["properties"]
    assert user["email"]["type"] == ["string", "null"]
    assert user["name"]["type"] == "string"
    thing = document_of("edge_cases", "chief")["components"]["schemas"]["Thing"]["properties"]
    assert thing["maybeMood"]["anyOf"] == [{"$ref": "#/components/schemas/Mood"}, {"type": "null"}]
    assert thing["count"]["type"] == ["integer", "null"]
    assert thing["owner"]["anyOf"] == [{"$ref": "#/components/schemas/Person"}, {"type": "null"}]
    assert thing["notes"]["type"] == "array"


def test_operations_have_the_names_that_code_generators_want() -> None:
    document = published("default", "admin")
    ids = {(path, method): operation["operationId"] for path, method, operation in operations(document)}
    assert not {method for _, method in ids} & {"head", "options"}  # no client calls them by name
    assert "HEAD" in document["info"]["description"] and "OPTIONS" in document["info"]["description"]
    assert ids["/posts", "get"] == "listPosts"
    assert ids["/posts/{id}", "get"] == "getPost"
    assert ids["/users/{id}/posts", "get"] == "listPostsOfUser"
    assert document["tags"][0] == {
        "name": "User",
        "description": "A person who writes posts and comments and places orders.",
    }


def test_a_token_is_optional_everywhere() -> None:
    document = document_of("default", "anonymous")
    assert document["security"] == [{"bearer": []}, {"oauth2": []}, {}]  # tools take the first one
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, _, operation in operations(document):
        is_optional = {} in operation.get("security", document["security"])
        assert is_optional or path == "/oauth/userinfo", "which tells whose token it is"


def test_errors_are_problems_and_head_has_no_content() -> None:
    document = document_of("default", "admin")
    for path, method, operation in operations(document):
        if path in OAUTH_PATHS:  # where OAuth has errors of its own, and people get pages
            continue
        for status, response in operation["responses"].items():
            found = find(document, response["$ref"]) if "$ref" in response else response
            kinds = set(found.get("content", ()))
            if method == "get" and status == "200" and path.endswith("/changes"):
                kinds.remove("text/event-stream")
            if method == "head" or status in ("204", "304"):
                assert not kinds
            elif path == "/graphql" and method != "options":
                kinds -= {"text/event-stream"} if status == "200" else set()
                assert kinds == {"application/graphql-response+json", "application/json"}
            else:
                assert kinds == {"application/json" if status in ("200", "201") else "application/problem+json"}


def test_the_address_and_the_title_can_be_given() -> None:
    view = view_of(default, "anonymous")
    document = build_openapi(view, title="Blog", version="3", server="https://example.com/api")
    assert (document["info"]["title"], document["info"]["version"]) == ("Blog", "3")
    assert document["servers"] == [{"url": "https://example.com/api"}]
    assert build_openapi(view)["servers"] == [{"url": "/"}]


class Problem(Resource):
    """A resource whose name the document would use for itself, and whose relations collide with a resource."""

    name: str
    tags: list[Tag] = through("ProblemTag", "problem", "tag")
    problem_tags: list[ProblemTag] = inverse("problem")
    access = (grant("read"),)


class Tag(Resource):
    word: str
    access = (grant("read"),)


class ProblemTag(Resource):
    problem: Annotated[Problem, OnDelete("cascade")]
    tag: Annotated[Tag, OnDelete("cascade")]
    access = (grant("read"),)


def test_names_of_a_model_do_not_collide_with_those_of_the_document() -> None:
    document = build_openapi(view_of(Model(Problem, Tag, ProblemTag), "anonymous"))
    schemathesis.openapi.from_dict(document).validate()
    schemas = document["components"]["schemas"]
    assert "name" in properties(document, "Problem")
    assert "detail" in schemas["ProblemDetails"]["properties"]
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert {"listProblemTags", "listTagsOfProblem", "listProblemTagsOfProblem"} <= set(ids)
    assert "/problems/{id}/problem-tags" in document["paths"]


class Page(Resource):
    access = (grant("read", "create", "update", "delete"),)

    @action
    async def get(self, tx: Tx) -> Page:
        return self

    @action
    async def options(self, tx: Tx) -> None: ...

    @action
    @classmethod
    async def list(cls, tx: Tx) -> None: ...


class Graphql(Resource):
    access = (grant("read"),)


class ProblemDetails(Resource):
    access = (grant("read"),)


class ProblemDetails2(Resource):
    access = (grant("read"),)


def test_actions_and_resources_may_be_named_like_operations() -> None:
    named = Model(Page, Graphql, Problem, Tag, ProblemTag, ProblemDetails, ProblemDetails2)
    document = build_openapi(view_of(named, "anonymous"))
    schemathesis.openapi.from_dict(document).validate()
    ids = {(path, method): operation["operationId"] for path, method, operation in operations(document)}
    assert len(set(ids.values())) == len(ids)
    assert (ids["/pages/{id}", "get"], ids["/pages/{id}/get", "post"]) == ("getPage", "getPage2")
    assert "detail" in document["components"]["schemas"]["ProblemDetails3"]["properties"]


@pytest.mark.slow
def test_every_pattern_is_one_that_other_languages_have() -> None:
    """No lookaround and no \\d, which is more than ten digits in some of them."""
    for name, role in ROLES:
        for part in walk(document_of(name, role)):
            pattern = part.get("pattern") if isinstance(part, dict) else None
            assert not isinstance(pattern, str) or not re.search(r"\(\?|\\[dwsb]", pattern)
