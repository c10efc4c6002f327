"""schemathesis with its defaults, on the document as it is published: all operations are drawn, by `dev` and `serve`,
in all phases. A check that is left out is explained on the page.

tests/proof/test_schemathesis.py holds far more against the service, with a document that has the words written out.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import run
from tests.support.documents import operations
from tests.support.running import ROOT, Service

TOOL = Tool("schemathesis", "REST tools", pypi=("schemathesis",))
EXCLUDED = {
    "positive_data_acceptance": "the grammars of `fields`, `where` and cursors, and codes of OAuth, are more than JSON Schema can say",
    "unsupported_method": "OpenAPI 3.1 does not know QUERY, and a write that another role may make is refused as such",
    "allow_header_conformance": "for the same reasons",
}
OPTIONS = (
    *("--max-examples", "3", "--no-color", "--seed", "1", "--continue-on-failure"),
    *("--request-timeout", "20"),  # for a stream that does not end
    *("--exclude-checks", ",".join(EXCLUDED)),
)


@pytest.mark.timeout(1_000)
@pytest.mark.parametrize("command", ["serve", "dev"])
def test_schemathesis(command: str, service: Service, dev: Service, scenario: Scenarios, tmp_path: Path) -> None:
    used = service if command == "serve" else dev
    token = used.token_of("admin").token
    schemathesis = ROOT / ".venv" / "bin" / "schemathesis"
    header = ("--header", f"Authorization: Bearer {token}")
    count = len([*operations(used.signed_in(token).get("/openapi.json").json())]) - 1  # but for the document itself
    left = "; ".join(f"without {name}: {why}" for name, why in EXCLUDED.items())
    with scenario(command, but=left):
        said = run(schemathesis, "run", f"{used.url}/openapi.json", *header, *OPTIONS, cwd=tmp_path, patience=900)
        drawn = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", said)
        assert drawn and {int(each) for each in drawn.groups()} == {count}, said[-3000:]
