"""The OpenAPI document is true: its schemas take what the server takes, and the server gives what they say.

Values are held against the schema and against the server's own parsing, which must agree on each; so are random
filters, right and wrong ones. Answers of a real store are held against the document that the service gives.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.api.openapi.document import build_openapi
from diptych.api.openapi.schemas import json_schema, text_schema
from diptych.api.query_string import RESERVED
from diptych.api.rest.query import read_query
from diptych.api.rest.target import Target
from diptych.api.rest.translate import translate
from diptych.ask.measures import Limits
from diptych.demo.model import model as default
from diptych.errors import Code, Refusal
from diptych.model.decimal_scalar import decimal
from diptych.model.operators import OPERATORS, takes_list
from diptych.model.scalars import ALL, JSON, TEXT_ID, Scalar
from diptych.model.view import View
from diptych.policy.values import Binder
from tests.contract.http import data
from tests.support.cases import cases
from tests.support.documents import (
    MODELS,
    ROWS,
    Document,
    document_of,
    every_role,
    find,
    parameters,
    validator,
    view_of,
)
from tests.support.effort import scaled
from tests.support.in_process import in_process
from tests.support.written_out import written_out

UNFIT = {"content-type": "application/json", "if-match": '"none"'}
"""The headers of a change to a row that is never made."""
SOME_ID = "01900000-0000-7000-8000-000000000001"
SCALARS = {
    each.name: each for each in (*ALL, decimal(12, 2), decimal(9, 0), decimal(18, 18)) if each not in (JSON, TEXT_ID)
}
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
        [
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00.123456Z",
            "2026-01-31T12:00:00.1+02:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
            "0002-01-01T00:00:00+23:59",
            "9998-12-31T23:59:59-23:59",
            "2026-01-31t12:00:00z",
        ],
        [
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00.1234567Z",
            "2016-12-31T23:59:60Z",
            "0000-01-01T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "2026-01-31",
            "",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00+24:00",
        ],
    ),
    "Time": (
        ["00:00", "09:30:00", "09:30:00.5", "23:59:59.999999"],
        ["24:00", "23:59:60", "9:00", "09:30:00.1234567", "09:30:00.", "09:30Z", "09:30:00+01:00", "09:30\n", ""],
    ),
    "Duration": (
        ["P1D", "PT1H30M", "P1DT2H30M", "PT0S", "PT0.5S", "-PT1S"],
        ["P1Y", "P1M", "P", "PT", "1h", "", "P1D\n"],
    ),
    "UUID": (
        ["9b2d7a3e-5c1f-4e8a-b6d0-2f4c8e1a7b93", "9B2D7A3E-5C1F-4E8A-B6D0-2F4C8E1A7B93"],
        ["9b2d7a3e5c1f4e8ab6d02f4c8e1a7b93", "9b2d7a3e-5c1f-4e8a-b6d0-2f4c8e1a7b9", "{9b2d7a3e}", "", "g" * 36],
    ),
    "Decimal(12,2)": (
        ["0", "1", "-1.5", "1.50", "9999999999.99", "007", "-0", "0" * 30 + "1"],
        ["10000000000", "1.555", "1.500", ".5", "1.", "", "+1", "1e5", "1,5", "x", "1\n"],
    ),
    "Decimal(9,0)": (["0", "-999999999", "0999999999"], ["1000000000", "1.0", "1."]),
    "Decimal(18,18)": (["0", "0.5", "-0." + "9" * 18, "00.1"], ["1", "1.0", "0." + "1" * 19]),
}
# What JSON takes beside those of the texts that are strings, and what it refuses beside them.
JSONS: dict[str, tuple[list[Any], list[Any]]] = {
    "String": ([], [1, True]),
    "ID": ([1, -1, 10**30, 2.0], [True, 1.5]),
    "IntegerID": ([1, -1, 10**30, 2.0], [True, 1.5]),
    "Int": ([1.0, 7], ["7"]),
    "BigInt": ([0, 2**63 - 1, -(2**63), 5.0], [2**63, -(2**63) - 1, True, 1.5]),
    "Float": ([1], ["1.5"]),
    "Boolean": ([], ["true", 0]),
    "Date": ([], [20240101]),
    "DateTime": ([], [0]),
    "Time": ([], [930]),
    "Duration": ([], [90]),
    "UUID": ([], [1]),
    "Decimal(12,2)": ([0, 9999999999, -9999999999, 5.0], [10**10, -(10**10), 1.5, True]),
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


@cases("name", TEXTS)
def test_the_schema_of_a_parameter_takes_what_the_server_takes(name: str) -> None:
    scalar, (taken, refused) = SCALARS[name], TEXTS[name]
    schema = jsonschema_rs.Draft202012Validator(text_schema(scalar), validate_formats=True)
    for value in taken:
        assert schema.is_valid(value) and is_taken(scalar.parse_text, text_of(value)), value
    for value in refused:
        assert not schema.is_valid(value) and not is_taken(scalar.parse_text, text_of(value)), value


@cases("name", JSONS)
def test_the_schema_of_a_value_in_where_takes_what_the_server_takes(name: str) -> None:
    scalar, (more, none) = SCALARS[name], JSONS[name]
    taken, refused = [*TEXTS[name][0], *more], [*TEXTS[name][1], *none]
    schema = jsonschema_rs.Draft202012Validator(json_schema(scalar), validate_formats=True)
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
        one = st.booleans() if OPERATORS[op].takes == "truth" else values_of(scalar, flawed)
        found[op] = draw(st.lists(one, max_size=3) if takes_list(op) and draw(st.booleans()) else one)
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


@pytest.mark.parametrize(("name", "resource"), [("default", "Order"), ("edge_cases", "Thing"), ("shelf", "Item")])
def test_the_schema_of_where_takes_what_the_server_takes(name: str, resource: str) -> None:
    view = view_of(MODELS[name], MODELS[name].role_names[-1])
    document = written_out(build_openapi(view))
    schema = validator(document, document["components"]["schemas"][resource + "Where"])
    answers = {True: 0, False: 0}

    @given(st.booleans().flatmap(lambda flawed: wheres(view, resource, flawed)))
    @settings(max_examples=scaled(200, 30), deadline=None)
    def agree(where: Any) -> None:
        accepted = is_accepted(view, resource, "where=" + quote(json.dumps(where)))
        answers[accepted] += 1
        assert schema.is_valid(where) == accepted

    agree()
    assert min(answers.values()) > scaled(50, 3), "both kinds of filters were tried"


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
                value = {"truth": True, "list": [good, good]}.get(OPERATORS[op].takes, good)
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
        assert header.lower() in answer.headers or not part["required"]


@pytest.mark.slow
@every_role
def test_answers_are_as_the_document_says(name: str, role: str, runner: asyncio.Runner) -> None:
    model = MODELS[name]
    with in_process(model, "sqlite:///:memory:", runner, ROWS[name]) as service:
        roles = () if role == "signed_in" else (role,)
        token = None if role == "anonymous" else service.token(None, *roles)
        as_sent = service.get("/openapi.json", token=token).json()
        document = written_out(as_sent)
        for path, item in document["paths"].items():
            if path == "/graphql":
                continue
            owner = model.by_path.get(path.split("/")[1])
            ids = ["nope", *(str(row["id"]) for row in ROWS[name].get(owner.name, ()))] if owner else [""]
            for id in ids if "{id}" in path else [""]:
                url = path.replace("{id}", id)
                if "{collection}" in path:
                    (each,) = as_sent["paths"][path]["parameters"]
                    url = path.replace("{collection}", each["schema"]["enum"][0])
                if "get" in item:
                    answer = service.get(url + "?by=createdAt" * url.endswith("/groups"), token=token)
                    check_answer(document, path, answer)
                    if answer.status == 200:  # without `fields`, all required fields are there
                        said = as_sent["paths"][path]["get"]["responses"]["200"]
                        said = find(as_sent, said["$ref"]) if "$ref" in said else said
                        validator(as_sent, said["content"][answer.kind]["schema"]).validate(answer.json())
                for method in ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
                    answer = service.send(method, url, token=token, headers=UNFIT, body=b"{}")
                    target = service.handler.rest.target(url)
                    others = target is not None and method in service.handler.rest.methods(target)
                    documented = item.get(method.lower(), {"responses": {"401", "403"} if others else {"405"}})
                    assert str(answer.status) in documented["responses"], (method, url)
            if "get" in item:
                check_answer(document, path, service.get(path.replace("{id}", ids[-1]) + "?nope=1", token=token))


def test_related_objects_are_as_the_document_says(runner: asyncio.Runner) -> None:
    with in_process(default, "sqlite:///:memory:", runner, data.ROWS) as service:
        token = service.token(None, "admin")
        document = written_out(service.get("/openapi.json", token=token).json())
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
    with in_process(default, "sqlite:///:memory:", runner) as service:
        answers = [
            ("post", service.post(example)),
            ("get", service.get_query(example)),
            ("post", service.query("{ nope }")),
            ("post", service.query("{ orders { id } }")),
            ("get", service.get_query({"query": "mutation { x }"})),
            ("get", service.get("/graphql")),
            ("post", service.post(b"", kind="text/plain")),
            ("post", service.post(example, accept="text/html")),
            ("head", service.send("HEAD", "/graphql")),
            ("options", service.send("OPTIONS", "/graphql")),
            ("post", service.query("query ($n: Int) { posts(first: $n) { id } }", {"n": "x"})),
        ]
    for method, answer in answers:
        response = said[method]["responses"][str(answer.status)]
        if "content" in response:
            validator(document, response["content"][answer.kind]["schema"]).validate(answer.json())
    assert {answer.status for _, answer in answers} >= {200, 204, 400, 401, 405, 406, 415}
