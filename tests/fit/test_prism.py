"""Prism: as a proxy that holds requests and responses against the document, and as a mock made from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.fit.rest import save_document
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import MODULES, NODE, workspace
from tests.support.running import Answer, Client, Said, Service, free_port

TOOL = Tool("Prism", "REST tools", npm=("@stoplight/prism-cli",))
LOWEST = (
    "of several successes it [answers](https://github.com/stoplightio/prism/blob/master/docs/guides/01-mocking.md) the "
    "lowest status: 200, that of an upsert, where a row can be created by a key; `Prefer: code=201` asks for the other"
)


@contextmanager
def prism(*arguments: str, folder: Path, token: str) -> Iterator[Client]:
    port = free_port()
    command = [str(NODE / "node"), str(MODULES / ".bin" / "prism"), *arguments, "--port", str(port)]
    said = Said()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said.follow(process.stdout)
            said.wait("listening")
            yield Client(f"http://127.0.0.1:{port}", token)
        finally:
            process.kill()


def patch(client: Client, id: str, body: Any, tag: str) -> Answer:
    headers = {"content-type": "application/json", "if-match": tag}
    return client.request("PATCH", f"/users/{id}", headers, json.dumps(body).encode())


def test_prism(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    save_document(service, admin, folder)
    new = {"name": "Fit", "email": "prism@fit.example"}
    with prism("proxy", "openapi.json", service.url, "--errors", folder=folder, token=admin) as proxy:
        with scenario("create"):
            made = proxy.post("/users", new)
            assert (made.status, made.json()["name"]) == (201, "Fit"), made
        with scenario("read"):
            read = proxy.get(f"/users/{made.json()['id']}")
            assert read.json() == made.json()
        with scenario("update"):
            id, tag = made.json()["id"], read.headers["etag"]
            assert patch(proxy, id, {"name": "Fitted"}, tag).status == 200
            assert patch(proxy, id, {"name": "Late"}, tag).status == 412
        with scenario("where"):
            found = proxy.get("/orders?where=" + quote(json.dumps({"status": {"in": ["paid", "shipped"]}})))
            assert {row["status"] for row in found.json()["data"]} == {"paid", "shipped"}, found
        with scenario("in"):
            found = proxy.get("/orders?status%5Bin%5D=paid&status%5Bin%5D=shipped")
            assert {row["status"] for row in found.json()["data"]} == {"paid", "shipped"}, found
        with scenario("sort"):
            assert proxy.get("/orders?sort=-total,id").status == 200
        with scenario("page"):
            page = proxy.get("/users?first=2").json()["page"]
            assert proxy.get(f"/users?first=2&after={page['next']}").status == 200
        with scenario("nested"):
            assert proxy.get("/posts?first=2&fields=*,author(*)").status == 200
        with scenario("numbers"):  # paths that match `/orders/{id}`, too
            assert proxy.get("/orders/summary?fields=count,total(sum)").json()["count"] > 0
            assert proxy.get("/orders/groups?by=status").json()["data"][0]["status"]
        with scenario("error"):
            assert proxy.get("/users/nope").json()["code"] == "NOT_FOUND"
            assert proxy.post("/users", {"name": ""}).status == 422
    with prism("mock", "openapi.json", folder=folder, token=admin) as mock, scenario("mock", but=LOWEST):
        users = mock.get("/users")
        assert users.json()["data"][0]["name"] == "Zoe" and "sl-violations" not in users.headers, users
        for path in ("/users/1", "/posts/1", "/comments/1", "/orders/1"):
            assert "sl-violations" not in mock.get(path).headers, path
        assert mock.post("/users", new).status == 200
        kind = {"content-type": "application/json", "prefer": "code=201"}
        assert mock.request("POST", "/users", kind, json.dumps(new).encode()).status == 201
