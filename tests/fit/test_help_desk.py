"""The help desk of the examples, by clients that are generated for it: a nested create, an upsert, a group query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fit.guides import blocks, write
from tests.fit.rest import STRICT
from tests.fit.tools import NODE, npm, run, workspace
from tests.support.running import ROOT, Service, diptych, served

EXAMPLE = ROOT / "examples" / "helpdesk"
PAGE = "graphql-typescript.md"


class Desk(NamedTuple):
    service: Service
    arguments: tuple[str, str, str, str]
    """Address, token of an owner, a project, and its organisation."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "helpdesk.py").write_text((EXAMPLE / "helpdesk.py").read_text("utf-8"), "utf-8")
    (folder / "users.csv").write_text("name,email\nOlga,olga@example.org\n", "utf-8")
    database = f"sqlite:///{folder}/desk.db"
    with served(database, model="helpdesk:model", cwd=folder) as service:
        named = ("--model", "helpdesk:model", "--database", database)
        diptych("import", "users.csv", *named, cwd=folder)
        diptych("export", "users", "ids.csv", "--fields", "id", *named, cwd=folder)
        user = (folder / "ids.csv").read_text("utf-8").split()[1]
        token = diptych("token", "--user", user, *named, cwd=folder).stdout.strip()
        olga = service.signed_in(token)
        acme = olga.post("/organisations/found", {"name": "Acme"}).json()["id"]
        web = olga.post("/projects", {"organisationId": acme, "name": "Website"}).json()["id"]
        yield Desk(service, (service.url, token, web, acme))


def test_openapi_typescript(desk: Desk, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "helpdesk/rest.ts") / "helpdesk"
    document = desk.service.signed_in(desk.arguments[1]).get("/openapi.json").body.decode()
    (folder / "openapi.json").write_text(document, "utf-8")
    npm("openapi-typescript", "openapi.json", "--output", "schema.d.ts", cwd=folder)
    npm("tsc", *STRICT, "--exactOptionalPropertyTypes", "rest.ts", cwd=folder)
    found = json.loads(run(NODE / "node", "--no-warnings", "rest.ts", *desk.arguments, cwd=folder))
    assert found["comments"] == ["One", "Two"] and found["numbered"] >= 1
    assert found["statuses"] == [201, 200] and found["same"]
    assert found["groups"][0][0] == "open"


def test_graphql_codegen(desk: Desk, tmp_path: Path) -> None:
    config = blocks(PAGE, "ts")[0]
    (options,) = blocks(PAGE, "json")
    main = (ROOT / "tests" / "fit" / "js" / "helpdesk" / "main.ts").read_text("utf-8")
    folder = write(workspace(tmp_path), {"codegen.ts": config, "tsconfig.json": options, "src/main.ts": main})
    said = diptych("schema", "helpdesk:model", "--as", "signed_in", cwd=EXAMPLE)
    (folder / "schema.graphql").write_text(said.stdout, "utf-8")
    npm("graphql-codegen", cwd=folder)
    npm("tsc", cwd=folder)
    found = json.loads(run(NODE / "node", "dist/main.js", *desk.arguments, cwd=folder))
    assert found["comments"] == ["One", "Two"] and found["numbered"] >= 1 and found["same"]
    assert found["groups"][0][0] == "open"
