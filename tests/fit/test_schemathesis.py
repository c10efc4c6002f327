"""schemathesis with its defaults, on the document as it is published: all operations are drawn, by `dev` and `serve`.

tests/proof/test_schemathesis.py holds far more against the service, with a document that has the words written out.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import run
from tests.support.running import ROOT, Service

TOOL = Tool("schemathesis", "REST tools", pypi=("schemathesis",))
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
OPTIONS = ("--checks", CHECKS, "--max-examples", "3", "--phases", "examples,fuzzing", "--no-color", "--seed", "1")
ELSEWHERE = ("--exclude-path-regex", "^/(oauth|batch|health|graphql|openapi)|changes$")
"""Forms of browsers, streams that do not end, and what has a tool of its own."""


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_schemathesis(
    command: str, service: Service, dev: Service, admin: str, scenario: Scenarios, tmp_path: Path
) -> None:
    used = service if command == "serve" else dev
    token = admin if command == "serve" else dev.token_of("admin").token
    schemathesis = ROOT / ".venv" / "bin" / "schemathesis"
    header = ("--header", f"Authorization: Bearer {token}")
    with scenario(command):
        said = run(schemathesis, "run", f"{used.url}/openapi.json", *header, *OPTIONS, *ELSEWHERE, cwd=tmp_path)
        drawn = re.search(r"Operations:\s+(\d+) selected / (\d+) total", said)
        assert drawn and int(drawn[1]) >= 30, said[-3000:]
