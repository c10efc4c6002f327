"""gql.tada: documents typed by the schema alone, compiled strictly, and run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fit.guides import schema, write
from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.tools import node, npm, workspace
from tests.support.running import Service

TOOL = Tool("gql.tada", "GraphQL clients", npm=("gql.tada",))
OPTIONS = {
    "strict": True,
    "noEmit": True,
    "target": "esnext",
    "lib": ["esnext"],
    "module": "nodenext",
    "types": ["node"],
    "skipLibCheck": True,
    "allowImportingTsExtensions": True,
    "erasableSyntaxOnly": True,
    "plugins": [
        {"name": "gql.tada/ts-plugin", "schema": "./schema.graphql", "tadaOutputLocation": "./introspection.d.ts"}
    ],
}


def test_gql_tada(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "tada.ts", "steps.mjs")
    write(folder, {"tsconfig.json": json.dumps({"compilerOptions": OPTIONS, "include": ["*.ts"]})})
    schema(folder)
    with scenario("generate"):
        npm("gql.tada", "generate-output", cwd=folder)
    with scenario("compile"):
        npm("tsc", cwd=folder)
    record(scenario, node(folder / "tada.ts", service.url, admin, cwd=folder))
    scenario.none("stream", "it types the documents of a subscription; another client sends them")
