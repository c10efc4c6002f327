"""What the tests of REST tools share: the document as a file, code on pages of the documentation, and what steps find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fit.scenario import FOLDER, Scenarios
from tests.fit.tools import MODULES, NODE, node, npm, run, workspace
from tests.support.running import ROOT, Service

STEPS = ("create", "read", "update", "where", "in", "sort", "page", "nested", "error")
STRICT = (
    *("--noEmit", "--strict", "--noUncheckedIndexedAccess", "--target", "es2023", "--skipLibCheck", "--types", "node"),
    *("--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable"),
    "--allowImportingTsExtensions",
)


def save_document(service: Service, token: str, folder: Path) -> Path:
    """The OpenAPI document of an admin, as a file."""
    document = service.signed_in(token).get("/openapi.json").json()
    path = folder / "openapi.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def code_of(page: str, language: str) -> str:
    """The code on a page of the documentation, as one file."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL))


def copy(folder: Path, name: str) -> None:
    """Put a script of tests/fit/js/rest into a folder."""
    (folder / name).write_text((FOLDER / "js" / "rest" / name).read_text("utf-8"), "utf-8")


def bundle(script: str, folder: Path) -> Path:
    """A script and what it imports as one file, as bundlers resolve imports."""
    made = folder / script.replace(".ts", ".bundle.mjs")
    npm("esbuild", script, "--bundle", "--platform=node", "--format=esm", f"--outfile={made}", cwd=folder)
    return made


def tried(work: Callable[[], Any]) -> Any:
    """What the steps of a client find; if it does not even run, each of them has failed."""
    try:
        return work()
    except AssertionError as error:
        return {name: {"failed": str(error)} for name in STEPS}


def hold(found: Any, scenario: Scenarios, service: Service, token: str, email: str) -> None:
    """Compare what a client did, step by step, with what the service says itself."""
    with scenario("create"):
        assert found["create"] == {"name": "Fit", "email": email}, found["create"]
    with scenario("read"):
        assert found["read"] == "Fit", found["read"]
    with scenario("update"):
        assert found["update"] == {"name": "Fitted", "late": 412}, found["update"]
    asked = service.signed_in(token)
    total = asked.get("/orders?total[gte]=100&status[in]=paid,shipped&count=exact").json()["page"]["total"]
    with scenario("where"):
        assert found["where"]["total"] == total, found["where"]
        assert set(found["where"]["statuses"]) == {"paid", "shipped"}
    with scenario("in"):
        assert set(found["in"]) == {"paid", "shipped"}, found["in"]
    with scenario("sort"):
        totals = [float(total) for total in found["sort"]]
        assert totals == sorted(totals, reverse=True) and len(totals) == 20
    users = asked.get("/users?count=exact&first=1").json()["page"]["total"]
    with scenario("page"):
        assert len(set(found["page"])) == len(found["page"]) == users, found["page"]
    with scenario("nested"):
        assert len(found["nested"]) == 3 and all(found["nested"]), found["nested"]
    with scenario("error"):
        assert found["error"] == {"code": "BAD_USER_INPUT", "pointers": ["/name", "/email"]}, found["error"]


def command_of(package: str) -> Path:
    """The script of an npm package whose command has the name of another one."""
    told = json.loads((MODULES / package / "package.json").read_text("utf-8"))["bin"]
    return MODULES / package / (told if isinstance(told, str) else next(iter(told.values())))


def generate_with_orval(package: str, service: Service, token: str, scenario: Scenarios, folder: Path) -> Any:
    """What the steps find with functions that a version of orval generates."""
    workspace(folder, "steps.mjs", "steps.d.mts")
    save_document(service, token, folder)
    output = {"mode": "split", "target": "shop.ts", "client": "fetch", "baseUrl": service.url}
    config = {"shop": {"input": {"target": "./openapi.json"}, "output": output}}
    (folder / "orval.config.cjs").write_text(f"module.exports = {json.dumps(config)}")
    with scenario("generate"):
        run(NODE / "node", command_of(package), "--config", "orval.config.cjs", cwd=folder)
    copy(folder, "orval.ts")
    with scenario("compile"):
        npm("tsc", *STRICT, "orval.ts", cwd=folder)
    name = "orval-7" if package.endswith("7") else "orval-8"
    env = {"NAME": name}
    return tried(lambda: node(bundle("orval.ts", folder), service.url, token, cwd=folder, env=env))
