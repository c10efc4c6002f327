"""Relay: relay-compiler reads the schema, and its runtime pages, refetches and follows changes into its store."""

from __future__ import annotations

from pathlib import Path

from tests.fit.scenario import Scenarios, Tool, record
from tests.fit.tools import node, npm, workspace
from tests.support.running import Service, diptych

TOOL = Tool("Relay", "GraphQL clients", npm=("relay-compiler", "relay-runtime"))


def test_relay(service: Service, scenario: Scenarios, tmp_path: Path) -> None:
    folder = workspace(
        tmp_path, "relay/relay.config.json", "relay/src/documents.js", "relay/src/run.mjs", "steps.mjs", "walk.mjs"
    )
    for shared in ("steps.mjs", "walk.mjs"):
        (folder / shared).rename(folder / "relay" / shared)
    schema = diptych("schema", "--as", "admin")
    assert schema.returncode == 0, schema.stderr
    (folder / "relay" / "schema.graphql").write_text(schema.stdout, "utf-8")
    with scenario("generate"):
        npm("relay-compiler", cwd=folder / "relay")
    scenario.none("compile", "relay-compiler checks documents against the schema; types are Flow's or TypeScript's")
    own = service.get("/users?first=1&fields=id").json()["data"][0]["id"]
    token = service.token_of("admin", user=own).token
    record(scenario, node(folder / "relay" / "src" / "run.mjs", service.url, token, own, cwd=folder))
