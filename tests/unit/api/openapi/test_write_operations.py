"""The OpenAPI document of what changes something: exact for the role, and true of what the server takes."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych import BigInt, Digits, Json, Max, MaxLen, Min, MinLen, Model, Pattern, Resource, Unique, grant
from diptych.api.descriptions import INPUTS
from diptych.api.graphql.schema import build_schema
from diptych.api.openapi.document import build_openapi
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.rest.translate import translate_write, write_inputs
from diptych.ask.measures import Limits
from diptych.demo.model import model as default
from diptych.errors import Code, Refusal
from diptych.model.defs import FieldDef
from diptych.model.resource_view import Taking
from diptych.model.view import View
from diptych.policy.values import Binder
from tests.contract.http import data
from tests.support.cases import cases
from tests.support.documents import MODELS, document_of, every_role, find, operations, parameters, validator, view_of
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.written_out import written_out
from tests.unit.api.openapi.test_schemas import JSONS, SOME_ID, TEXTS

# exact for the role


def changes(role: str) -> set[tuple[str, str]]:
    document = document_of("default", role)
    return {
        (path, method)
        for path, method, _ in operations(document)
        if method in ("post", "put", "patch", "delete") and path != "/graphql" and not path.startswith("/oauth/")
    }


def test_a_role_sees_the_changes_that_it_could_ever_make() -> None:
    assert changes("anonymous") == set()
    own = {(path + more, "post") for path in ("/posts", "/comments", "/orders") for more in ("", "/batch")}
    own.add(("/batch", "post"))
    own |= {
        (f"/{name}/{{id}}", method) for name in ("users", "posts", "comments", "orders") for method in ("put", "patch")
    }
    own |= {(f"/{name}/{{id}}", "delete") for name in ("users", "posts", "comments")}
    own |= {(path.removesuffix("/{id}"), method) for path, method in own if method in ("patch", "delete")}  # many rows
    assert changes("signed_in") == own == changes("staff")
    more = {("/users", "post"), ("/users/batch", "post"), ("/orders/{id}", "delete"), ("/orders", "delete")}
    assert changes("admin") == own | more


def test_a_schema_has_the_fields_that_the_role_may_give() -> None:
    customer = document_of("default", "signed_in")["components"]["schemas"]
    assert set(customer["OrderCreate"]["properties"]) == {"customerId", "status", "total", "currency", "note"}
    assert set(customer["OrderPatch"]["properties"]) == {"status"}
    assert set(customer["OrderReplace"]["properties"]) == {
        "id",
        "version",
        "createdAt",
        "updatedAt",
        "customerId",
        "status",
        "total",
        "currency",
        "note",
    }
    assert "required" not in customer["OrderReplace"]
    staff = document_of("default", "staff")["components"]["schemas"]
    assert "internalNote" in staff["OrderCreate"]["properties"]
    assert staff["OrderCreate"]["required"] == ["customerId", "total"] == staff["OrderReplace"]["required"]
    assert not any(schema.get("additionalProperties") for name, schema in staff.items() if name.startswith("OrderC"))


@every_role
def test_the_inputs_are_those_of_graphql(name: str, role: str) -> None:
    view = view_of(MODELS[name], role)
    schemas, types = build_openapi(view)["components"]["schemas"], build_schema(view).type_map
    inputs = {each + suffix for each in MODELS[name].resources for suffix, _ in INPUTS.values()}
    for input_name in inputs:
        assert (input_name in schemas) == (input_name in types), input_name
        if input_name in types:
            fields = types[input_name].fields  # type: ignore[attr-defined]  # an input type
            assert list(fields) == list(schemas[input_name]["properties"])
            wanted = [key for key, each in fields.items() if str(each.type).endswith("!") and not has_default(each)]
            assert schemas[input_name].get("required", []) == wanted


def has_default(field: Any) -> bool:
    return repr(field.default_value) != "Undefined"


# what it says


class Ware(Resource):
    """Every constraint."""

    name: Annotated[str, MinLen(2), MaxLen(5), Unique()]
    data: Json
    code: Annotated[str, Pattern(r"[A-Z]{2}\s?\S")] = "AB1"
    word: Annotated[str | None, Pattern(r"\w+")] = None
    count: Annotated[int, Min(-1), Max(10)] = 3
    price: Annotated[Decimal, Digits(6, 2), Min(0)] = Decimal("1.5")
    big: Annotated[BigInt, Max(5)] = 5
    ratio: Annotated[float, Min(Decimal("0.5"))] = 0.5
    more: Json | None = None

    access = (grant("read", "create", "update", "delete"),)


wares = Model(Ware)


def test_constraints_and_defaults_are_told() -> None:
    schemas = build_openapi(view_of(wares, "anonymous"))["components"]["schemas"]
    fields = schemas["WareCreate"]["properties"]
    assert fields["name"] == {
        "type": "string",
        "pattern": r"^[^\u0000]*$",
        "minLength": 2,
        "maxLength": 5,
        "description": "Unique.",
        "example": "Zoe",
    }
    assert (
        fields["code"]["pattern"].startswith("^([A-Z]{2}[")
        and fields["code"]["description"] == 'The default is `"AB1"`.'
    )
    assert fields["word"] == {
        "type": ["string", "null"],
        "pattern": r"^[^\u0000]*$",
        "description": r"It matches `\w+`, in the syntax of Python.",
        "example": "hello",
    }
    default = {"description": "The default is `3`.", "example": 3}  # openapi-typescript would make `default` required
    assert fields["count"] == {"type": "integer", "minimum": -1, "maximum": 10, **default}
    assert fields["price"]["example"] == "1.50" and fields["price"]["anyOf"][1]["minimum"] == 0
    assert fields["big"]["example"] == "5" and fields["big"]["anyOf"][1]["maximum"] == 5
    assert fields["ratio"]["minimum"] == 0.5
    assert "null" not in fields["data"]["type"] and "null" in fields["more"]["type"]
    assert schemas["WareCreate"]["required"] == ["name", "data"]
    assert "description" not in schemas["WarePatch"]["properties"]["count"]
    assert "required" not in schemas["WarePatch"]


def test_a_state_tells_its_transitions_where_it_is_given() -> None:
    schemas = document_of("default", "staff")["components"]["schemas"]
    for name in ("OrderCreate", "OrderPatch", "OrderReplace"):
        status = schemas[name]["properties"]["status"]
        assert status["$ref"] == "#/components/schemas/OrderStatus"
        assert "pending → paid (staff), paid → shipped (staff)" in status["description"]
    assert schemas["OrderCreate"]["properties"]["status"]["example"] == "pending"


def test_operations_have_the_names_of_the_mutations() -> None:
    ids = {operation["operationId"] for _, _, operation in operations(document_of("default", "admin"))}
    assert {"createUser", "replaceUser", "updateUser", "deleteUser"} <= ids


def test_headers_stand_where_they_mean_something() -> None:
    document = document_of("default", "admin")
    assert set(parameters(document, "/users", "post")) == {"fields", "Prefer", "Idempotency-Key", "by", "onConflict"}
    assert set(parameters(document, "/users/{id}", "put")) == {"fields", "If-Match", "If-None-Match", "Prefer"}
    assert set(parameters(document, "/users/{id}", "patch")) == {"fields", "If-Match", "Prefer", "Idempotency-Key"}
    assert set(parameters(document, "/users/{id}", "delete")) == {"fields", "If-Match", "Prefer"}
    anonymous = written_out(build_openapi(view_of(wares, "anonymous")))  # a key needs a token
    assert set(parameters(anonymous, "/wares", "post")) == {"fields", "Prefer", "by", "onConflict"}


def test_what_was_created_leads_on() -> None:
    document = document_of("default", "admin")
    links = document["paths"]["/users"]["post"]["responses"]["201"]["links"]
    assert set(links) == {
        "getUser",
        "replaceUser",
        "updateUser",
        "deleteUser",
        "listPostsOfUser",
        "listCommentsOfUser",
        "listOrdersOfUser",
    }
    known = {operation["operationId"] for _, _, operation in operations(document)}
    for path, method, operation in operations(document):
        for response in operation["responses"].values():
            assert {link["operationId"] for link in response.get("links", {}).values()} <= known, (path, method)


def test_patch_takes_three_media_types() -> None:
    document = document_of("default", "admin")
    content = document["paths"]["/users/{id}"]["patch"]["requestBody"]["content"]
    assert content["application/json"] == content["application/merge-patch+json"]
    assert content["application/json-patch+json"]["schema"] == {"$ref": "#/components/schemas/JsonPatch"}


@cases(
    ("patch", "valid"),
    [
        ([], True),
        ([{"op": "add", "path": "", "value": None}], True),
        ([{"op": "remove", "path": "/a~0b/~1"}], True),
        ([{"op": "move", "path": "/a", "from": "/b", "more": 1}], True),
        ([{"op": "add", "path": "/a"}], False),
        ([{"op": "copy", "path": "/a", "value": 1}], False),
        ([{"op": "replace", "path": "a", "value": 1}], False),
        ([{"op": "test", "path": "/~2", "value": 1}], False),
        ([{"op": "nope", "path": "/a"}], False),
        ({}, False),
        ([{"op": "remove", "path": "/a"}] * 101, False),
        ([1], False),
        ([{"path": "/a"}], False),
    ],
)
def test_a_json_patch_is_as_rfc_6902_has_it(patch: Any, valid: bool) -> None:
    document = document_of("default", "admin")
    assert validator(document, document["components"]["schemas"]["JsonPatch"]).is_valid(patch) == valid


# true of what the server takes


def is_taken(view: View, resource: str, verb: Taking, body: Any) -> bool:
    """Does the server take a body, whatever the rows are?"""
    target = Target(resource, None if verb == "create" else SOME_ID)
    try:
        wish = translate_write(verb, target, read_query("", target), body, None, view, answer=True)
        Binder(wish.slots, wish.sources, Limits(), Code.BAD_USER_INPUT)(write_inputs(target, body, None))
    except Refusal:
        return False
    return not wish.faults


def values_of(field: FieldDef) -> st.SearchStrategy[Any]:
    """Values for a field, right and wrong ones."""
    scalar = field.scalar
    if scalar.choices:
        return st.sampled_from([*scalar.choices, "nope", 1, None])
    name = scalar.name if scalar.name in TEXTS else "Decimal(18,18)"
    if scalar.name == "JSON":
        return st.sampled_from([1, "x", [], {"a": None}, None, True])
    texts = [each for group in TEXTS[name] for each in group]
    near = [
        "a@b",
        "a @b",
        "EUR",
        "AB1",
        "AB 1",
        "AB\t\n",
        "abc",
        "abcdef",
        "a",
        "0.5",
        "-0.00",
        "-0.000",
        "-0",
        "-00",
        "-0.01",
        "-1",
        "5",
        "6",
        10,
        11,
        -2,
        0.25,
    ]
    return st.sampled_from([*texts, *(each for group in JSONS[name] for each in group), *near, None, [], SOME_ID])


def is_good(view: View, resource: str, verb: Taking, name: str, value: Any) -> bool:
    """Is the value fine for the field? (What is missing besides does not count.)"""
    target = Target(resource, SOME_ID)
    body = {name: value}
    try:
        wish = translate_write(verb, target, read_query("", target), body, None, view, answer=True)
        Binder(wish.slots, wish.sources, Limits(), Code.BAD_USER_INPUT)(write_inputs(target, body, None))
    except Refusal:
        return False
    return not any(fault.path[-1] == name for fault in wish.faults)


@st.composite
def bodies(draw: st.DrawFn, view: View, resource: str, verb: Taking) -> Any:
    """Bodies; every second one is right: what is required is there, and every value is taken."""
    each = view.resources[resource]
    takes, flawed = each.takes(verb), draw(st.booleans())
    names = [name for name, taken in takes.items() if taken.required and (not flawed or draw(st.integers(0, 9)))]
    others = [*takes, *each.resource.fields, "nope"] if flawed else [*takes]
    names += draw(st.lists(st.sampled_from(others), max_size=3, unique=True))
    if flawed and draw(st.integers(0, 3)) == 0:
        names.append("nope")
    found: dict[str, Any] = {}
    for name in names:
        field = each.resource.fields.get(name)
        values = values_of(field) if field else st.just(1)
        if name in takes and (not flawed or draw(st.booleans())):
            values = values.filter(partial(is_good, view, resource, verb, name))
        found[name] = draw(values)
    return found


@pytest.mark.slow
@cases("verb", list(INPUTS))
@cases(
    ("name", "role", "resource"),
    [
        ("default", "admin", "User"),
        ("default", "signed_in", "Post"),
        ("default", "signed_in", "Order"),
        ("default", "staff", "Order"),
        ("edge_cases", "chief", "Thing"),
        ("edge_cases", "keeper", "Thing"),
        ("edge_cases", "signed_in", "Person"),
        ("edge_cases", "keeper", "Person"),
        ("wares", "anonymous", "Ware"),
    ],
)
def test_the_schema_of_a_body_takes_what_the_server_takes(name: str, role: str, resource: str, verb: Taking) -> None:
    model = {**MODELS, "wares": wares}[name]
    view = model.view(model.signature(model.viewer_as(role)))
    if not view.resources[resource].may(verb):
        pytest.skip("the role may not do this")
    document = build_openapi(view)
    schema = validator(document, document["components"]["schemas"][resource + INPUTS[verb][0]])
    answers = {True: 0, False: 0}

    @given(bodies(view, resource, verb))
    @settings(max_examples=scaled(80, 20), deadline=None, database=None)
    def agree(body: Any) -> None:
        taken = is_taken(view, resource, verb, body)
        answers[taken] += 1
        strange = resource == "Ware" and {"word", "big"} & body.keys()  # what a schema says in words
        assert schema.is_valid(body) == taken or (strange and not taken), body

    agree()
    assert min(answers.values()) > 2, "both kinds of bodies were tried"


# true of what the server gives


def test_answers_to_changes_are_as_the_document_says() -> None:
    with asyncio.Runner() as runner, in_process(default, "sqlite:///:memory:", runner, data.ROWS) as service:
        token = service.token(None, "admin")
        document = written_out(service.get("/openapi.json", token=token).json())
        new = {"name": "Zoe", "email": "zoe@new.example"}
        seen: set[tuple[str, int]] = set()

        def check(method: str, path: str, body: Any = None, id: str = "", **headers: str) -> Any:
            given = {
                "content-type": "application/json",
                **{key.replace("_", "-"): text for key, text in headers.items()},
            }
            raw = b"" if body is None else json.dumps(body).encode()
            answer = service.send(method, path.replace("{id}", id), headers=given, body=raw, token=token)
            said = document["paths"][path.partition("?")[0]][method.lower()]["responses"][str(answer.status)]
            said = find(document, said["$ref"]) if "$ref" in said else said
            for header, part in said["headers"].items():
                assert header.lower() in answer.headers or not part["required"], header
            if "content" in said:
                validator(document, said["content"][answer.kind]["schema"]).validate(answer.json())
            else:
                assert answer.body == b""
            seen.add((method, answer.status))
            return answer

        made = check("POST", "/users", new, idempotency_key="one")
        assert made.headers["location"] == f"/users/{made.json()['id']}"
        assert check("POST", "/users", new, idempotency_key="one").headers["idempotency-replayed"] == "true"
        many = check("POST", "/users/batch", [{**new, "email": "a@b"}, {**new, "email": "c@d"}])
        assert len(many.json()) == 2 and "location" not in many.headers
        check("POST", "/users", new)
        check("POST", "/users", {"name": ""})
        check("POST", "/users", new, content_type="text/plain")
        check("POST", "/users?nope=1", new)
        id = made.json()["id"]
        check("PUT", "/users/{id}", {**made.json(), "name": "Zora"}, id)
        check("PUT", "/users/{id}", made.json(), id)
        check("PATCH", "/users/{id}", {"name": "Zo"}, id, if_match='"1.x"')
        check(
            "PATCH",
            "/users/{id}",
            [{"op": "replace", "path": "/name", "value": "Zo"}],
            id,
            content_type="application/json-patch+json",
        )
        check(
            "PATCH",
            "/users/{id}",
            [{"op": "test", "path": "/name", "value": "?"}],
            id,
            content_type="application/json-patch+json",
        )
        check("PATCH", "/users/{id}", [], id, content_type="text/plain")
        check("PATCH", "/users/{id}", {}, "nope")
        check("PATCH", "/orders/{id}", {"status": "delivered"}, data.ROWS["Order"][0]["id"])
        check("DELETE", "/users/{id}", None, id, if_match='"1.x"')
        check("DELETE", "/users/{id}", None, id, prefer="return=representation")
        check("DELETE", "/users/{id}", None, id)
        check("DELETE", "/users/{id}", None, many.json()[0]["id"])
    assert seen == {
        *(("POST", status) for status in (201, 400, 409, 415, 422)),
        *(("PUT", status) for status in (200, 412)),
        *(("PATCH", status) for status in (200, 404, 409, 412, 415)),
        *(("DELETE", status) for status in (200, 204, 404, 412)),
    }
