"""graphql-codegen, as the page "GraphQL in TypeScript" says: generated, compiled strictly, and run."""

from __future__ import annotations

from pathlib import Path

from tests.fit.guides import blocks, schema, write
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import NODE, npm, run, workspace
from tests.support.running import Service

PAGE = "graphql-typescript.md"
TOOL = Tool("graphql-codegen", "GraphQL clients", npm=("@graphql-codegen/cli", "@graphql-codegen/client-preset"))
SHOWN = {"nested": 0, "update": 1, "page": 2, "in": 3, "error": 4}


def test_the_page(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    config, main = blocks(PAGE, "ts")
    (options,) = blocks(PAGE, "json")
    (printed,) = blocks(PAGE, "text")
    folder = write(workspace(tmp_path), {"codegen.ts": config, "tsconfig.json": options, "src/main.ts": main})
    schema(folder)
    with scenario("generate"):
        npm("graphql-codegen", cwd=folder)
    with scenario("compile"):
        npm("tsc", cwd=folder)
        wrong = write(
            folder, {"src/wrong.ts": "import { UserCreate } from './gql/graphql.js'\nconst x: UserCreate = { name: 1 }"}
        )
        assert "TS2322" in npm("tsc", "--noEmit", cwd=wrong, fine=False)
    found = run(NODE / "node", "dist/main.js", service.url, admin, cwd=folder).splitlines()
    lines = printed.splitlines()
    for name in ("create", "read", "where", "sort"):
        with scenario(name):
            assert found == lines
    for name, line in SHOWN.items():
        with scenario(name):
            assert found[line] == lines[line]
    scenario.none("stream", "it types the documents of a subscription; another client sends them")
