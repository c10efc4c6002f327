"""spectral and redocly, with the rules that they recommend: no errors, and no warnings but those that are explained."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.fit.rest import save_document
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import npm, workspace
from tests.support.running import Service

TOOL = Tool("spectral, redocly", "REST tools", npm=("@stoplight/spectral-cli", "@redocly/cli"))
EXPLAINED = {
    "operation-description": "a summary may say it all",
    "oas3-unused-component": "JsonPatch is the schema of a media type that is described in words",
    "no-unused-components": "the same",
    "operation-4xx-response": "errors that all operations have are `default`",
    "no-server-example.com": "the service runs on this machine",
    "no-required-schema-properties-undefined": "documents of OAuth have more members than are listed",
    "no-ambiguous-paths": "`/{collection}/summary` and `/users/{id}` both match `/users/summary`, which is no id",
}
AMBIGUOUS = (
    "warnings, each explained in `tests/fit/test_linters.py`. "
    "[no-ambiguous-paths](https://redocly.com/docs/cli/rules/oas/no-ambiguous-paths): `/{collection}/summary` and "
    "`/{collection}/groups` are described once for all collections. No row has such an id, and Prism resolves both. Two "
    "paths for each collection would make the document of 300 resources 2.3 MB instead of 2.0"
)


def test_linters(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    save_document(service, admin, folder)
    (folder / ".spectral.json").write_text('{"extends": ["spectral:oas"]}')
    with scenario("spectral"):
        said = npm(
            "spectral", "lint", "openapi.json", "-r", ".spectral.json", "-f", "json", "-o", "said.json", cwd=folder
        )
        found = json.loads((folder / "said.json").read_text("utf-8"))
        assert not [each for each in found if each["severity"] == 0], said
        assert {each["code"] for each in found} <= EXPLAINED.keys(), Counter(each["code"] for each in found)
    with scenario("redocly", but=AMBIGUOUS):
        problems = json.loads(npm("redocly", "lint", "openapi.json", "--format=json", cwd=folder))["problems"]
        assert not [each for each in problems if each["severity"] == "error"], problems
        assert {each["ruleId"] for each in problems} <= EXPLAINED.keys(), problems
