"""The OpenAPI document of changes: exact for the role, sound, and true of what the service takes and gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis

from diptych import Model, Resource, Role, grant
from diptych.api.openapi.document import build_openapi
from diptych.api.query_string import RESERVED
from diptych.demo.model import model as default
from tests.contract.http import data
from tests.support.cases import cases
from tests.support.documents import (
    MODELS,
    Document,
    document_of,
    every_role,
    find,
    operations,
    parameters,
    validator,
    view_of,
)
from tests.support.in_process import Service, in_process
from tests.support.written_out import written_out

COMMON = {"fields", "where", "kinds", "after", "first", "If-None-Match", "Last-Event-ID", "Prefer"}
STREAM = "text/event-stream"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(default, "sqlite:///:memory:", runner, data.ROWS) as found:
        yield found


def said(document: Document, path: str, status: int) -> Any:
    found = document["paths"][path]["get"]["responses"][str(status)]
    return find(document, found["$ref"]) if "$ref" in found else found


# exact for the role


@every_role
def test_who_reads_a_resource_follows_it_by_the_fields_that_it_has(name: str, role: str) -> None:
    document = document_of(name, role)
    view = view_of(MODELS[name], role)
    assert {path for path in document["paths"] if path.endswith("/changes")} == {
        f"/{each.resource.path}/changes" for each in view.resources.values()
    }
    for each in view.resources.values():
        filters = {
            key if op == "eq" else f"{key}[{op}]"
            for key, field in each.searchable.items()
            if key not in (*RESERVED, "kinds")
            for op in field.field.scalar.ops
        }
        for method in ("get", "head"):
            assert set(parameters(document, f"/{each.resource.path}/changes", method)) == {*filters, *COMMON}
        change = document["components"]["schemas"][f"{each.resource.name}Change"]
        names = ["eventId", "cursor", "kind", "rowId", "at", each.resource.one]
        assert list(change["properties"]) == change["required"] == names


def test_who_reads_nothing_is_told_of_no_changes() -> None:
    class Secret(Resource):
        name: str
        access = (grant("read", to=Role("keeper")),)

    document = build_openapi(view_of(Model(Secret), "anonymous"))
    for word in ("ChangeKind", "/changes", "changes.after"):
        assert word not in json.dumps(document)
        assert word in json.dumps(build_openapi(view_of(Model(Secret), "keeper")))


def test_names_of_a_model_do_not_collide_with_those_of_changes() -> None:
    class Page(Resource):
        kinds: str
        first: str
        access = (grant("read"),)

    class Changes(Resource):
        kinds: str
        access = (grant("read"),)

    class PageChanges(Resource):
        name: str
        access = (grant("read"),)

    document = build_openapi(view_of(Model(Page, Changes, PageChanges), "anonymous"))
    schemathesis.openapi.from_dict(document).validate()
    document = written_out(document)
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert "followPageChanges" in ids
    for path in ("/pages/changes", "/changeses/changes"):
        found = parameters(document, path)
        assert found["kinds"]["schema"]["type"] == "array"  # the parameter of changes, and not the field
        assert "kinds[ne]" not in found
        assert found["first"]["schema"]["type"] == "integer"
    assert parameters(document, "/pages")["kinds"]["schema"]["type"] == "string"


# what it says


def test_changes_come_as_a_page_or_as_a_stream() -> None:
    document = document_of("default", "anonymous")
    assert set(said(document, "/posts/changes", 200)["content"]) == {"application/json", STREAM}
    assert set(document["paths"]["/posts/changes"]["get"]["responses"]) == {
        "200",
        "304",
        "400",
        "401",
        "403",
        "406",
        "410",
        "429",
        "431",
        "503",
        "504",
    }
    for status in ("400", "401", "403", "406", "410"):
        assert set(said(document, "/posts/changes", int(status))["content"]) == {"application/problem+json"}
    assert said(document, "/posts/changes", 401)["headers"].keys() >= {"WWW-Authenticate"}
    graphql = document["paths"]["/graphql"]
    for method in ("get", "post"):
        assert STREAM in graphql[method]["responses"]["200"]["content"]
        assert STREAM in graphql[method]["description"]
        assert "graphql-transport-ws" in graphql[method]["description"]


def test_the_page_of_the_log_has_the_limits_of_the_service() -> None:
    small = build_openapi(view_of(default, "anonymous"), max_page=30)
    assert parameters(small, "/posts/changes")["first"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 30,
    }
    assert "x-excludes" not in parameters(small, "/posts/changes")["first"]


def test_reads_tell_from_where_to_follow() -> None:
    document = document_of("default", "admin")
    for path in ("/posts", "/posts/{id}", "/users/{id}/posts", "/graphql"):
        assert "Prefer" in parameters(document, path)
        for status in (200, 304):
            assert {"Change-Cursor", "Preference-Applied"} <= said(document, path, status)["headers"].keys()
    words = document["info"]["description"]
    assert "on a read, `Prefer: change-cursor` adds `Change-Cursor`" in words
    delete = parameters(document, "/posts/{id}", "delete")["Prefer"]
    assert "change-cursor" not in delete["description"]


def test_who_follows_needs_the_scopes_of_who_reads() -> None:
    paths = document_of("default", "admin")["paths"]
    assert paths["/comments/changes"]["get"]["security"] == paths["/comments"]["get"]["security"]
    assert {"oauth2": ["comments:read", "posts:read"]} in paths["/comments/changes"]["get"]["security"]


# true of what the service takes and gives


def held(document: Document, path: str, answer: Any) -> None:
    """Is the answer to a GET as the document says, body and headers?"""
    found = said(document, path, answer.status)
    if answer.status == 304:
        assert not answer.body
    else:
        validator(document, found["content"][answer.kind]["schema"]).validate(answer.json())
    for header, part in found["headers"].items():
        assert header.lower() in answer.headers or not part["required"]
    known = {name.lower() for name in found["headers"]} | {"content-type", "retry-after"}
    assert answer.headers.keys() <= known


@pytest.mark.parametrize("role", ["anonymous", "admin"])
def test_pages_of_the_log_are_as_the_document_says(role: str, service: Service) -> None:
    bearer = None if role == "anonymous" else service.token(None, role)
    document = written_out(service.get("/openapi.json", token=bearer).json())
    kinds = set()
    for path in [path for path in document["paths"] if path.endswith("/changes")]:
        answer = service.get(f"{path}?first=100", token=bearer)
        held(document, path, answer)
        told = answer.json()["data"]
        assert told
        kinds |= {each["kind"] for each in told}
        after = quote(answer.json()["page"]["last"])
        empty = service.get(f"{path}?after={after}", token=bearer)
        held(document, path, empty)
        assert empty.json()["data"] == []
        again = service.get(f"{path}?first=100", token=bearer, headers={"if-none-match": answer.headers["etag"]})
        assert again.status == 304
        held(document, path, again)
    assert kinds == {"CREATED"}


@cases(
    ("query", "headers", "status"),
    [
        ("?after=nope", {}, 400),
        ("?sort=id", {}, 400),
        ("?kinds=SEEN", {}, 400),
        ("?kinds=", {}, 400),
        ("?first=0", {}, 400),
        ("?first=101", {}, 400),
        ("?first=5", {"accept": STREAM}, 400),
        ("?nope=1", {}, 400),
        ("", {"accept": "text/html"}, 406),
        ("", {"authorization": "Bearer nope"}, 401),
    ],
)
def test_what_is_refused_is_as_the_document_says(
    query: str, headers: dict[str, str], status: int, service: Service
) -> None:
    document = document_of("default", "anonymous")
    answer = service.get(f"/posts/changes{query}", headers=headers)
    assert answer.status == status
    held(document, "/posts/changes", answer)


def test_a_cursor_of_another_database_is_a_gap_as_the_document_says(service: Service) -> None:
    with asyncio.Runner() as runner, in_process(default, "sqlite:///:memory:", runner, data.ROWS) as other:
        foreign = other.get("/posts/changes").json()["page"]["last"]
    answer = service.get(f"/posts/changes?after={quote(foreign)}")
    assert (answer.status, answer.code) == (410, "RESUME_GAP")
    held(document_of("default", "anonymous"), "/posts/changes", answer)


@pytest.mark.parametrize("path", ["/posts", "/posts/{id}", "/users/{id}/posts"])
def test_a_read_that_asks_for_it_has_the_headers_that_the_document_says(path: str, service: Service) -> None:
    owner = path.split("/")[1]
    row = service.rows(f"/{owner}?first=1&fields=id")[0]["id"]
    url = path.replace("{id}", row)
    document = written_out(service.get("/openapi.json").json())
    plain, told = service.get(url), service.get(url, headers={"prefer": "change-cursor"})
    held(document, path, plain)
    held(document, path, told)
    assert "change-cursor" not in plain.headers
    assert told.headers["preference-applied"] == "change-cursor"
    cursor = quote(told.headers["change-cursor"])
    assert service.get(f"/{owner}/changes?after={cursor}").json()["data"] == []
    assert told.body == plain.body
    assert told.headers["etag"] == plain.headers["etag"]


@pytest.mark.parametrize("kinds", ["CREATED", "CREATED,LEFT", "DELETED,LEFT,UPDATED,CREATED"])
def test_kinds_are_given_as_the_document_says(kinds: str, service: Service) -> None:
    document = document_of("default", "anonymous")
    part = parameters(document, "/posts/changes")["kinds"]
    assert (part["style"], part["explode"]) == ("form", False)
    assert validator(document, part["schema"]).is_valid(kinds.split(","))
    assert service.get(f"/posts/changes?kinds={kinds}").status == 200
