"""openapi-typescript and openapi-fetch: types of the document, and a client that uses them; also the page about them."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import STRICT, code_of, copy, hold, save_document, tried
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import node, npm, workspace
from tests.support.running import Service

TOOL = Tool("openapi-typescript + openapi-fetch", "REST clients", npm=("openapi-typescript", "openapi-fetch"))
PRINT = (
    "\nconsole.log(JSON.stringify({ name, email, updated: updated.name, conflict: conflict?.code, authors, faults }))\n"
)


def test_openapi_fetch(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "steps.mjs", "steps.d.mts")
    save_document(service, admin, folder)
    with scenario("generate"):
        npm("openapi-typescript", "openapi.json", "--output", "schema.d.ts", cwd=folder)
    copy(folder, "fetch.ts")
    with scenario("compile"):
        npm("tsc", *STRICT, "--exactOptionalPropertyTypes", "fetch.ts", cwd=folder)
    found = tried(lambda: node(folder / "fetch.ts", service.url, admin, cwd=folder))
    hold(found, scenario, service, admin, "fetch@fit.example")


def test_the_page_about_it(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    save_document(service, admin, folder)
    (folder / "shop.ts").write_text(code_of("how-to/typescript-client.md", "ts") + PRINT, "utf-8")
    with scenario("page of docs"):
        npm("openapi-typescript", "openapi.json", "--output", "schema.d.ts", cwd=folder)
        npm("tsc", *STRICT, "--exactOptionalPropertyTypes", "shop.ts", cwd=folder)
        found = node(folder / "shop.ts", cwd=folder, env={"API": service.url, "TOKEN": admin})
        assert (found["name"], found["updated"], found["conflict"]) == ("Zoe", "Zora", "PRECONDITION_FAILED")
        assert len(found["authors"]) == 2 and found["faults"] == ["/name", "/email"]
