"""newman: the document as a Postman collection, whose token is set once, is run as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.fit.rest import save_document
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import npm, workspace
from tests.support.running import Service

TOOL = Tool("newman", "REST tools", npm=("newman", "openapi-to-postmanv2"))
OPTIONS = "folderStrategy=Tags,enableOptionalParameters=false,parametersResolution=Example"


def test_newman(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    document = json.loads(save_document(service, admin, folder).read_text("utf-8"))["paths"]
    with scenario("generate"):
        npm("openapi2postmanv2", "-s", "openapi.json", "-o", "collection.json", "-O", OPTIONS, cwd=folder)
        collection = json.loads((folder / "collection.json").read_text("utf-8"))
        assert collection["auth"]["type"] == "bearer"
    options = ("--env-var", f"baseUrl={service.url}", "--env-var", f"bearerToken={admin}", "--timeout-request", "20000")
    reporters = ("--reporters", "json", "--reporter-json-export", "run.json", "--suppress-exit-code")
    npm("newman", "run", "collection.json", *options, *reporters, cwd=folder)
    ran = json.loads((folder / "run.json").read_text("utf-8"))["run"]["executions"]
    statuses = {_operation(each): each["response"]["code"] for each in ran}
    with scenario("create"):
        assert statuses["POST", "/users"] == 201, statuses
    with scenario("page"):
        assert statuses["GET", "/users"] == 200, statuses
    with scenario("error"):
        assert set(statuses.values()) <= {200, 201, 204, 400, 401, 403, 404, 409, 412, 422}, statuses
    with scenario("all operations"):
        described = {
            (method.upper(), path): operation["responses"].keys()
            for path, item in document.items()
            for method, operation in item.items()
            if method != "parameters"
        }
        assert statuses.keys() == described.keys()
        for place, status in statuses.items():
            assert {str(status), "default"} & described[place], (place, status)
            assert status < 400 or place not in _fine(described), (place, status)


def _operation(execution: dict[str, Any]) -> tuple[str, str]:
    """The method and the path of the document that a request was made from."""
    request = execution["item"]["request"]
    parts = (f"{{{part[1:]}}}" if part.startswith(":") else part for part in request["url"]["path"])
    return request["method"], "/" + "/".join(parts)


def _fine(places: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """What must succeed with the values of the examples: neither rows by an id that is made up, nor what refers to
    one, nor what needs a form of a browser, a client with a secret, or e-mail."""
    return {
        (method, path) for method, path in places if method == "GET" and "{id}" not in path and "/oauth/" not in path
    }
