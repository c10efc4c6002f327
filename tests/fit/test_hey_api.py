"""hey-api: an SDK of functions, for fetch."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import STRICT, bundle, copy, hold, save_document, tried
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import node, npm, workspace
from tests.support.running import Service

TOOL = Tool("@hey-api/openapi-ts", "REST clients", npm=("@hey-api/openapi-ts",))


def test_hey_api(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "steps.mjs", "steps.d.mts")
    save_document(service, admin, folder)
    with scenario("generate"):
        npm("openapi-ts", "-i", "openapi.json", "-o", "client", "-c", "@hey-api/client-fetch", cwd=folder)
    copy(folder, "hey.ts")
    with scenario("compile"):
        npm("tsc", *STRICT, "hey.ts", cwd=folder)
    found = tried(lambda: node(bundle("hey.ts", folder), service.url, admin, cwd=folder))
    hold(found, scenario, service, admin, "hey@fit.example")
