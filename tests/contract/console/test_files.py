"""The files of the console: their headers, their policy, and the page below a prefix."""

from __future__ import annotations

import gzip
import json
import re

from diptych.api.graphql.http import Parameters
from diptych.serve.console.files import files
from diptych.serve.http.request import Request
from diptych.serve.logs import REQUEST
from tests.contract.console.conftest import Console
from tests.contract.http.test_door import knock
from tests.support.following import caller_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; img-src 'self' data:; font-src 'self'; "
    "worker-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
ALWAYS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def test_the_page_has_a_strict_policy_with_a_nonce_of_its_own(console: Console) -> None:
    nonces = set()
    for path in ("/console/", "/console/request", "/console/data/posts", "/console/data/a%20b"):
        page = console.service.get(path)
        (nonce,) = re.findall("'nonce-([^']+)'", page.headers["content-security-policy"])
        assert page.headers["content-security-policy"] == POLICY.format(nonce)
        assert ALWAYS.items() <= page.headers.items() and page.headers["cache-control"] == "no-store"
        placeholders = re.findall(rb"__[A-Z]+__", page.body.replace(nonce.encode(), b""))
        assert nonce.encode() in page.body and not placeholders
        nonces.add(nonce)
    assert len(nonces) == 4


def test_files_are_kept_for_good_and_compressed_once(console: Console) -> None:
    assets = [name for name in files() if name.startswith("assets/")]
    assert assets, "there is a build"
    for name, file in files().items():
        plain = console.service.get(f"/console/{name}")
        packed = console.service.get(f"/console/{name}", headers={"accept-encoding": "br, gzip, zstd"})
        assert (plain.status, plain.body) == (200, file.body) and ALWAYS.items() <= plain.headers.items()
        assert "content-encoding" not in plain.headers and plain.headers["vary"] == "Accept-Encoding"
        assert ("immutable" in plain.headers["cache-control"]) == (name in assets)
        assert plain.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        if packed.headers.get("content-encoding") == "gzip":
            assert gzip.decompress(packed.body) == file.body
        if name.endswith(".js"):
            assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
        refused = console.service.get(f"/console/{name}", headers={"accept-encoding": "gzip;q=0"})
        assert "content-encoding" not in refused.headers


def test_only_reading_is_possible(console: Console) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert console.service.send(method, "/console/").status == 405
    assert console.service.send("HEAD", "/console/").status == 200
    assert console.service.send("GET", "/console/api/twin", headers={"host": "127.0.0.1"}).status == 405


def test_it_works_below_a_prefix(console: Console) -> None:
    page = knock(console.service, "GET", "/api/v1/console/", root_path="/api/v1")
    assert page.status == 200 and b'content="/api/v1"' in page.body
    for name in re.findall(rb'(?:src|href)="(/[^"]+)"', page.body):
        assert name.startswith(b"/api/v1/console/assets/")
        assert knock(console.service, "GET", name.decode(), root_path="/api/v1").status == 200
    home = knock(console.service, "GET", "/api/v1/", [(b"accept", b"text/html")], root_path="/api/v1")
    assert (home.status, home.headers["location"]) == (303, "/api/v1/console/")
    boot = knock(console.service, "GET", "/api/v1/console/api/boot", [(b"host", b"127.0.0.1")], root_path="/api/v1")
    assert b'"redirect":"http://127.0.0.1/api/v1/console/"' in boot.body


def test_the_last_requests_are_there_without_their_values(console: Console) -> None:
    knock(console.service, "GET", "/users?first=2&name=secret-value", [(b"host", b"127.0.0.1")])
    knock(console.service, "GET", "/console/api/boot", [(b"host", b"127.0.0.1")])
    found = console.get("recent", console.admin).json()
    last = found["requests"][-1]
    assert (last["style"], last["path"], last["status"], last["price"]) == ("rest", "/users", 200, 2)
    assert last["statement"].startswith("SELECT") and last["name"] == "GET /users"
    assert "secret-value" not in str(found)
    assert console.get(f"recent?after={found['next']}", console.admin).json() == {"next": found["next"], "requests": []}
    assert console.get("recent?after=x", console.admin).status == 400
    series = {each["name"]: each["points"] for each in console.get("metrics", console.admin).json()["series"]}
    assert series["rest requests per second"] and all(len(point) == 2 for point in series["rest mean milliseconds"])


def test_graphql_requests_are_there_by_operation_kind_and_price_without_their_values(console: Console) -> None:
    token = (b"authorization", f"Bearer {console.admin}".encode())
    head = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), token]
    for text in (
        'query Mine { users(first: 3, where: {name: {eq: "secret-value"}}) { name } }',
        "{ posts(first: 2) { title } viewer { subject } }",
        'mutation Rename { updateUser(id: "secret-value", patch: {name: "secret-value"}) { name } }',
        "{ users(first: 100) { posts(first: 100) { comments(first: 100) { body } } } }",
        "{ nothing }",
        "query Kinds { __schema { types { name } } }",
    ):
        knock(console.service, "POST", "/graphql", head, [json.dumps({"query": text}).encode()])
    found = console.get("recent", console.admin).json()["requests"][-6:]
    assert [(each["style"], each["kind"], each["name"], each["fields"], each["price"]) for each in found] == [
        ("graphql", "query", "Mine", ["users"], 3),
        ("graphql", "query", "", ["posts", "viewer"], 3),
        ("graphql", "mutation", "Rename", ["updateUser"], 2),
        ("graphql", "query", "", [], 1_010_100),
        ("graphql", "query", "", [], None),
        ("graphql", "query", "Kinds", ["__schema"], None),
    ]
    assert [each["code"] for each in found[3:5]] == ["TOO_COMPLEX", "GRAPHQL_VALIDATION_FAILED"]
    assert found[0]["document"] == 'query Mine { users(first: 3, where: {name: {eq: "…"}}) { name } }'
    assert [bool(each["statement"]) for each in found] == [True, True, True, False, False, False]
    assert "secret-value" not in str(found)
    names = {each["name"] for each in console.get("metrics", console.admin).json()["series"] if each["points"]}
    assert {"graphql requests per second", "graphql slowest milliseconds"} <= names


def test_operations_of_a_socket_are_recorded_one_by_one(console: Console) -> None:
    handler = console.service.handler

    async def operations() -> None:
        caller = await caller_of(handler, None)
        REQUEST.set(Request("GET", "/graphql", "", {b"host": b"127.0.0.1"}, no_body))
        for text in ("query Over { users(first: 4) { name } }", "{ nothing }"):
            await handler.graphql.run(Parameters(text, None, {}), caller)

    console.service.runner.run(operations())
    first, second = console.get("recent", console.admin).json()["requests"][-2:]
    assert (first["name"], first["price"], first["code"]) == ("Over", 4, "")
    assert second["code"] == "GRAPHQL_VALIDATION_FAILED" and not second["stream"]


async def no_body(_: int) -> bytes:
    return b""
