"""The OpenAPI document of every role: sound, exact for the role, and true of what the server takes and gives."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych import Model, OnDelete, Resource, grant, inverse, through
from diptych.api.rest.openapi import openapi
from diptych.api.rest.query import RESERVED
from diptych.api.rest.schemas import as_json, as_text
from diptych.api.rest.translate import Target, read_query, translate
from diptych.check.cost import Limits
from diptych.check.values import Binder
from diptych.default import model as default
from diptych.errors import Code, Refusal
from diptych.model.scalars import (
    BIGINT,
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    ID,
    INT,
    INTEGER_ID,
    STRING,
    Scalar,
    decimal,
)
from diptych.model.view import View
from tests.http import data, shelf
from tests.inside import inside
from tests.nasty import model as nasty
from tests.nasty import rows

MODELS = {"default": default, "nasty": nasty, "shelf": shelf.model}
ROWS = {"default": data.ROWS, "nasty": rows(nasty, 7), "shelf": shelf.ROWS}
ROLES = [(name, role) for name, model in MODELS.items() for role in model.role_names]
METHODS = ("get", "head", "options", "post")
Document = dict[str, Any]

every_role = pytest.mark.parametrize(("name", "role"), ROLES)


def view_of(model: Model, role: str) -> View:
    return model.view(model.signature(model.viewer_as(role)))


def document_of(name: str, role: str) -> Document:
    return openapi(view_of(MODELS[name], role))


def operations(document: Document) -> Iterator[tuple[str, str, Any]]:
    return (
        (path, method, item[method]) for path, item in document["paths"].items() for method in METHODS if method in item
    )


def walk(part: Any) -> Iterator[Any]:
    yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from walk(each)


def find(document: Document, reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def parameters(document: Document, path: str, method: str = "get") -> dict[str, Any]:
    """The parameters of an operation by their name in the request."""
    given = document["paths"][path][method]["parameters"]
    found = [find(document, each["$ref"]) if "$ref" in each else each for each in given]
    assert len({each["name"] for each in found}) == len(found)
    return {each["name"]: each for each in found}


def validator(document: Document, schema: Any) -> jsonschema_rs.Validator:
    whole = {**schema, "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


# sound


@every_role
def test_the_document_is_valid(name: str, role: str) -> None:
    document = document_of(name, role)
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


@every_role
def test_every_reference_leads_somewhere(name: str, role: str) -> None:
    document = document_of(name, role)
    for part in walk(document):
        if isinstance(part, dict) and isinstance(part.get("$ref"), str):
            find(document, part["$ref"])


@every_role
def test_every_operation_has_an_id_of_its_own(name: str, role: str) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document_of(name, role))]
    assert len(ids) == len(set(ids))


@every_role
def test_the_document_is_the_same_every_time(name: str, role: str) -> None:
    model = MODELS[name]
    again = Model(*(found.cls for found in model.resources.values()))
    assert json.dumps(openapi(view_of(again, role))) == json.dumps(document_of(name, role))


@every_role
def test_examples_are_valid(name: str, role: str) -> None:
    document = document_of(name, role)
    for part in walk(document):
        if isinstance(part, dict) and "example" in part and "schema" in part:
            validator(document, part["schema"]).validate(part["example"])


# exact for the role


@pytest.mark.parametrize(
    "word", ["internalNote", "email", "Order", "/orders", '"orders', "customer", "pending", "staff"]
)
def test_anonymous_is_told_nothing_of_what_others_may_see(word: str) -> None:
    assert word not in json.dumps(document_of("default", "anonymous"))
    assert word in json.dumps(document_of("default", "admin"))  # so the word is spelt as it would be


def test_a_field_is_there_for_those_who_may_ever_see_it() -> None:
    for role, fields in {
        "anonymous": {"id", "version", "createdAt", "updatedAt", "name", "posts", "comments"},
        "signed_in": {"id", "version", "createdAt", "updatedAt", "name", "email", "posts", "comments", "orders"},
    }.items():
        schemas = document_of("default", role)["components"]["schemas"]
        assert set(schemas["User"]["properties"]) == fields
        assert set(schemas["UserWhere"]["properties"]) == {*fields, "and", "or", "not"}
    assert "internalNote" not in document_of("default", "signed_in")["components"]["schemas"]["Order"]["properties"]
    assert "internalNote" in document_of("default", "staff")["components"]["schemas"]["Order"]["properties"]


@every_role
def test_the_paths_are_those_that_the_role_can_read(name: str, role: str) -> None:
    view = view_of(MODELS[name], role)
    expected = {"/graphql", "/openapi.json", "/health/live", "/health/ready"}
    for each in view.resources.values():
        path = f"/{each.resource.path}"
        below = {f"{path}/{{id}}/{to}" for to, key in each.resource.collections.items() if key in each.relations}
        expected |= {path, path + "/{id}", *below}
    assert set(document_of(name, role)["paths"]) == expected


@every_role
def test_every_field_and_operator_of_the_role_is_a_parameter(name: str, role: str) -> None:
    document = document_of(name, role)
    for each in view_of(MODELS[name], role).resources.values():
        filters = {
            key if op == "eq" else f"{key}[{op}]"
            for key, field in each.fields.items()
            if key not in RESERVED
            for op in field.field.scalar.ops
        }
        for method in ("get", "head"):
            found = parameters(document, f"/{each.resource.path}", method)
            assert set(found) == {*filters, *RESERVED, "If-None-Match"}
            assert set(parameters(document, f"/{each.resource.path}/{{id}}", method)) == {"fields", "If-None-Match"}


# true of what the server takes


def test_pages_have_their_limits() -> None:
    found = parameters(document_of("default", "anonymous"), "/posts")
    schemas = {name: part.get("schema") for name, part in found.items()}
    assert schemas["first"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert schemas["last"] == {"type": "integer", "minimum": 1, "maximum": 100}
    assert schemas["offset"] == {"type": "integer", "minimum": 0, "maximum": 10_000}
    assert schemas["count"] == {"type": "string", "enum": ["exact"]}
    assert schemas["after"] == schemas["before"] == {"type": "string", "format": "cursor"}
    assert schemas["fields"] == {"type": "string", "format": "fields", "minLength": 1}
    assert {name: part["x-excludes"] for name, part in found.items() if "x-excludes" in part} == {
        "first": ["last"], "last": ["first", "offset"], "offset": ["last"],
    }  # fmt: skip
    small = openapi(view_of(default, "anonymous"), max_page=7)
    assert parameters(small, "/posts")["last"]["schema"]["maximum"] == 7


@pytest.mark.parametrize(("sort", "valid"), [
    ("id", True), ("-id", True), ("title,-id", True), ("id,id,-id,id,id", True),
    ("", False), ("nope", False), ("id,", False), ("+id", False), ("--id", False), ("author", False),
    ("id,id,id,id,id,id", False), ("id\n", False), ("Title", False),
])  # fmt: skip
def test_a_sort_names_up_to_five_fields(sort: str, valid: bool) -> None:
    document = document_of("default", "anonymous")
    assert validator(document, parameters(document, "/posts")["sort"]["schema"]).is_valid(sort) == valid


def test_a_field_that_is_named_like_a_parameter_is_filtered_through_where() -> None:
    document = document_of("shelf", "anonymous")
    found = parameters(document, "/items")
    assert found["count"]["schema"] == {"type": "string", "enum": ["exact"]}
    assert "count[gte]" not in found
    assert "count" in document["components"]["schemas"]["ItemWhere"]["properties"]


SOME_ID = "01900000-0000-7000-8000-000000000001"
SCALARS = {
    each.name: each
    for each in (STRING, ID, INTEGER_ID, INT, BIGINT, FLOAT, BOOLEAN, DATE, DATETIME, decimal(12, 2), decimal(9, 0),
                 decimal(18, 18))
}  # fmt: skip
# The values of query parameters, as their schema sees them: taken, refused.
TEXTS: dict[str, tuple[list[Any], list[Any]]] = {
    "String": (["", "a", "a,b", " ", "\n", "é😀", "\x01"], ["\0", "a\0b"]),
    "ID": ([SOME_ID, SOME_ID.upper(), "", "x", "\0"], []),
    "IntegerID": (["1", "0", "-1", "", "x", "9" * 99], []),
    "Int": ([0, -1, 2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, 1.5, "", "x", True]),
    "BigInt": (
        ["0", "-1", "10", str(2**63 - 1), str(-(2**63)), "9199999999999999999", "-1" + "0" * 18, "9" * 18],
        [str(2**63), str(-(2**63) - 1), "9" * 19, "1" + "0" * 19, "01", "", "+1", "1.0", "1\n", "x"],
    ),
    "Float": ([0, 1.5, -1e308, 5e-324, 1.7976931348623157e308, 10**308], [10**309, "x", "", True]),
    "Boolean": ([True, False], ["yes", "", 1]),
    "Date": (["2024-02-29", "0001-01-01", "9999-12-31"], ["2023-02-29", "0000-01-01", "2024-1-1", "2024-01-01T", ""]),
    "DateTime": (
        ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.1+02:00", "0001-01-01T00:00:00Z",
         "9999-12-31T23:59:59.999999Z", "0002-01-01T00:00:00+23:59", "9998-12-31T23:59:59-23:59",
         "2026-01-31t12:00:00z"],
        ["2026-01-31T12:00:00", "2026-01-31T12:00:00.1234567Z", "2016-12-31T23:59:60Z", "0000-01-01T00:00:00Z",
         "2026-01-31T24:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-01-31", "",
         "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+24:00"],
    ),
    "Decimal(12,2)": (
        ["0", "1", "-1.5", "1.50", "9999999999.99", "007", "-0", "0" * 30 + "1"],
        ["10000000000", "1.555", "1.500", ".5", "1.", "", "+1", "1e5", "1,5", "x", "1\n"],
    ),
    "Decimal(9,0)": (["0", "-999999999", "0999999999"], ["1000000000", "1.0", "1."]),
    "Decimal(18,18)": (["0", "0.5", "-0." + "9" * 18, "00.1"], ["1", "1.0", "0." + "1" * 19]),
}  # fmt: skip
# What JSON takes beside those of the texts that are strings, and what it refuses beside them.
JSONS: dict[str, tuple[list[Any], list[Any]]] = {
    "String": ([], [1, True]),
    "ID": ([1, -1, 10**30], [True, 1.5]),
    "IntegerID": ([1, -1, 10**30], [True, 1.5]),
    "Int": ([1.0, 7], ["7"]),
    "BigInt": ([0, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, True, 1.5]),
    "Float": ([1], ["1.5"]),
    "Boolean": ([], ["true", 0]),
    "Date": ([], [20240101]),
    "DateTime": ([], [0]),
    "Decimal(12,2)": ([0, 9999999999, -9999999999], [10**10, -(10**10), 1.5, True]),
    "Decimal(9,0)": ([999999999], [10**9]),
    "Decimal(18,18)": ([0], [1, -1]),
}


def is_taken(parse: Any, value: Any) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def text_of(value: Any) -> str:
    """A value as the text of a query parameter."""
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", TEXTS)
def test_the_schema_of_a_parameter_takes_what_the_server_takes(name: str) -> None:
    scalar, (taken, refused) = SCALARS[name], TEXTS[name]
    schema = jsonschema_rs.Draft202012Validator(as_text(scalar), validate_formats=True)
    for value in taken:
        assert schema.is_valid(value) and is_taken(scalar.parse_text, text_of(value)), value
    for value in refused:
        assert not schema.is_valid(value) and not is_taken(scalar.parse_text, text_of(value)), value


@pytest.mark.parametrize("name", JSONS)
def test_the_schema_of_a_value_in_where_takes_what_the_server_takes(name: str) -> None:
    scalar, (more, none) = SCALARS[name], JSONS[name]
    taken, refused = [*TEXTS[name][0], *more], [*TEXTS[name][1], *none]
    schema = jsonschema_rs.Draft202012Validator(as_json(scalar), validate_formats=True)
    for value in taken:
        assert schema.is_valid(value) and is_taken(scalar.parse, value), value
    for value in (*refused, None, [], {}):
        assert not schema.is_valid(value) and not is_taken(scalar.parse, value), value


FLAWS: tuple[Any, ...] = (
    None,
    [],
    {},
    "x",
    1,
    True,
    [[]],
    [None],
    {"nope": {}},
    {"and": 1},
    {"eq": "x"},
    {"isNull": 1},
)


def values_of(scalar: Scalar, flawed: bool) -> st.SearchStrategy[Any]:
    """JSON values of a scalar; flawed, some of them are not."""
    if scalar.choices:
        return st.sampled_from([*scalar.choices, "nope", 1][: None if flawed else len(scalar.choices)])
    name = scalar.name if scalar.name in TEXTS else "Decimal(18,18)"  # whose values are those of any decimal
    good = st.sampled_from(TEXTS[name][0] + JSONS[name][0])
    return good | st.sampled_from([*TEXTS[name][1], *JSONS[name][1]]) if flawed else good


@st.composite
def comparisons(draw: st.DrawFn, scalar: Scalar, flawed: bool) -> Any:
    found: dict[str, Any] = {}
    for op in draw(st.lists(st.sampled_from(scalar.ops), min_size=1, max_size=2, unique=True)):
        one = st.booleans() if op == "isNull" else values_of(scalar, flawed)
        found[op] = draw(st.lists(one, max_size=3) if op == "in" and draw(st.booleans()) else one)
    return found


@st.composite
def wheres(draw: st.DrawFn, view: View, name: str, flawed: bool, depth: int = 3) -> Any:
    """Filters that the server takes; flawed, most of them are not."""
    each = view.resources[name]
    keys = [*each.fields, *(["and", "or", "not", *each.relations] if depth else ())]
    found: dict[str, Any] = {}
    for key in draw(st.lists(st.sampled_from(keys), max_size=3, unique=True)):
        inner = wheres(view, name, flawed, depth - 1)
        if flawed and draw(st.integers(0, 3)) == 0:
            found[key] = draw(st.sampled_from(FLAWS))
        elif key in each.fields:
            found[key] = draw(comparisons(each.fields[key].field.scalar, flawed))
        elif key in each.relations:
            relation = each.relations[key].relation
            there = wheres(view, relation.target, flawed, depth - 1)
            words = st.dictionaries(st.sampled_from(["some", "none", "every"]), there, min_size=1)
            found[key] = draw(there if relation.kind == "one" else words)
        else:
            found[key] = draw(inner if key == "not" else inner | st.lists(inner, max_size=2))
    return found


def is_accepted(view: View, resource: str, query: str) -> bool:
    """Does the server take a query string, its limits on size aside?"""
    target = Target(resource)
    try:
        asked = read_query(query, target)
        wish = translate(target, asked, view)
        Binder(wish.slots, wish.sources, Limits(), Code.BAD_REQUEST)(asked.inputs)
    except Refusal:
        return False
    return True


@pytest.mark.parametrize(("name", "resource"), [("default", "Order"), ("nasty", "Thing"), ("shelf", "Item")])
def test_the_schema_of_where_takes_what_the_server_takes(name: str, resource: str) -> None:
    view = view_of(MODELS[name], MODELS[name].role_names[-1])
    document = openapi(view)
    schema = validator(document, document["components"]["schemas"][resource + "Where"])
    answers = {True: 0, False: 0}

    @given(st.booleans().flatmap(lambda flawed: wheres(view, resource, flawed)))
    @settings(max_examples=200, deadline=None)
    def agree(where: Any) -> None:
        accepted = is_accepted(view, resource, "where=" + quote(json.dumps(where)))
        answers[accepted] += 1
        assert schema.is_valid(where) == accepted

    agree()
    assert min(answers.values()) > 50, "both kinds of filters were tried"


@every_role
def test_every_filter_takes_a_value_of_its_schema(name: str, role: str) -> None:
    view, document = view_of(MODELS[name], role), document_of(name, role)
    for each in view.resources.values():
        found = parameters(document, f"/{each.resource.path}")
        for key, field in each.fields.items():
            scalar = field.field.scalar
            good = scalar.choices[0] if scalar.choices else TEXTS.get(scalar.name, (["0"],))[0][0]
            for op in scalar.ops if key not in RESERVED else ():
                part = found[key if op == "eq" else f"{key}[{op}]"]
                value = {"isNull": True, "in": [good, good]}.get(op, good)
                assert validator(document, part["schema"]).is_valid(value)
                text = ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
                assert is_accepted(view, each.resource.name, urlencode({part["name"]: text}))


# true of what the server gives


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def check_answer(document: Document, path: str, answer: Any) -> None:
    """Is the answer to a GET as the document says?"""
    responses = document["paths"][path]["get"]["responses"]
    said = responses[str(answer.status)]
    said = find(document, said["$ref"]) if "$ref" in said else said
    validator(document, said["content"][answer.kind]["schema"]).validate(answer.json())
    for header, part in said["headers"].items():
        assert header.lower() in answer.headers or not find(document, part["$ref"])["required"]


@every_role
def test_answers_are_as_the_document_says(name: str, role: str, runner: asyncio.Runner) -> None:
    model = MODELS[name]
    with inside(model, "sqlite:///:memory:", runner, ROWS[name]) as service:
        roles = () if role == "signed_in" else (role,)
        token = None if role == "anonymous" else service.token(None, *roles)
        document = service.get("/openapi.json", token=token).json()
        for path, item in document["paths"].items():
            if path == "/graphql":
                continue
            owner = model.by_path.get(path.split("/")[1])
            ids = ["nope", *(str(row["id"]) for row in ROWS[name][owner.name])] if owner else [""]
            for id in ids if "{id}" in path else [""]:
                url = path.replace("{id}", id)
                check_answer(document, path, service.get(url, token=token))
                for method in ("HEAD", "OPTIONS", "POST"):
                    answer = service.send(method, url, token=token)
                    documented = item.get(method.lower(), {"responses": {"405": {}}})
                    assert str(answer.status) in documented["responses"], (method, url)
            check_answer(document, path, service.get(path.replace("{id}", ids[-1]) + "?nope=1", token=token))


def test_related_objects_are_as_the_document_says(runner: asyncio.Runner) -> None:
    with inside(default, "sqlite:///:memory:", runner, data.ROWS) as service:
        token = service.token(None, "admin")
        document = service.get("/openapi.json", token=token).json()
        for path, fields in {
            "/users": "*,posts(*,comments(author(*))),orders(*)",
            "/orders": "status,customer(name)",
            "/comments": "post(author(id)),words:body",
        }.items():
            answer = service.get(f"{path}?{urlencode({'fields': fields, 'first': 5, 'count': 'exact'})}", token=token)
            assert answer.json()["data"]
            check_answer(document, path, answer)


def test_graphql_answers_as_the_document_says(runner: asyncio.Runner) -> None:
    document = document_of("default", "anonymous")
    said = document["paths"]["/graphql"]
    example = said["post"]["requestBody"]["content"]["application/json"]["example"]
    with inside(default, "sqlite:///:memory:", runner) as service:
        answers = [
            ("post", service.post(example)), ("get", service.get_query(example)),
            ("post", service.query("{ nope }")), ("post", service.query("{ orders { id } }")),
            ("get", service.get_query({"query": "mutation { x }"})), ("get", service.get("/graphql")),
            ("post", service.post(b"", kind="text/plain")), ("post", service.post(example, accept="text/html")),
            ("head", service.send("HEAD", "/graphql")), ("options", service.send("OPTIONS", "/graphql")),
            ("post", service.query("query ($n: Int) { posts(first: $n) { id } }", {"n": "x"})),
        ]  # fmt: skip
    for method, answer in answers:
        response = said[method]["responses"][str(answer.status)]
        if "content" in response:
            validator(document, response["content"][answer.kind]["schema"]).validate(answer.json())
    assert {answer.status for _, answer in answers} >= {200, 204, 400, 401, 405, 406, 415}


# golden properties


def test_a_state_tells_its_transitions() -> None:
    schemas = document_of("default", "signed_in")["components"]["schemas"]
    status = schemas["Order"]["properties"]["status"]
    assert status["$ref"] == "#/components/schemas/OrderStatus"
    assert "pending → paid (staff), paid → shipped (staff)" in status["description"]
    assert schemas["OrderStatus"]["enum"] == ["pending", "paid", "shipped", "delivered", "cancelled"]
    assert schemas["OrderStatus"]["description"].startswith("Where an order stands")


def test_what_may_be_null_or_hidden_is_nullable_for_all() -> None:
    user = document_of("default", "admin")["components"]["schemas"]["User"]["properties"]
    assert user["email"]["type"] == ["string", "null"]
    assert user["name"]["type"] == "string"
    thing = document_of("nasty", "chief")["components"]["schemas"]["Thing"]["properties"]
    assert thing["maybeMood"]["anyOf"] == [{"$ref": "#/components/schemas/Mood"}, {"type": "null"}]
    assert thing["count"]["type"] == ["integer", "null"]
    assert thing["owner"]["anyOf"] == [{"$ref": "#/components/schemas/Person"}, {"type": "null"}]
    assert thing["notes"]["type"] == "array"


def test_operations_have_the_names_that_code_generators_want() -> None:
    document = document_of("default", "admin")
    ids = {(path, method): operation["operationId"] for path, method, operation in operations(document)}
    assert ids["/posts", "get"] == "listPosts"
    assert ids["/posts", "head"] == "headPosts"
    assert ids["/posts/{id}", "get"] == "getPost"
    assert ids["/posts/{id}", "options"] == "optionsPost"
    assert ids["/users/{id}/posts", "get"] == "listPostsOfUser"
    assert document["tags"][0] == {
        "name": "User", "description": "A person who writes posts and comments and places orders.",
    }  # fmt: skip


def test_a_token_is_optional_everywhere() -> None:
    document = document_of("default", "anonymous")
    assert document["security"] == [{}, {"bearer": []}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert not any("security" in operation for _, _, operation in operations(document))


def test_errors_are_problems_and_head_has_no_content() -> None:
    document = document_of("default", "admin")
    for path, method, operation in operations(document):
        for status, response in operation["responses"].items():
            found = find(document, response["$ref"]) if "$ref" in response else response
            kinds = set(found.get("content", ()))
            if method == "head" or status in ("204", "304"):
                assert not kinds
            elif path == "/graphql" and method != "options":
                assert kinds == {"application/graphql-response+json", "application/json"}
            else:
                assert kinds == {"application/json" if status == "200" else "application/problem+json"}


def test_the_address_and_the_title_can_be_given() -> None:
    view = view_of(default, "anonymous")
    document = openapi(view, title="Blog", version="3", server="https://example.com/api")
    assert document["info"] == {"title": "Blog", "version": "3"}
    assert document["servers"] == [{"url": "https://example.com/api"}]
    assert openapi(view)["servers"] == [{"url": "/"}]


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
    document = openapi(view_of(Model(Problem, Tag, ProblemTag), "anonymous"))
    schemathesis.openapi.from_dict(document).validate()
    schemas = document["components"]["schemas"]
    assert "name" in schemas["Problem"]["properties"]
    assert "detail" in schemas["ProblemDetails"]["properties"]
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert {"listProblemTags", "listTagsOfProblem", "listProblemTagsOfProblem"} <= set(ids)
    assert "/problems/{id}/problem-tags" in document["paths"]


def test_every_pattern_is_one_that_other_languages_have() -> None:
    """No lookaround and no \\d, which is more than ten digits in some of them."""
    for name, role in ROLES:
        for part in walk(document_of(name, role)):
            pattern = part.get("pattern") if isinstance(part, dict) else None
            assert not isinstance(pattern, str) or not re.search(r"\(\?|\\[dwsb]", pattern)
