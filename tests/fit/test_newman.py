"""newman: the document as a Postman collection, whose token is set once, is run as a whole."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fit.rest import save_document
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import npm, workspace
from tests.support.running import Service

TOOL = Tool("newman", "REST tools", npm=("newman", "openapi-to-postmanv2"))
OPTIONS = "folderStrategy=Tags,enableOptionalParameters=false,parametersResolution=Example"


def test_newman(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    save_document(service, admin, folder)
    with scenario("generate"):
        npm("openapi2postmanv2", "-s", "openapi.json", "-o", "collection.json", "-O", OPTIONS, cwd=folder)
        collection = json.loads((folder / "collection.json").read_text("utf-8"))
        assert collection["auth"]["type"] == "bearer"
    options = ("--env-var", f"baseUrl={service.url}", "--env-var", f"bearerToken={admin}", "--folder", "User")
    reporters = ("--reporters", "json", "--reporter-json-export", "run.json", "--suppress-exit-code")
    npm("newman", "run", "collection.json", *options, *reporters, cwd=folder)
    ran = json.loads((folder / "run.json").read_text("utf-8"))["run"]["executions"]
    statuses: dict[tuple[str, str], int] = {}
    for each in ran:
        path = "/".join(each["request"]["url"]["path"])
        statuses.setdefault((each["request"]["method"], path.partition("/")[2] or path), each["response"]["code"])
    with scenario("create"):
        assert statuses["POST", "users"] == 201, statuses
    with scenario("page"):
        assert statuses["GET", "users"] == 200, statuses
    with scenario("error"):
        assert set(statuses.values()) <= {200, 201, 204, 404, 409, 412, 422}, statuses
