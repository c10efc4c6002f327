"""genql: a client that is generated from the schema, with queries as objects, compiled strictly, and run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fit.guides import schema, write
from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.test_gql_tada import OPTIONS
from tests.fit.tools import npm, workspace
from tests.support.running import Service

TOOL = Tool("genql", "GraphQL clients", npm=("@genql/cli", "@genql/runtime"))


def test_genql(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(tmp_path, "genql.ts", "steps.mjs")
    options = {**OPTIONS, "plugins": [], "module": "esnext", "moduleResolution": "bundler", "erasableSyntaxOnly": False}
    write(folder, {"tsconfig.json": json.dumps({"compilerOptions": options, "include": ["genql.ts"]})})
    schema(folder)
    with scenario("generate"):
        npm("genql", "--schema", "schema.graphql", "--output", "api", "-S", "DateTime:string", cwd=folder)
    with scenario("compile"):
        npm("tsc", cwd=folder)
    record(
        scenario, json.loads(npm("jiti", "genql.ts", service.url, admin, cwd=folder))
    )  # its imports are for a bundler
    scenario.none("stream", "its subscriptions speak a protocol that graphql-ws has replaced")
