"""The package that the providers for react-admin and refine share: streams that break off, long lists, conflicts."""

from __future__ import annotations

import json

from tests.fit.admin import CLIENTS
from tests.fit.scenario import FOLDER
from tests.fit.tools import NODE, run
from tests.support.running import Service


def test_it_resumes_streams_reads_long_lists_and_tells_conflicts(service: Service, admin: str) -> None:
    script, package = FOLDER / "js" / "admin" / "rest.mjs", CLIENTS / "rest" / "index.js"
    found = json.loads(run(NODE / "node", script, package, service.url, admin, cwd=FOLDER / "js"))
    failed = {name: value["failed"] for name, value in found.items() if value}
    assert not failed, "\n".join(failed.values())
    assert set(found) == {"resume", "gap", "lists", "writes", "values"}
